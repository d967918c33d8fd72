"""Forms of a model side by side: who takes turns when, what counts, what the C computes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.folded_models import forward

import rdeepsense as rds
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.profile import forms
from rdeepsense.deploy.profile.forms import (
    Native,
    ProfiledModel,
    candidate,
    check_names,
    energy_label,
)
from rdeepsense.deploy.profile.measure import (
    DEFAULT,
    Measured,
    Missing,
    ProfileCandidate,
    device_named,
    latencies,
    measure,
    timed,
)
from rdeepsense.errors import InputError

FIT: dict[str, Any] = {"hidden": (12, 8), "epochs": 3, "random_state": 0, "verbose": False}
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(autouse=True)
def _cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 100, 0.01]
    return X, np.stack([X[:, 0] + 7, X[:, 1]], 1) + 0.1 * rng.normal(size=(200, 2))


@pytest.fixture(scope="module")
def profiled(folder: Path, rows: tuple[Any, Any]) -> ProfiledModel:
    return ProfiledModel.of(rds.RDeepSenseRegressor(**FIT, effort="quick").fit(*rows), folder)


def scripted(name: str, turns: list[list[float]], log: list[tuple[str, int]]) -> ProfileCandidate:
    """A form whose times are given, turn by turn; the first is its warm-up."""
    left = iter(turns)

    def seconds(count: int) -> Any:
        log.append((name, count))
        return np.array(next(left))

    return ProfileCandidate(name, "made up", seconds, weight_bytes=8, multiply_adds=250_000)


def test_forms_take_turns_and_the_best_round_counts() -> None:
    log: list[tuple[str, int]] = []
    slow = scripted("slow", [[1e-3], [5e-3, 5e-3], [1e-3, 3e-3], [4e-3, 4e-3]], log)
    fast = scripted("fast", [[1e-5], [2e-6, 9e-6], [4e-6, 4e-6], [8e-6, 8e-6]], log)
    found = latencies([slow, fast], rounds=3)
    assert found["slow"] == (2000, pytest.approx(2980))
    assert found["fast"] == (4, pytest.approx(4))
    # 20 ms of 1 ms are too few for a percentile, so 100; 20 ms of 10 us are 2,000
    turns = [("slow", 100), ("fast", 2000)]
    assert log == [("slow", 5), ("fast", 5), *turns * 3]


def test_each_call_is_timed() -> None:
    now = 0.0

    def call() -> None:
        nonlocal now
        now += 1.0 + now

    assert timed(call, lambda: now)(4).tolist() == [1, 2, 4, 8]


def test_energy_is_estimated_or_measured_and_labelled() -> None:
    def candidates() -> list[ProfileCandidate | Missing]:
        turns = [[0.05], [0.1, 0.1], [0.2] * 3]
        return [scripted("one", turns, []), Missing("two", "not here")]

    one, two = measure(candidates(), 1, None, device_named("Intel Edison"))
    assert isinstance(one, Measured)
    assert one.energy == "estimated"
    assert one.millijoules == pytest.approx(1.0)  # 250,000 at 250 million a second and 1 W
    assert one.instructions is None
    assert list(one.to_json())[:2] == ["name", "available"]
    assert two.to_json() == {"name": "two", "available": False, "reason": "not here"}
    said = energy_label(None, DEFAULT)
    assert said.startswith("estimated for Intel Edison from the multiply-adds")

    class Meter:
        name = "a made-up meter"

        def joules(self, work: Callable[[], None]) -> float:
            work()
            return 0.6

    assert energy_label(Meter(), DEFAULT) == "measured: a made-up meter"
    one, _ = measure(candidates(), 1, Meter(), DEFAULT)
    assert isinstance(one, Measured)
    assert one.energy == "measured"
    assert one.millijoules == pytest.approx(600 / 3)  # 0.3 s are three of 0.1 s


@pytest.mark.slow
@needs_cc
def test_baselines_compute_what_they_should(
    profiled: ProfiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded, row = profiled.folded, profiled.row
    mean, std = forward(folded, row[None].astype(np.float64))[:, 0]

    def predicted(program: Any) -> Any:
        native = Native(program, row)
        assert native.seconds(1).shape == (1,)
        return native.out

    point = predicted(forms.point_program(folded))
    np.testing.assert_allclose(point, [mean, [0, 0]], rtol=1e-5)
    np.testing.assert_allclose(predicted(forms.ssp(folded, 3)), [mean, std], rtol=1e-5)
    many, few = (predicted(forms.mcdrop(folded, k)) for k in (999, 2))
    assert (many[1] > 0).all()
    assert not np.array_equal(many, few)
    assert np.abs(many[0] - mean).max() < many[1].max()
    monkeypatch.setattr(forms, "DROP_PROB", 0.0)
    np.testing.assert_allclose(predicted(forms.mcdrop(folded, 5)), [mean, [0, 0]], rtol=1e-5)


@pytest.mark.slow
@needs_cc
def test_baselines_of_classes(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = rds.RDeepSenseClassifier(**FIT, effort="quick").fit(X, (y[:, 0] > 7).astype(int))
    folded = fold(model)
    wanted = forward(folded, X[:1])
    for program in (forms.point_program(folded), forms.ssp(folded, 2)):
        native = Native(program, X[0])
        native.seconds(1)
        np.testing.assert_allclose(native.out, wanted, rtol=1e-5)
    native = Native(forms.mcdrop(folded, 4), X[0])
    native.seconds(1)
    assert native.out.sum() == pytest.approx(1, rel=1e-6)
    assert not np.allclose(native.out, wanted, rtol=1e-5)


def test_the_row_is_typical(profiled: ProfiledModel) -> None:
    fired = np.zeros(len(profiled.rows))
    h = profiled.rows - profiled.folded.layers.centre
    for layer in profiled.folded.layers.dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0)
        fired += np.count_nonzero(h, axis=1)
    place = np.flatnonzero((profiled.rows.astype(np.float32) == profiled.row).all(1))
    assert fired[place[0]] == np.sort(fired)[len(fired) // 2]


def test_python_forms_run(profiled: ProfiledModel) -> None:
    for name in ("torch", "folded", "torch-mcdrop-2", "torch-ssp-2"):
        found = candidate(profiled, name)
        assert isinstance(found, ProfileCandidate), found
        assert (found.seconds(3) > 0).all()
        assert found.name == name


def test_bytes_are_those_of_all_tables(profiled: ProfiledModel) -> None:
    # 3-12-8-4: 36 + 96 + 32 weights, 24 biases, 3 centres and scales, 2 spreads
    both = 36 + 96 + 32 + 24 + 6 + 2
    assert forms.ssp(profiled.folded, 5).bytes == 5 * 4 * both
    mean = both - 16 - 2
    assert forms.point_program(profiled.folded).bytes == 4 * mean
    assert forms.mcdrop(profiled.folded, 10).bytes == 4 * mean


GUARD = 100  # instructions that three inputs and two outputs may cost; baselines have none


@pytest.mark.slow
@needs_cc
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_instructions_are_of_one_prediction(profiled: ProfiledModel) -> None:
    alone: Any = candidate(profiled, "c-float32")
    three: Any = candidate(profiled, "ssp-3")
    assert alone.off_by < 1e-5
    assert three.off_by < 1e-5
    count = alone.instructions()
    assert count == alone.instructions()
    assert 8 * count > 36 + 96 + 32  # of eight lanes
    assert 3 * (count - GUARD) < three.instructions() < 3 * count + 400
    assert three.multiply_adds == 3 * alone.multiply_adds == 3 * (36 + 96 + 32)


@pytest.mark.slow
@needs_cc
def test_peak_memory(profiled: ProfiledModel) -> None:
    peaks = [candidate(profiled, name).peak_bytes() for name in ("c-float32", "folded")]  # type: ignore[union-attr]
    if sys.platform == "linux":
        assert 0 < peaks[0] < 20e6 < peaks[1] < 200e6


def test_what_is_not_here_is_told(
    profiled: ProfiledModel, rows: tuple[Any, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    missing = candidate(profiled, "onnxruntime")
    assert isinstance(missing, Missing)
    assert missing.reason.startswith("onnxruntime is not installed; it comes with")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    for name in ("c-float16", "point", "mcdrop-10", "ssp-5", "ctypes"):
        missing = candidate(profiled, name)
        assert isinstance(missing, Missing)
        assert "needs a C compiler: none of cc, gcc, clang was found" in missing.reason
    without = rds.RDeepSenseRegressor(keep_rows=0, **FIT, effort="quick").fit(*rows)
    missing = candidate(ProfiledModel.of(without, folder), "c-int8")
    assert isinstance(missing, Missing)
    assert missing.reason.startswith("int8 needs rows to calibrate the activations on")


def test_names() -> None:
    check_names(["torch", "mcdrop-3", "ssp-20", "torch-ssp-5", "c-int8"])
    with pytest.raises(InputError, match="candidates='c-int4' is unknown; accepted: torch, onnx"):
        check_names(["c-int4"])
    with pytest.raises(InputError, match="ssp-1': at least 2 passes"):
        check_names(["ssp-1"])
    with pytest.raises(InputError, match="names 'torch' twice"):
        check_names(["torch", "torch"])
