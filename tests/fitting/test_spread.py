"""Architectures tried in processes of their own: the same choice, the same bits."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from stopping import content

import rdeepsense as rds
from rdeepsense.datasets import simulate
from rdeepsense.engines import Failure, Local
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.estimators import network
from rdeepsense.fitting import search
from rdeepsense.fitting.trainer import engine_for

OFFERED = (rds.networks.Dense((4,)), rds.networks.Dense((16,)))


class Pickling:
    """Each piece in a copy of its own, as another process would have it."""

    def __init__(self, given: list[int]) -> None:
        self._given = given

    def run_each(self, work: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        self._given.append(len(work))
        for number in reversed(range(len(work))):
            yield number, pickle.loads(pickle.dumps(work[number])).run()


def given_to(engine: Any, patch: pytest.MonkeyPatch) -> None:
    """Let an engine do what is given to Ray."""
    patch.setattr(network, "cast", lambda _, ray: None if ray is None else engine)


def auto(**options: Any) -> rds.RDeepSenseRegressor:
    settings = {"hidden": "auto", "epochs": 2, "random_state": 0, "device": "cpu"}
    return rds.RDeepSenseRegressor(verbose=False, **{**settings, **options})


def both(path: Path, rows: int, **options: Any) -> tuple[Any, Any]:
    """What the files say of a fit without an engine and of one with it."""
    task = simulate(rows, 0)
    made = [auto(**options).fit(task.X, task.y, engine=engine) for engine in (None, rds.Ray())]
    return content(made[0], path), content(made[1], path)


@pytest.mark.everyday(1, "slow")
@pytest.mark.parametrize("rows", [1_000, 4_500])  # cross-validated, and on validation rows
def test_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    given: list[int] = []
    given_to(Pickling(given), monkeypatch)
    offered = (*OFFERED, rds.networks.Periodic((8,)))
    monkeypatch.setattr("rdeepsense.fitting.search.ladder", lambda *_: offered)
    plain, spread = both(tmp_path / "model", rows)
    assert plain == spread
    assert given == [len(offered)] == [len(plain[0]["selection"]["architectures"])]


def test_all_steps_of_rivals_are_spread_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    given_to(Pickling(given), monkeypatch)
    monkeypatch.setattr("rdeepsense.training.schedule.STEPS", (60, 60))
    monkeypatch.setattr(search, "VERY_MANY_ROWS", 1_000)
    # The smallest leads, so that there is a larger one to compare with.
    monkeypatch.setattr(search, "smallest_good", lambda found: 0)
    monkeypatch.setattr("rdeepsense.fitting.search.ladder", lambda *_: OFFERED)
    plain, spread = both(tmp_path / "model", 1_500, epochs=None, likelihood="gaussian")
    assert plain == spread
    assert given == [2, 2]


@pytest.mark.ray
def test_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_to(Local(2), monkeypatch)
    monkeypatch.setattr("rdeepsense.fitting.search.ladder", lambda *_: OFFERED)
    plain, spread = both(tmp_path / "model", 1_500, alpha=0.5, likelihood="gaussian")
    assert plain == spread


def test_a_failure_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails:
        def run_each(self, work: Sequence[object]) -> Iterator[tuple[int, Failure]]:
            yield 1, Failure("the disk is full")

    given_to(Fails(), monkeypatch)
    task = simulate(1_500, 0)
    with pytest.raises(RDeepSenseError, match="the disk is full"):
        auto().fit(task.X, task.y, engine=rds.Ray())


def test_what_stays_here() -> None:
    class Spec:
        engine: Any = Local(2)
        device = torch.device("cpu")

    class Trainer:
        spec, can_travel = Spec(), True

    trainer: Any = Trainer()
    assert engine_for(trainer, 2) is trainer.spec.engine
    assert engine_for(trainer, 1) is None
    trainer.spec.device = torch.device("cuda")
    assert engine_for(trainer, 2) is None
    trainer.spec.engine = rds.Ray(use_gpu=True)
    assert engine_for(trainer, 2) is trainer.spec.engine
    trainer.can_travel = False
    assert engine_for(trainer, 2) is None


def test_an_engine_with_nothing_to_do_is_refused() -> None:
    task = simulate(200, 0)
    with pytest.raises(InputError, match="X is in memory and the network is given"):
        auto(hidden=(8,)).fit(task.X, task.y, engine=rds.Ray(workers=2))
    with pytest.raises(InputError, match="a Gaussian process is fitted in this process"):
        rds.GPRegressor().fit(task.X, task.y, engine=rds.Ray(workers=2))
