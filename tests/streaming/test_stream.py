"""Decisions of a stream of samples: each fault with what is decided, or said, of it."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streaming.sampled_models import CHANNELS, HOP, RATE, SAMPLES, SHAKES, model, shaken, windows

import rdeepsense as rds
from rdeepsense.deploy.fold import fold_graph, save
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.status import Status


@pytest.fixture(scope="module")
def folded() -> Any:
    return fold_graph(model("classes").fitted_)


def walk(seconds: float, rate: float = RATE, seed: int = 0, activity: str = "walk") -> Any:
    """Seconds and samples of one activity."""
    t = np.arange(round(seconds * rate)) / rate
    return t, shaken(np.random.default_rng(seed), t, activity)


def decided(stream: rds.Stream, t: Any, values: Any) -> list[rds.Decision]:
    return [one for time, x in zip(t, values, strict=True) for one in stream.push(time, x)]


def starts(decisions: list[rds.Decision]) -> list[float]:
    """Of those that have an answer."""
    return [round(one.start, 6) for one in decisions if one.status != Status.NOT_ENOUGH_DATA]


def begins(decisions: list[rds.Decision]) -> list[float]:
    return [round(one.start, 6) for one in decisions if one.status == Status.NOT_ENOUGH_DATA]


def test_windows_are_predicted_as_they_are(folded: Any) -> None:
    t, values = walk(10)
    found = decided(rds.Stream(folded), t, values)
    assert begins(found) == [0.0]
    assert starts(found) == [0.5 * k for k in range(17)]
    single = values.astype(np.float32)
    windows = np.stack([single[HOP * k : HOP * k + SAMPLES] for k in range(17)])
    wanted = folded.run(windows).probs
    np.testing.assert_allclose([one.probs for one in found[1:]], wanted, rtol=1e-12)
    assert found[1].end == pytest.approx((SAMPLES - 1) / RATE)
    assert found[0].label is None
    assert np.isnan(found[0].probability)


def test_an_estimator_flags_unlike_windows_as_its_export_does(tmp_path: Path) -> None:
    watchful = copy.deepcopy(model("classes"))
    watchful.fit_novelty(windows())
    rds.export(watchful, tmp_path / "watch", to="folded")
    t, values = walk(10)
    values[len(t) // 2 :] *= -1  # a phone put back upside down
    ways = (watchful, tmp_path / "watch")
    found, wanted = ([one.status for one in decided(rds.Stream(way), t, values)] for way in ways)
    assert found == wanted
    assert any(status & Status.UNLIKE for status in found)
    assert not all(status & Status.UNLIKE for status in found[1:])


def test_a_label_comes_stays_and_changes(folded: Any) -> None:
    """Smoothing of the model's own probabilities, worked out beside."""
    parts = [walk(20, seed=k, activity=one)[1] for k, one in enumerate(SHAKES)]
    values = np.concatenate(parts)
    stream = rds.Stream(folded, rds.Smoothing(evidence=0.5, change=0.05, at=0.7))
    found = decided(stream, np.arange(len(values)) / RATE, values)[1:]
    prior, belief, label = folded.facts.guard.fallback, folded.facts.guard.fallback, None
    for one in found:
        if not one.status & ~Status.UNSURE:
            ahead = 0.95 * belief + 0.05 * prior
            belief = ahead * np.sqrt(np.maximum(one.probs, 1e-6) / prior)
            belief /= belief.sum()
        else:
            belief = 0.95 * belief + 0.05 * prior
        classes = list(folded.facts.classes)
        if belief.max() >= 0.7:
            label = classes[int(belief.argmax())]
        elif label is not None and belief[classes.index(label)] < 0.3:
            label = None
        assert one.label == label
        shown = belief.max() if label is None else belief[classes.index(label)]
        assert one.probability == pytest.approx(shown, rel=1e-9)
    assert len({one.label for one in found} - {None}) >= 2


def test_gaps_end_windows_and_are_told_once(folded: Any) -> None:
    t, values = walk(12)
    t = np.where(t >= 6, t + 3, t)
    found = decided(rds.Stream(folded), t, values)
    assert begins(found) == [0.0, 9.0]
    assert starts(found) == [0.5 * k for k in range(9)] + [9 + 0.5 * k for k in range(9)]
    assert found[10].status == Status.NOT_ENOUGH_DATA
    # Gaps before a window is full are not told again: nothing was decided in between.
    t = np.where(t >= 9.5, t + 1, t)
    assert begins(decided(rds.Stream(folded), t, values)) == [0.0, 9.0]


def test_a_sensor_that_is_missing_for_a_minute(folded: Any) -> None:
    t, values = walk(80)
    values[(t >= 10) & (t < 70), 3:] = np.nan
    found = decided(rds.Stream(folded), t, values)
    assert begins(found) == [0.0, 70.0]
    assert starts(found)[-1] == 78.0
    assert not [one for one in starts(found) if 8 < one < 70]


def test_single_values_that_are_missing_are_interpolated(folded: Any) -> None:
    t, values = walk(6)
    values[30, 0] = np.nan
    told = decided(rds.Stream(folded), t, values)
    values[30, :3] = (values[29, :3] + values[31, :3]) / 2
    wanted = decided(rds.Stream(folded), t, values)
    assert starts(told) == starts(wanted)
    np.testing.assert_allclose(
        [one.probs for one in told[1:]], [one.probs for one in wanted[1:]], atol=1e-5
    )


def test_a_wrong_rate_is_resampled(folded: Any) -> None:
    """A sine that comes at 3, and at 1.7 of the model's rate is the same motion."""
    answers = []
    for factor in (1.0, 3.0, 1.7):
        t = np.arange(round(20 * RATE * factor)) / (RATE * factor)
        wave = np.sin(2 * np.pi * 0.8 * t)
        values = np.stack([9.8 + wave, wave, 0 * wave, 0.3 * wave, 0.1 * wave], 1)
        found = decided(rds.Stream(folded), t, values)
        assert starts(found)[:30] == [0.5 * k for k in range(30)]
        answers.append(np.array([one.probs for one in found[1:31]]))
    assert np.abs(answers[1] - answers[0]).max() < 0.05
    assert np.abs(answers[2] - answers[0]).max() < 0.05
    assert np.abs(answers[0] - answers[0].mean(0)).max() > 1e-4


def test_too_slow_a_rate_decides_nothing_and_says_so(folded: Any) -> None:
    t, values = walk(60, rate=RATE / 4)
    found = decided(rds.Stream(folded), t, values)
    assert begins(found) == [0.0]
    assert starts(found) == []


def test_late_and_repeated_samples_are_dropped_and_counted(folded: Any) -> None:
    t, values = walk(10)
    wanted = decided(rds.Stream(folded), t, values)
    order = np.arange(len(t))
    doubled = np.insert(order, 50, [20, 30, 49])  # two of before, and one again
    stream = rds.Stream(folded)
    again = values.copy()
    found = decided(stream, t[doubled], again[doubled])
    assert (stream.late, stream.repeated) == (2, 1)
    np.testing.assert_array_equal([one.probs for one in found], [one.probs for one in wanted])


@pytest.mark.slow
def test_numbers_have_an_interval() -> None:
    regressor = model("numbers")
    t, values = walk(6)
    found = decided(rds.Stream(regressor), t, values)
    assert np.isnan(found[0].mean).all()
    single = values.astype(np.float32)
    X = np.stack([single[HOP * k : HOP * k + SAMPLES] for k in range(9)])
    mean, std = regressor.predict(X, return_std=True)
    low, high = regressor.predict_interval(X, coverage=0.9)
    for name, wanted in (("mean", mean), ("std", std), ("low", low), ("high", high)):
        told = np.array([getattr(one, name) for one in found[1:]])[:, 0]
        np.testing.assert_allclose(told, wanted.reshape(-1), rtol=2e-3)
    assert found[1].label is None
    with pytest.raises(InputError, match="smoothing= is for classes"):
        rds.Stream(regressor, rds.Smoothing(0.5, 0.1))


def test_a_folded_file_runs_without_torch(folded: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.folded"
    rds.export(model("classes"), path)
    t, values = walk(5)
    wanted = decided(rds.Stream(path), t, values)
    assert rds.deploy.load(path).facts.smoothing == folded.facts.smoothing
    np.save(tmp_path / "log.npy", np.column_stack([t, values]))
    code = (
        "import sys\n"
        "for name in ('torch', 'scipy', 'sklearn', 'safetensors'): sys.modules[name] = None\n"
        "import numpy as np, rdeepsense as rds\n"
        f"stream = rds.Stream({str(path)!r})\n"
        f"log = np.load({str(tmp_path / 'log.npy')!r})\n"
        "print(sum(len(stream.push(row[0], row[1:])) for row in log))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(len(wanted)), done.stderr


def test_files_that_lie_about_windows_are_refused(folded: Any, tmp_path: Path) -> None:
    facts = folded.facts
    for changed, words in (
        ({"recipe": replace(facts.recipe, window=3.0)}, "windows are of 60 samples of 5 channels"),
        ({"recipe": None}, "smoothing is for classes of windows that say how they are cut"),
    ):
        save(replace(folded, facts=replace(facts, **changed)), tmp_path / "bad")
        with pytest.raises(ModelFileError, match=words):
            rds.Stream(tmp_path / "bad")


def test_what_cannot_be_used_is_named(folded: Any) -> None:
    stream = rds.Stream(folded)
    with pytest.raises(InputError, match=r"values have the shape \(3,\); a sample has 5 channels"):
        stream.push(0.0, [1, 2, 3])
    with pytest.raises(InputError, match="values hold what is no number"):
        stream.push(0.0, ["a"] * len(CHANNELS))
    with pytest.raises(InputError, match="timestamp = nan"):
        stream.push(float("nan"), [0] * 5)
    with pytest.raises(InputError, match="timestamp = 'noon' is no number of seconds"):
        stream.push("noon", [0] * 5)
    with pytest.raises(InputError, match="the model does not know how windows are cut"):
        rds.Stream(replace(folded, facts=replace(folded.facts, recipe=None)))
    with pytest.raises(InputError, match="accepted: the path of a folded file"):
        rds.Stream(3)


def test_running_begins_as_the_window_and_then_goes_on(folded: Any) -> None:
    t, values = walk(8)
    plain = decided(rds.Stream(folded), t, values)
    found = decided(rds.Stream(model("classes"), running=1.0), t, values)
    assert starts(found) == starts(plain)
    np.testing.assert_allclose(found[1].probs, plain[1].probs, atol=1e-9)
    assert np.abs(found[-1].probs - plain[-1].probs).max() > 1e-4
    # Of the second window: all intervals since the begin, of which the last eight are pooled.
    stream = folded.stream
    X = values[: SAMPLES + HOP].astype(np.float32)[None]
    z = folded.graph.read(X).reshape(-1, stream.read)
    seen = np.concatenate([stream.found(np.tile(one, stream.count)[None])[:, :1] for one in z], 1)
    wanted = folded.finish(stream.raw(seen), X[:, HOP:]).probs[0]
    np.testing.assert_allclose(found[2].probs, wanted, atol=1e-9)
    with pytest.raises(InputError, match="running=1.0: a hop of 7 samples is no multiple of 5"):
        rds.Stream(folded, hop=0.35, running=1.0)
    with pytest.raises(InputError, match="a file does not keep them"):
        rds.Stream(replace(folded, stream=None), running=1.0)
