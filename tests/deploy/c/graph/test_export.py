"""`rdeepsense.export` and `profile` of networks of windows: report, judgement, refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, run_cc

import rdeepsense as rds
from rdeepsense.deploy.c import streams
from rdeepsense.deploy.c.export import C99Report
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.c.streams import played_twice, running_quality
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.deploy.options import LabelledRows
from rdeepsense.deploy.profile import forms
from rdeepsense.deploy.profile.measure import Missing
from rdeepsense.errors import InputError
from rdeepsense.networks import DeepSense, Flattened

FIT: dict[str, Any] = {"random_state": 0, "verbose": False, "effort": "quick", "device": "cpu"}


def motion(rows: int, seed: int) -> tuple[Any, Any]:
    """Windows of three channels that shake at one of three rates."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=rows)
    time = np.arange(24)[:, None] / 8
    phase = rng.uniform(0, 2 * np.pi, (rows, 1, 3))
    X = np.sin(2 * np.pi * (1 + kind)[:, None, None] * time + phase)
    return (X + 1.5 * rng.normal(size=X.shape)) * [1.0, 50.0, 1e-3] + [9.8, 0, 0], kind


@pytest.fixture(scope="module")
def classifier() -> Any:
    spec = DeepSense((2, 1), interval=8, filters=8, hidden=12)
    X, y = motion(500, 0)
    return rds.RDeepSenseClassifier(network=spec, epochs=15, **FIT).fit(X, y)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_folder_is_whole(dtype: str, classifier: Any, tmp_path: Path) -> None:
    rows = motion(200, 1)
    report = rds.export(
        classifier, tmp_path / "m", to="c99", dtype=dtype, rows=rows, name="gait", reject=0.8
    )
    assert isinstance(report, C99Report)
    assert json.loads((tmp_path / "m/report.json").read_text()) == report.to_json()
    assert report.quality is not None
    assert report.quality.before["accuracy"] > 0.6
    assert abs(report.quality.nll_change) < (1e-5 if dtype == "float32" else 0.02)
    assert report.quality.rows == (200 if dtype == "float32" else 100)
    kinds = [layer.kind for layer in report.layers]
    assert kinds.count("convolution") == 6
    assert (kinds.count("gru"), kinds[0], kinds[-1]) == (2, "spectrum", "linear")
    assert report.kept_float32 == []
    assert report.multiply_adds == report.stream.multiply_adds["window"]
    words = (tmp_path / "m/README.md").read_text()
    assert "x holds 24 times, one after the other, each 3 channels" in words
    assert "gait_push_interval(&window, x, probs, scratch)" in words
    if COMPILERS:
        files = ("selftest.c", "model.c", "weights.c", "-o", "selftest")
        run_cc(tmp_path / "m", COMPILERS[-1], *STRICT, *files)
        run_cc(tmp_path / "m", tmp_path / "m/selftest")


def test_c_calls_no_library(classifier: Any, tmp_path: Path) -> None:
    if not COMPILERS:
        pytest.skip("needs gcc or clang")
    for dtype in ("float32", "int8"):
        folder = tmp_path / dtype
        rds.export(classifier, folder, to="c99", dtype=dtype, max_nll_change=1)
        run_cc(folder, "gcc", *STRICT, "-O2", "-c", "model.c")
        told = subprocess.run(["nm", "-u", "model.o"], cwd=folder, capture_output=True, text=True)
        names = {line.split()[-1] for line in told.stdout.splitlines()}
        # What gcc itself makes of loops that copy or fill, as for dense models.
        own = {name for name in names if not name.startswith("model_")}
        assert own <= {"memset", "memcpy", "memmove", "_GLOBAL_OFFSET_TABLE_"}


def test_running_has_a_calibration_of_its_own(classifier: Any) -> None:
    fitted = classifier.fitted_
    folded = fold_graph(fitted)
    network = as_stored(folded, "float32")
    X, y = motion(200, 2)
    found = running_quality(folded, network, fitted, LabelledRows(X, y, ""))
    assert found is not None
    assert found.rows == 100
    raw = played_twice(network, X)
    probs = folded.finish(found.factor * raw, X).probs[1::2]
    assert found.after["nll"] == pytest.approx(-np.log(probs[np.arange(100), y[1::2]]).mean())
    assert found.after["accuracy"] == np.mean(probs.argmax(1) == y[1::2])
    # The trained function is another one; its figures stand beside.
    assert found.before["nll"] != pytest.approx(found.uncalibrated["nll"], abs=1e-4)
    assert found.after["nll"] < found.uncalibrated["nll"] + 0.02


def test_the_running_factor_finds_what_was_wrong(
    classifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits that are three times too large need a third, as far as the rows outweigh belief."""
    fitted = classifier.fitted_
    folded, rows = fold_graph(fitted), LabelledRows(*motion(800, 3), "")
    network = as_stored(folded, "float32")
    plain = running_quality(folded, network, fitted, rows)
    wrong = 3 * played_twice(network, rows.X)
    monkeypatch.setattr(streams, "played_twice", lambda network, X: wrong)
    found = running_quality(folded, network, fitted, rows)
    assert plain is not None
    assert found is not None
    ratio = np.log(plain.factor / found.factor) / np.log(3) * (400 + 50) / 400
    assert ratio == pytest.approx(1, abs=1e-3)
    assert found.after["nll"] < found.uncalibrated["nll"]


def test_numbers_have_streams_too(tmp_path: Path) -> None:
    X, kind = motion(200, 4)
    spec = DeepSense((3,), interval=4, filters=4, hidden=6, layers=1, pool="last")
    model = rds.RDeepSenseRegressor(network=spec, epochs=2, **FIT).fit(X, kind + 0.1)
    report = rds.export(model, tmp_path / "m", to="c99")
    assert report.to_json()["stream"]["running"]["after"].keys() == report.quality.after.keys()


def test_other_networks_and_their_refusals(tmp_path: Path) -> None:
    X, y = motion(120, 5)
    model = rds.RDeepSenseClassifier(network=Flattened((8,)), epochs=1, **FIT).fit(X, y)
    report = rds.export(model, tmp_path / "m", to="c99")
    assert "stream" not in report.to_json()
    for options, message in (
        ({"dtype": "float16"}, "dtype='float16' is for fully-connected networks; accepted: 'float"),
        ({"epistemic": "laplace"}, "epistemic='laplace' is for fully-connected networks"),
        ({"live": True}, "this model predicts classes; model.live.. learns on in Python$"),
        ({"dtype": "int8", "fine_tune": True}, "fine_tune=True is for fully-connected networks"),
        ({"dtype": "int8", "max_nll_change": -1.0}, "int8 moves the NLL from"),
    ):
        with pytest.raises(InputError, match=message):
            rds.export(model, tmp_path / "other", to="c99", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
def test_its_forms_are_profiled(classifier: Any) -> None:
    chosen = ["onnxruntime", "c-float32", "c-int8", "c-exact", "c-running", "point", "c-float16"]
    report = rds.profile(classifier, candidates=chosen, rounds=1)
    forms: dict[str, Any] = {one.name: one for one in report.candidates}
    assert [one.to_json()["available"] for one in report.candidates] == [True] * 5 + [False] * 2
    assert report.layers == (72, 3)
    costs = [forms[name].multiply_adds for name in ("c-float32", "c-exact", "c-running")]
    assert costs == sorted(costs, reverse=True)
    assert forms["onnxruntime"].off_by_stds < 1e-5
    assert forms["c-float32"].off_by_stds < 1e-5
    assert forms["c-int8"].weight_bytes < 0.4 * forms["c-float32"].weight_bytes
    assert "fully-connected networks" in forms["point"].reason
    assert "fully-connected networks" in forms["c-float16"].reason


def test_what_is_profiled_by_default(classifier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "candidate", lambda profiled, name: Missing(name, ""))
    names = [one.name for one in rds.profile(classifier, rounds=1).candidates]
    assert names == ["torch", "onnxruntime", "folded", "ctypes", "c-float32", "c-int8",
                     "c-exact", "c-running"]  # fmt: skip


def walks(people: int, seconds: float, seed: int) -> dict[str, Any]:
    """A log at 20 a second, in which the frequency is the class, one recording for each person."""
    rng = np.random.default_rng(seed)
    parts = []
    for person in range(people):
        t = np.arange(0, seconds, 0.05)
        kind = (t // 8).astype(int) % 2
        wave = np.sin(2 * np.pi * np.array([1.0, 3.0])[kind] * t + rng.uniform(0, 6))
        sensed = wave[:, None] * [1, 0.5, 0.2] + rng.normal(0, 0.7, (len(t), 3))
        axes = dict(zip(("ax", "ay", "az"), sensed.T, strict=True))
        parts.append({"t": t, **axes, "kind": kind, "user": np.full(len(t), person)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_recordings_are_played_as_they_came() -> None:
    sensors = {"accelerometer": ["ax", "ay", "az"]}
    options = {"time": "t", "sensors": sensors, "window": "2s", "hop": "0.4s", "rate": 20}
    cut = rds.windows(walks(4, 40, 0), **options, by="user", label="kind")
    spec = DeepSense((3,), interval=4, filters=4, hidden=6, layers=1)
    model = rds.RDeepSenseClassifier(network=spec, epochs=2, **FIT).fit(cut, cut.y)
    fitted = model.fitted_
    folded = fold_graph(fitted)
    network = as_stored(folded, "float32")
    assert network.stream is not None
    new = rds.windows(walks(3, 30, 1), **options, by="user", label="kind")
    rows = LabelledRows.of(fitted, (new, new.y))
    assert rows.runs is not None
    assert len(rows.runs) == 3
    found = running_quality(folded, network, fitted, rows)
    assert found is not None
    assert found.played == "whole recordings"
    middle = rows.runs[1]
    assert found.rows == middle.stop - middle.start  # the second of three people judges
    # Windows that do not overlap hold each sample of a recording once.
    own = rows.X[middle][::5]
    size = network.stream.sizes[0]
    intervals = network.stream.found(network.graph.read(own)).reshape(1, -1, size)
    for end in (1, 2, len(own)):
        raw = network.stream.raw(intervals[:, : 10 * end])
        played = streams.played_on(network, rows.X, rows.runs, 2)[middle][5 * (end - 1)]
        np.testing.assert_allclose(played, raw[0], rtol=1e-9, atol=1e-12)
