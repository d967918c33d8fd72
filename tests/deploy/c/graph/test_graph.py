"""Networks of windows in C: what torch says, in every way to call it, and no library."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deploy.c.runtime.configured import FILES, sections
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.random_windows import DrawnWindows, draw_deepsense, draw_own
from torch import Tensor, nn

from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored, bytes_of
from rdeepsense.deploy.c.streams import StreamCost
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.deploy.folded.graph import FoldedGraph, Graph
from rdeepsense.deploy.quality import distribution, figures
from rdeepsense.deploy.quantise import NetworkRunner
from rdeepsense.deploy.tracing import stream_of, trace
from rdeepsense.estimators import RDeepSenseRegressor
from rdeepsense.networks import DeepSense

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
MODELS = range(50) if LONG else range(6)
BOUND = 5e-5  # of the spread of logits, means and log stds
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def columns(found: Any) -> Any:
    """What the last layer's numbers can be told from: logits, or means and log stds."""
    found = np.asarray(found, dtype=np.float64)
    if found.ndim == 2:
        logits = np.log(found)
        return logits - logits.mean(1, keepdims=True)
    return np.concatenate([found[0], found[1].mean() * np.log(found[1])], axis=1)


def torch_says(drawn: DrawnWindows, X: Any) -> Any:
    if hasattr(drawn.estimator, "classes_"):
        return drawn.estimator.predict_proba(X)
    pair = drawn.estimator.predict(X, return_std=True)
    return np.stack([part.reshape(len(X), -1) for part in pair])


def apart(drawn: DrawnWindows, X: Any, found: Any) -> float:
    """How far predictions are from torch's, as a share of their spread over the windows."""
    wanted, told = columns(torch_says(drawn, X)), columns(found)
    return float(np.abs(told - wanted).max() / wanted.std())


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("draw", [draw_deepsense, draw_own])
@pytest.mark.parametrize("seed", MODELS)
def test_random_networks_agree_with_torch(
    draw: Callable[[int], DrawnWindows], seed: int, tmp_path: Path
) -> None:
    drawn = draw(seed)
    X = drawn.X[:12].astype(np.float32)
    folded = fold_graph(drawn.estimator.fitted_)
    source = GraphSource(folded, as_stored(folded, "float32"))
    every = [(cc, level) for cc in COMPILERS for level in ("-O0", "-O3")]
    folder = write(source, tmp_path / "m", X)
    for cc, level in every if LONG else every[seed % 2 :: 2]:
        status, found = predict(library(folder, cc, level), source, X)
        assert set(status) == {0}
        assert apart(drawn, X, found) < BOUND, f"{drawn.name} {cc} {level}"
    check_int8(folded, drawn, X, tmp_path)
    if LONG or seed < 2:
        for one in (folder, tmp_path / "int8"):
            files = ("selftest.c", "model.c", "weights.c", "-o", "selftest")
            run_cc(one, "gcc", *STRICT, *SANITISED, *files)
            run_cc(one, one / "selftest")


def check_int8(folded: FoldedGraph, drawn: DrawnWindows, X: Any, folder: Path) -> None:
    """C computes what Python says that int8 does, and that is near what was trained."""
    network = as_stored(folded, "int8")
    source = GraphSource(folded, network)
    _, found = predict(library(write(source, folder / "int8", X), "gcc"), source, X)
    told = folded.finish(network.raw(X), X)
    parts = told.probs if hasattr(told, "probs") else np.stack([told.mean, told.std])
    wanted = columns(parts)
    far = np.abs(columns(found) - wanted) / wanted.std()
    assert np.quantile(far, 0.8) < BOUND, drawn.name
    assert far.max() < 0.02, drawn.name  # a number amid two bytes may become either
    assert apart(drawn, X, found) < 0.3, drawn.name


@pytest.mark.parametrize("draw", [draw_deepsense, draw_own])
def test_int8_moves_the_nll_by_little(draw: Callable[[int], DrawnWindows]) -> None:
    """On targets drawn from what each network itself predicts."""
    for seed in MODELS:
        drawn, rng = draw(seed), np.random.default_rng(seed)
        fitted, X = drawn.estimator.fitted_, np.repeat(drawn.X, 5, axis=0)
        trained = fitted.distribution(X)
        if trained.is_categorical:
            y = np.array([rng.choice(len(p), p=p) for p in trained.mean])
        else:
            y = trained.mean + trained.std * rng.normal(size=trained.mean.shape)
        folded = fold_graph(fitted)
        found = NetworkRunner(folded, as_stored(folded, "int8")).run(X)
        before, after = (figures(d, y)["nll"] for d in (trained, distribution(trained, found)))
        assert abs(after - before) < 0.02, drawn.name


class States(nn.Module):
    """A recurrent layer's last states, and a Linear layer."""

    def __init__(self, turn: nn.Module) -> None:
        super().__init__()
        self.turn, self.last = turn, nn.Linear(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.turn(x)[0][:, -1])


FEW: dict[str, nn.Module] = {
    "dense": nn.Sequential(nn.Flatten(), nn.Linear(24, 5), nn.Tanh(), nn.Linear(5, 1)),
    "gru": States(nn.GRU(3, 5, batch_first=True)),
    "lstm": States(nn.LSTM(3, 5, batch_first=True)),
    "pooled": nn.Sequential(
        nn.Conv1d(8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(5, 1)
    ),
    "plane": nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 4, 3, 2, 1), nn.Sigmoid(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8, 1),
    ),
}  # fmt: skip


@pytest.mark.compilers
@pytest.mark.everyday(2, "compilers")
@pytest.mark.parametrize("name", FEW)
def test_networks_of_few_kinds_compile_without_a_warning(name: str, tmp_path: Path) -> None:
    """What a network has none of leaves nothing behind that is not used; NaN counts as the mean."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 8, 3)), rng.normal(size=40)
    X[::3, 0, 1] = np.nan
    torch.manual_seed(0)
    model = RDeepSenseRegressor(
        network=FEW[name], missing="mean", epochs=1, random_state=0, verbose=False, effort="quick"
    ).fit(X, y)
    folded = fold_graph(model.fitted_)
    for dtype, cc in (("float32", COMPILERS[0]), ("int8", COMPILERS[-1])):
        source = GraphSource(folded, as_stored(folded, dtype))
        folder = write(source, tmp_path / dtype, X)
        status, found = predict(library(folder, cc, "-O2"), source, X)
        assert set(status) == {0}
        mean, std = model.predict(X, return_std=True)
        bound = 1e-5 if dtype == "float32" else 0.1
        assert np.abs((found[0][:, 0] - mean) / std).max() < bound
        run_cc(folder, cc, *STRICT, "selftest.c", "model.c", "weights.c", "-o", "selftest")
        run_cc(folder, folder / "selftest")


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, ctypes.CDLL]:
    """A DeepSense of several intervals in C."""
    drawn = next(one for one in map(draw_deepsense, range(9)) if stream_count(one) > 3)
    folded = fold_graph(drawn.estimator.fitted_)
    source = GraphSource(folded, as_stored(folded, "float32"), running=0.5)
    folder = write(source, tmp_path_factory.mktemp("c") / "m", drawn.X)
    return drawn, source, library(folder, COMPILERS[0], "-O2")


def stream_count(drawn: DrawnWindows) -> int:
    stream = fold_graph(drawn.estimator.fitted_).stream
    return 0 if stream is None else stream.count


def stepped(steady: Any, way: str, begin: str, X: Any) -> tuple[list[int], Any]:
    """Status and outputs after each interval of windows one after the other."""
    _, source, built = steady
    state = np.zeros(100_000, np.uint8)
    scratch = np.full(source.scratch_bytes() // 4 + 1, np.nan, np.float32)
    getattr(built, begin)(pointer(state))
    intervals = np.ascontiguousarray(X, np.float32).reshape(-1, source.stream.read)
    parts = len(source.model.results)
    out = np.full((len(intervals), parts, source.model.outputs), -7, np.float32)
    status = [
        getattr(built, way)(pointer(state), pointer(x), *map(pointer, told), pointer(scratch))
        for x, told in zip(intervals, out, strict=True)
    ]
    return status, out


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_intervals_give_the_bits_of_their_window(steady: Any) -> None:
    drawn, source, built = steady
    X, count = drawn.X[:4].astype(np.float32), source.stream.count
    status, out = stepped(steady, "model_push_interval", "model_begin_window", X)
    assert set(status[: count - 1]) == {64}
    assert np.isnan(out[: count - 1]).all()
    assert set(status[count - 1 :]) == {0}
    length = len(X[0]) // count
    stream = X.reshape(-1, X.shape[2])
    for t in range(count - 1, len(out)):
        window = stream[(t + 1 - count) * length : (t + 1) * length]
        wanted = predict(built, source, window[None])[1]
        assert np.array_equal(out[t].reshape(wanted.shape), wanted)


def test_running_goes_on_with_its_states(steady: Any) -> None:
    drawn, source, _ = steady
    stream, folded = source.stream, source.folded
    X = drawn.X[:3].astype(np.float32)
    status, out = stepped(steady, "model_run_interval", "model_begin_run", X)
    assert set(status) == {64, 0}
    found = stream.found(source.network.graph.read(X)).reshape(1, 3 * stream.count, -1)
    wanted = folded.output.finish(stream.raw(found))
    if folded.facts.is_classifier:
        wanted = folded.output.finish(0.5 * stream.raw(found)).probs
        np.testing.assert_allclose(out[-1], wanted, atol=1e-5)
    else:
        np.testing.assert_allclose(out[-1][0], wanted.mean[0], rtol=1e-5)
        np.testing.assert_allclose(out[-1][1], 0.5 * wanted.std[0], rtol=1e-5)
    assert not np.allclose(out[-1], out[stream.count - 1], rtol=1e-3)


def test_one_bad_number_is_told_for_as_long_as_its_window(steady: Any) -> None:
    drawn, source, _ = steady
    count = source.stream.count
    for value, flag in ((np.nan, 1), (3e38, 2)):
        X = drawn.X[:3].astype(np.float32)
        X[1, 0, 0] = value
        for way, begin in (("push_interval", "begin_window"), ("run_interval", "begin_run")):
            status, out = stepped(steady, f"model_{way}", f"model_{begin}", X)
            assert status[count - 1] == 0
            assert status[count : 2 * count] == [flag] * count
            assert status[2 * count :] == [0] * count
            assert np.isnan(out[count : 2 * count]).all() == (flag == 1)
            assert np.isfinite(out[2 * count :]).all()


@pytest.mark.parametrize("cc", COMPILERS)
def test_the_runtime_compiles_as_it_lies(cc: str, steady: Any, tmp_path: Path) -> None:
    drawn, source, _ = steady
    for name, text in (sections(source, drawn.X) | {"steps.h": source.steps.text}).items():
        (tmp_path / name).write_text(text)
    run_cc(tmp_path, cc, *STRICT, "-Wundef", "-O1", "-I.", *FILES, "-o", "selftest")
    run_cc(tmp_path, tmp_path / "selftest")


def test_streams_cost_what_they_may() -> None:
    """The default network on 5 s of two sensors: a third of a window, and a fifteenth."""
    body = DeepSense().build((240, 6), 6, 0).double().eval()
    graph = Graph((240, 6), np.zeros(6), np.ones(6), trace(body, (240, 6)))
    stream = stream_of(body, graph)
    assert stream is not None
    cost = StreamCost.of(stream, 6, None)
    assert (cost.times_of_an_interval, cost.intervals) == (12, 20)
    whole = cost.multiply_adds["window"]
    assert whole == graph.multiply_adds
    assert cost.multiply_adds["exact"] < whole / 3
    assert cost.multiply_adds["running"] < whole / 15


def test_bytes_are_whole_multiples_that_stay() -> None:
    weight = np.random.default_rng(0).normal(size=(5, 3, 1, 2))
    weight[2] = 0
    whole, factor = bytes_of(weight)
    assert np.abs(whole.reshape(5, -1)).max(1).tolist() == [127, 127, 0, 127, 127]
    rounded = whole * factor.astype(float).reshape(-1, 1, 1, 1)
    assert np.abs(rounded - weight).max() <= 0.5 * factor.max() * 1.001
    again = bytes_of(rounded)
    assert np.array_equal(again[0], whole)
    assert np.array_equal(again[1][[0, 1, 3, 4]], factor[[0, 1, 3, 4]])


WAYS = {
    "lists": ("-DSMALL_STACK",),
    "SSE2": ("-O2",),
    "AVX2": ("-O2", "-march=x86-64-v3"),
    "AVX-512": ("-O2", "-march=x86-64-v4"),
}


@pytest.mark.compilers
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these levels are of x86")
@pytest.mark.parametrize("draw", [draw_deepsense, draw_own])
def test_every_register_and_number_of_rows_agrees(
    draw: Callable[[int], DrawnWindows], tmp_path: Path
) -> None:
    """Numbers that are listed, or in registers of any width, say the same; intervals its bits."""
    flags = Path("/proc/cpuinfo").read_text()
    for seed in MODELS if LONG else range(2):
        drawn = draw(seed)
        folded = fold_graph(drawn.estimator.fitted_)
        source = GraphSource(folded, as_stored(folded, "float32"))
        folder = write(source, tmp_path / str(seed), drawn.X[:4])
        said = {}
        for name, options in WAYS.items():
            if {"AVX2": "avx2", "AVX-512": "avx512vl"}.get(name, "") not in flags:
                continue
            said[name] = columns(predict(library(folder, "gcc", *options), source, drawn.X[:4])[1])
            files = ("selftest.c", "model.c", "weights.o", "-o", "selftest")
            run_cc(folder, "gcc", *STRICT, *options, *files)
            run_cc(folder, folder / "selftest")
        wanted = said.pop("lists")
        for name, found in said.items():
            assert np.abs(found - wanted).max() < BOUND * wanted.std(), (drawn.name, name)
