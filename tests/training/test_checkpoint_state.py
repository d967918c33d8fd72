"""Checkpoints that are self-consistent but of no run: refused by name, before they are used."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.hostile_files import File, opened

from rdeepsense import RDeepSenseRegressor
from rdeepsense.errors import CheckpointError


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=40)


X, Y = table()


def fit(path: Path) -> Any:
    model = RDeepSenseRegressor(
        hidden=(4,),
        epochs=3,
        random_state=0,
        device="cpu",
        verbose=False,
        checkpoint=path,
        effort="quick",
    )
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> File:
    path = tmp_path_factory.mktemp("run") / "checkpoint"
    fit(path)
    return opened(path)


def tensor(name: str, of: Callable[[Any], Any]) -> Callable[[File], None]:
    return lambda file: file.tensors.update({name: of(file.tensors[name])})


def put(name: str, value: Any) -> Callable[[File], None]:
    return lambda file: file.header.update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("steps", 10**9), "steps = 1000000000 is garbled"),
        (put("steps", "3"), "steps = '3' is garbled"),
        (put("evaluated_at", [2, 1]), "evaluated_at = "),
        (put("evaluated_at", None), "evaluated_at = None is garbled"),
        (put("fingerprint", 3), "other data, settings or networks"),
        (lambda file: file.header.pop("fingerprint"), "other data, settings or networks"),
        (lambda file: file.tensors.pop("adam.first.0"), "lacks the tensor adam.first.0"),
        (lambda file: file.tensors.update(x=np.ones(1)), "'x' is no tensor of this run"),
        (tensor("bank.weights.0", lambda w: w[..., :1]), "bank.weights.0 has shape"),
        (tensor("stale", np.float64), "stale has shape .* and type torch.float64"),
        (tensor("best_step", lambda step: step + 10**6), "best_step is not within the"),
        (tensor("history", lambda h: h[:-1]), "history has shape"),
        (tensor("kept.weights.0", lambda w: w * np.nan), "kept.weights.0 holds NaN"),
        (tensor("random.0", lambda state: state * 0 + 255), "random is no state"),
    ],
)
def test_a_state_of_no_run_is_refused(
    right: File, change: Callable[[File], Any], message: str, tmp_path: Path
) -> None:
    file = copy.deepcopy(right)
    change(file)
    file.write(tmp_path / "checkpoint")
    before = (tmp_path / "checkpoint").read_bytes()
    with pytest.raises(CheckpointError, match=message):
        fit(tmp_path / "checkpoint")
    assert (tmp_path / "checkpoint").read_bytes() == before
