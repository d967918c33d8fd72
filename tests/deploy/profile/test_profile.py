"""Forms of a model side by side: who takes turns when, what counts, what the C computes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.profile import baselines as rivals
from rdeepsense.deploy.profile import devices as profiles
from rdeepsense.deploy.profile import measure as profiling
from rdeepsense.deploy.profile.candidates import check_names, form
from rdeepsense.deploy.profile.native import Native
from rdeepsense.deploy.profile.subject import Form, Missing, Subject, timed
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
def subject(folder: Path, rows: tuple[Any, Any]) -> Subject:
    rds.RDeepSenseRegressor(**FIT).fit(*rows).save(folder / "model")
    return Subject(folder / "model", folder)


def scripted(name: str, turns: list[list[float]], log: list[tuple[str, int]]) -> Form:
    """A form whose times are given, turn by turn; the first is its warm-up."""
    left = iter(turns)

    def seconds(count: int) -> Any:
        log.append((name, count))
        return np.array(next(left))

    return Form(name, "made up", seconds, weight_bytes=8, multiply_adds=250_000)


def test_forms_take_turns_and_the_best_round_counts() -> None:
    log: list[tuple[str, int]] = []
    slow = scripted("slow", [[1e-3], [5e-3, 5e-3], [1e-3, 3e-3], [4e-3, 4e-3]], log)
    fast = scripted("fast", [[1e-5], [2e-6, 9e-6], [4e-6, 4e-6], [8e-6, 8e-6]], log)
    found = profiling.latencies([slow, fast], rounds=3)
    assert found["slow"] == {"microseconds": 2000, "p99_microseconds": pytest.approx(2980)}
    assert found["fast"] == {"microseconds": 4, "p99_microseconds": pytest.approx(4)}
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
    def forms() -> list[Form | Missing]:
        turns = [[0.05], [0.1, 0.1], [0.2] * 3]
        return [scripted("one", turns, []), Missing("two", "not here")]

    found = profiling.profile(forms(), 1, None, profiles.profile("Intel Edison"))
    one, two = found["forms"]
    assert one["energy"] == "estimated"
    assert one["millijoules"] == pytest.approx(1.0)  # 250,000 at 250 million a second and 1 W
    assert one["instructions"] is None
    assert two == {"name": "two", "available": False, "reason": "not here"}
    assert found["energy"].startswith("estimated for Intel Edison from the multiply-adds")

    class Meter:
        name = "a made-up meter"

        def joules(self, work: Callable[[], None]) -> float:
            work()
            return 0.6

    found = profiling.profile(forms(), 1, Meter(), profiles.DEFAULT)
    assert found["energy"] == "measured: a made-up meter"
    assert found["forms"][0]["energy"] == "measured"
    assert found["forms"][0]["millijoules"] == pytest.approx(600 / 3)  # 0.3 s are three of 0.1 s


@needs_cc
def test_rivals_compute_what_they_should(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    folded, row = subject.folded, subject.row
    mean, std = folded.forward(row[None].astype(np.float64))[:, 0]

    def predicted(program: Any) -> Any:
        native = Native(program, row)
        assert native.seconds(1).shape == (1,)
        return native.out

    point = predicted(rivals.point_program(folded))
    np.testing.assert_allclose(point, [mean, [0, 0]], rtol=1e-5)
    np.testing.assert_allclose(predicted(rivals.ssp(folded, 3)), [mean, std], rtol=1e-5)
    many, few = (predicted(rivals.mcdrop(folded, k)) for k in (999, 2))
    assert (many[1] > 0).all()
    assert not np.array_equal(many, few)
    assert np.abs(many[0] - mean).max() < many[1].max()
    monkeypatch.setattr(rivals, "DROP_PROB", 0.0)
    np.testing.assert_allclose(predicted(rivals.mcdrop(folded, 5)), [mean, [0, 0]], rtol=1e-5)


@needs_cc
def test_rivals_of_classes(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = rds.RDeepSenseClassifier(**FIT).fit(X, (y[:, 0] > 7).astype(int))
    folded = fold(model)
    wanted = folded.forward(X[:1])
    for program in (rivals.point_program(folded), rivals.ssp(folded, 2)):
        native = Native(program, X[0])
        native.seconds(1)
        np.testing.assert_allclose(native.out, wanted, rtol=1e-5)
    native = Native(rivals.mcdrop(folded, 4), X[0])
    native.seconds(1)
    assert native.out.sum() == pytest.approx(1, rel=1e-6)
    assert not np.allclose(native.out, wanted, rtol=1e-5)


def test_the_row_is_typical(subject: Subject) -> None:
    fired = np.zeros(len(subject.rows))
    h = subject.rows - subject.folded.centre
    for layer in subject.folded.layers[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0)
        fired += np.count_nonzero(h, axis=1)
    place = np.flatnonzero((subject.rows.astype(np.float32) == subject.row).all(1))
    assert fired[place[0]] == np.sort(fired)[len(fired) // 2]


def test_python_forms_run(subject: Subject) -> None:
    for name in ("torch", "folded", "torch-mcdrop-2", "torch-ssp-2"):
        found = form(subject, name)
        assert isinstance(found, Form), found
        assert (found.seconds(3) > 0).all()
        assert found.name == name


def test_bytes_are_those_of_all_tables(subject: Subject) -> None:
    # 3-12-8-4: 36 + 96 + 32 weights, 24 biases, 3 centres and scales, 2 spreads
    both = 36 + 96 + 32 + 24 + 6 + 2
    assert rivals.ssp(subject.folded, 5).bytes == 5 * 4 * both
    mean = both - 16 - 2
    assert rivals.point_program(subject.folded).bytes == 4 * mean
    assert rivals.mcdrop(subject.folded, 10).bytes == 4 * mean


@needs_cc
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_instructions_are_of_one_prediction(subject: Subject) -> None:
    alone: Any = form(subject, "c-float32")
    three: Any = form(subject, "ssp-3")
    assert alone.off_by < 1e-5
    assert three.off_by < 1e-5
    count = alone.instructions()
    assert count == alone.instructions()
    assert 8 * count > 36 + 96 + 32  # of eight lanes
    assert 3 * count < three.instructions() < 3 * count + 400
    assert three.multiply_adds == 3 * alone.multiply_adds == 3 * (36 + 96 + 32)


@needs_cc
def test_peak_memory(subject: Subject) -> None:
    peaks = [form(subject, name).peak_bytes() for name in ("c-float32", "folded")]  # type: ignore[union-attr]
    if sys.platform == "linux":
        assert 0 < peaks[0] < 20e6 < peaks[1] < 200e6


def test_what_is_not_here_is_told(
    subject: Subject, rows: tuple[Any, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    missing = form(subject, "onnxruntime")
    assert isinstance(missing, Missing)
    assert missing.reason.startswith("onnxruntime is not installed; it comes with")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    for name in ("c-float16", "point", "mcdrop-10", "ssp-5", "ctypes"):
        missing = form(subject, name)
        assert isinstance(missing, Missing)
        assert "needs a C compiler: none of cc, gcc, clang was found" in missing.reason
    rds.RDeepSenseRegressor(keep_rows=0, **FIT).fit(*rows).save(folder / "without")
    missing = form(Subject(folder / "without", folder), "c-int8")
    assert missing == Missing("c-int8", "int8 needs rows to calibrate the activations on")


def test_names() -> None:
    check_names(["torch", "mcdrop-3", "ssp-20", "torch-ssp-5", "c-int8"])
    with pytest.raises(InputError, match="--against 'c-int4' is unknown; accepted: torch, onnx"):
        check_names(["c-int4"])
    with pytest.raises(InputError, match="ssp-1: at least 2 passes"):
        check_names(["ssp-1"])
    with pytest.raises(InputError, match="names 'torch' twice"):
        check_names(["torch", "torch"])
