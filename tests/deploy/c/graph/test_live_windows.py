"""C of windows that learns on, window by window or by intervals: equal to `model.live()`."""

from __future__ import annotations

import copy
import ctypes
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deploy.c.live_models import InC
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.random_windows import OwnNetwork, draw_own

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates
from rdeepsense.deploy import load
from rdeepsense.deploy.c.export import fold_live
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold_graph, narrowing, with_adaptation_folded
from rdeepsense.errors import InputError
from rdeepsense.networks import DeepSense

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "epochs": 1,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
    "calibrate": "scale",
}
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
COUNT, TIMES, INTERVAL = 200, 24, 8
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def shaken(count: int, seed: int, outputs: int = 1, drift: float = 0.0) -> tuple[Any, Any]:
    """Windows of three channels, and how hard they are shaken, of which the truth drifts away."""
    rng = np.random.default_rng(seed)
    time = np.arange(TIMES)[:, None] / 8
    size, rate = rng.uniform(0.5, 3, (count, 1, 1)), rng.uniform(0.5, 2, (count, 1, 1))
    X = size * np.sin(2 * np.pi * (rate * time + rng.random((count, 1, 3))))
    X = (X + 0.3 * rng.normal(size=X.shape)) * [1.0, 20.0, 0.01] + [9.8, 0, 0]
    y = 2 * size[:, 0, 0] + 0.2 * rng.standard_t(4, size=count) + drift * np.arange(count) / count
    y = y if outputs == 1 else np.c_[y, 50 * y + rate[:, 0, 0]]
    return X.astype(np.float32), y.astype(np.float32)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    def fitted(likelihood: str, outputs: int, network: Any, groups: Any = None) -> Any:
        model = rds.RDeepSenseRegressor(network=network, likelihood=likelihood, **SETTINGS)
        return model.fit(*shaken(150, 0, outputs), groups=groups)

    def deepsense(pool: str) -> DeepSense:
        return DeepSense((2, 1), INTERVAL, filters=4, hidden=9, pool=pool)

    torch.manual_seed(0)
    own = OwnNetwork(np.random.default_rng(3), (TIMES, 3), 1)
    return {
        "gaussian": fitted("gaussian", 1, deepsense("mean")),
        "student": fitted("student", 2, deepsense("last")),
        "own": fitted("student", 1, own),
        "groups": fitted("gaussian", 1, deepsense("mean"), np.arange(150) % 5),
    }


def exported(model: Any, dtype: str = "float32") -> GraphSource:
    plain = with_adaptation_folded(model.fitted_)
    folded = fold_graph(plain)
    network = as_stored(folded, dtype)
    return GraphSource(folded, network, live=fold_live(plain, network, 0.9, Rates()))


@dataclass
class Intervals:
    """A window in C that is filled interval by interval, and learns on."""

    in_c: InC
    window: Any

    def predict(self, x: Any) -> tuple[int, Any, Any]:
        """Status, mean, std, low and high, and the row that waits, after the last interval."""
        model, outputs = self.in_c, self.in_c.source.model.outputs
        row = np.zeros(model.live.row_bytes(outputs) // 4, np.float32)
        out = np.zeros((4, outputs), np.float32)
        status = 0
        for part in np.split(np.ascontiguousarray(x, np.float32), TIMES // INTERVAL):
            arrays = (model.state, self.window, part, row, *out, model.scratch)
            status = model.library.model_live_interval(*(_pointer(one) for one in arrays))
        return status, out, row


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def beside(model: Any, in_c: InC, said_by: Any, every: int, late: int) -> float:
    """The largest distance of mean, std, low and high from Python's on a stream, in stds."""
    outputs = in_c.source.model.outputs
    X, y = shaken(COUNT, 1, outputs, drift=3.0)
    model = copy.copy(model)
    model.fitted_ = replace(model.fitted_, novelty=None, unlike=None)  # as it was exported
    live = model.live(alarm=False)
    tickets, waiting, apart = [], [], 0.0
    for step, x in enumerate(X):
        said = live.predict(x)
        _, out, row = said_by.predict(x)
        dist = said.distribution
        wanted = np.array([dist.mean, dist.std, *said.interval]).reshape(4, outputs)
        apart = max(apart, float(np.abs((out - wanted) / wanted[1]).max()))
        tickets.append(said.ticket)
        waiting.append(row)
        if (due := step - late) >= 0 and due % every == 0:
            live.observe(y[due], tickets[due])
            assert in_c.observe(waiting[due], y[due]) == 0
    return apart


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize(("name", "every", "late"), [("gaussian", 1, 0), ("student", 1, 5),
                                                     ("own", 3, 0)])  # fmt: skip
def test_windows_learn_on_as_python_does(
    models: Any, name: str, every: int, late: int, tmp_path: Path
) -> None:
    in_c = InC.built(exported(models[name]), tmp_path / "m")
    assert beside(models[name], in_c, in_c, every, late) < 1e-4


@pytest.mark.parametrize("name", ["gaussian", "student"])
def test_intervals_learn_on_as_windows_do(models: Any, name: str, tmp_path: Path) -> None:
    in_c = InC.built(exported(models[name]), tmp_path / "m")
    stream = in_c.source.stream
    window = np.zeros(stream.count * (stream.sizes[0] + 1) + 2, np.float32)
    in_c.library.model_begin_window(_pointer(window))
    assert beside(models[name], in_c, Intervals(in_c, window), 2, 3) < 1e-4
    in_c.library.model_begin_window(_pointer(window))
    x = np.zeros(INTERVAL * 3, np.float32)
    row = np.zeros(in_c.live.row_bytes(in_c.source.model.outputs) // 4, np.float32)
    out, before = np.zeros((4, in_c.source.model.outputs), np.float32), in_c.counts()
    arrays = (in_c.state, window, x, row, *out, in_c.scratch)
    status = in_c.library.model_live_interval(*(_pointer(one) for one in arrays))
    assert status & 64
    assert np.isnan(out).all()
    assert in_c.observe(row, np.zeros(in_c.source.model.outputs)) == 2
    assert in_c.counts() == before


@pytest.mark.compilers
def test_bytes_learn_as_well(models: Any, tmp_path: Path) -> None:
    """Weights of a byte move the network's own answers; what labels teach is nearly the same."""
    in_c = InC.built(exported(models["gaussian"], "int8"), tmp_path / "m")
    assert beside(models["gaussian"], in_c, in_c, 1, 0) < 0.3


@pytest.mark.compilers
def test_an_adapted_model_learns_on(models: Any, tmp_path: Path) -> None:
    few, truth = shaken(8, 7)
    mine = models["gaussian"].adapt(few, truth + 4)
    in_c = InC.built(exported(mine), tmp_path / "m")
    assert beside(mine, in_c, in_c, 3, 0) < 1e-4


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("name", ["gaussian", "own", "groups"])
def test_what_labels_have_taught_is_exported(models: Any, name: str, tmp_path: Path) -> None:
    few, truth = shaken(20, 7)
    mine = models[name].adapt(few, truth + 3)
    X, _ = shaken(40, 8)
    mean, std = mine.predict(X, return_std=True)
    frozen = models[name].predict(X, return_std=True)[1]
    assert np.abs(mean - models[name].predict(X)).max() > 0.3
    assert (name == "groups") == bool((std < 0.99 * frozen).any())
    if LONG or name == "groups":
        rds.export(mine, tmp_path / "m", to="c99", rows=shaken(60, 9))
        files = ("selftest.c", "model.c", "weights.c", "-o", "s")
        run_cc(tmp_path / "m", "gcc", *STRICT, *SANITISED, *files)
        run_cc(tmp_path / "m", tmp_path / "m" / "s")

    folded = replace(
        fold_graph(with_adaptation_folded(mine.fitted_)),
        narrowing=narrowing(mine.fitted_, "float32", False),
    )
    source = GraphSource(folded, as_stored(folded, "float32"))
    _, found = predict(library(write(source, tmp_path / "c"), COMPILERS[0], "-O2"), source, X)
    assert np.abs((found[0, :, 0] - mean) / std).max() < 1e-4
    assert np.abs(found[1, :, 0] / std - 1).max() < 1e-4
    if name != "groups":
        rds.export(mine, tmp_path / "f")
        assert np.abs((load(tmp_path / "f").predict(X) - mean) / std).max() < 1e-5
    else:
        with pytest.raises(InputError, match="narrowed"):
            rds.export(mine, tmp_path / "f")


def test_what_cannot_learn_is_refused(models: Any, tmp_path: Path) -> None:
    X, y = shaken(200, 0)
    sorter = rds.RDeepSenseClassifier(
        network=DeepSense((2, 1), INTERVAL, filters=2, hidden=4), **{**SETTINGS, "calibrate": True}
    )
    with pytest.raises(InputError, match="predicts classes"):
        rds.export(sorter.fit(X, (y > 3).astype(int)), tmp_path / "m", to="c99", live=True)
    mine = models["groups"].adapt(*shaken(20, 7))
    with pytest.raises(InputError, match="live=True cannot go on"):
        rds.export(mine, tmp_path / "m", to="c99", live=True)


@pytest.mark.parametrize("seed", [0, 1, 3, 4] if LONG else [0, 1])
def test_networks_of_any_kind_hold_what_their_last_layer_reads(seed: int, tmp_path: Path) -> None:
    drawn = draw_own(seed)
    report: Any = rds.export(drawn.estimator, tmp_path / "m", to="c99", live=True)
    assert report.live.directions == 8
