"""Samples one after the other give the windows that their log is cut into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.errors import InputError
from rdeepsense.windowing import Recipe
from rdeepsense.windowing.grid import FURTHEST, Instant, Ticks
from rdeepsense.windowing.stream import Refusal, Sampler, Sampling

SENSORS = {"accelerometer": ["ax", "ay"], "thermometer": ["heat"]}


def recipe(rate: float, window: float, hop: float, gap: float) -> Recipe:
    return Recipe("t", {name: tuple(own) for name, own in SENSORS.items()}, window, hop, rate, gap)


def streamed(own: Recipe, times: Any, values: Any) -> tuple[Any, Any, Sampler]:
    """Starts in microseconds, and windows, of samples that are pushed one after the other."""
    sampler, starts, found = Sampler(Sampling.of(own)), [], []
    for time, sample in zip(times.tolist(), values.astype(np.float32), strict=True):
        sampler.push(time, sample)
        while (window := sampler.window()) is not None:
            starts.append(window[0])
            found.append(window[2])
    return np.array(starts), np.array(found), sampler


def cut(own: Recipe, times: Any, values: Any) -> rds.Windows:
    log = {"t": times / 1e6, **dict(zip(own.channels, values.T, strict=True))}
    return rds.windows(
        log, "t", SENSORS, own.window, own.hop, rate=own.rate, gap=own.gap
    )  # fmt: skip


def drawn_log(rng: np.random.Generator, rate: float) -> tuple[Any, Any]:
    """A log in order with jitter, gaps, a silent sensor, and sensors in rows of their own."""
    n = int(rng.integers(150, 400))
    period = 1e6 / rate * rng.choice([0.37, 1.0, 1.7])
    steps = np.maximum(1, rng.normal(period, rng.choice([0, 0.2]) * period, n)).astype(np.int64)
    steps[rng.integers(n, size=2)] += int(rng.integers(2e5, 3e6))
    times = np.cumsum(steps)
    values = rng.normal(size=(n, 3)) * [1, 10, 1e-3] + [9.8, 0, 300]
    kind = rng.integers(4)
    if kind == 1:  # one sensor is silent for a while, and for single samples
        at = int(rng.integers(n))
        values[at : at + n // 4, 2] = np.nan
        values[rng.random(n) < 0.1, 0] = np.nan
    if kind == 2:
        mine = rng.random(n) < 0.5
        values[mine, :2], values[~mine, 2] = np.nan, np.nan
    if kind == 3:  # the same, and now and then at one and the same time
        times, values = np.repeat(times, 2), np.repeat(values, 2, axis=0)
        first = rng.integers(2, size=n)
        values[2 * np.arange(n) + first, :2] = np.nan
        values[2 * np.arange(n) + 1 - first, 2] = np.nan
        kept = rng.random(2 * n) < 0.9
        times, values = times[kept], values[kept]
    return times, values


@pytest.mark.parametrize("seed", range(60))
def test_windows_are_those_of_the_log(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([50, 48, 12.5, 33.3, 100 / 3]))
    length, hop = int(rng.integers(2, 40)), int(rng.integers(1, 60))
    own = recipe(rate, length / rate, hop / rate, float(rng.choice([5, 8]) / rate))
    times, values = drawn_log(rng, rate)
    starts, found, sampler = streamed(own, times, values)
    assert sampler.repeated == 0
    if not len(starts):
        with pytest.raises(InputError, match="no window of"):
            cut(own, times, values)
        return
    wanted = cut(own, times, values)
    assert len(starts) == len(wanted)
    assert np.abs(starts / 1e6 - wanted.starts).max() <= 0.6e-6
    single = np.finfo(np.float32).eps * np.nanmax(np.abs(values), axis=0)
    assert (np.abs(found - np.asarray(wanted)) <= 4 * single).all()


def test_samples_at_the_rate_pass_unchanged() -> None:
    own = recipe(50, 0.2, 0.1, 0.1)
    times = 1_700_000_000_000_000 + 20_000 * np.arange(25)
    values = np.random.default_rng(0).normal(size=(25, 3)).astype(np.float32)
    starts, found, _ = streamed(own, times, values)
    assert starts.tolist() == times[[0, 5, 10, 15]].tolist()
    for k, window in enumerate(found):
        np.testing.assert_array_equal(window, values[5 * k : 5 * k + 10])


def test_a_point_lies_between_its_neighbours() -> None:
    sampler = Sampler(Sampling.of(recipe(10, 0.2, 0.1, 1.0)))
    for time, value in ((0, 1.0), (80_000, 2.0), (240_000, 4.0)):
        sampler.push(time, np.full(3, value, np.float32))
    first, last, window = sampler.window() or (0, 0, np.zeros(0))
    assert (first, last) == (0, 100_000)
    assert window[:, 0].tolist() == [1.0, 2.25]
    first, _, window = sampler.window() or (0, 0, np.zeros(0))
    assert (first, window[:, 0].tolist()) == (100_000, [2.25, 3.5])
    assert sampler.window() is None


def test_what_comes_late_or_twice() -> None:
    sampler = Sampler(Sampling.of(recipe(10, 0.4, 0.1, 1.0)))

    def pushed(time: int, *values: float) -> Refusal:
        return sampler.push(time, np.array(values, np.float32))

    assert pushed(100_000, 1, 1, 1) is Refusal.NONE
    assert pushed(50_000, 7, 7, 7) is Refusal.LATE
    # The first one told of the point at its time; one between points can still be replaced.
    assert pushed(100_000, 7, 7, 7) is Refusal.REPEATED
    assert pushed(150_000, 8, 8, 8) is Refusal.NONE
    assert pushed(150_000, 2, 2, np.nan) is Refusal.NONE
    assert pushed(200_000, 3, 3, np.nan) is Refusal.NONE
    # One sensor after the other at the same time is no repetition.
    assert pushed(200_000, np.nan, np.nan, 9) is Refusal.NONE
    assert pushed(300_000, 4, 4, 4) is Refusal.NONE
    assert pushed(400_000, 4, 4, 4) is Refusal.NONE
    assert pushed(FURTHEST + 1, 4, 4, 4) is Refusal.BAD_TIME
    _, _, window = sampler.window() or (0, 0, np.zeros(0))
    assert window[:2].tolist() == [[1, 1, 1], [3, 3, 9]]
    assert (sampler.late, sampler.repeated) == (1, 1)


def test_a_clock_that_was_set_back_begins_anew() -> None:
    sampler = Sampler(Sampling.of(recipe(10, 0.4, 0.4, 1.0)))
    ones = np.ones(3, np.float32)
    sampler.push(10_000_000, ones)
    told = [sampler.push(100_000 * k, ones) for k in range(10)]
    assert told[:3] == [Refusal.LATE] * 3
    assert told[3:] == [Refusal.NONE] * 7
    assert (sampler.window() or [0])[0] == 300_000
    assert (sampler.late, sampler.stretch) == (4, 2)


def test_ticks_are_exact() -> None:
    for rate, parts, near in (
        (50.0, 50, 1),
        (12.5, 25, 2),
        (33.333, 33_333, 1_000),
        (1e-6, 1, 10**6),
    ):
        assert Ticks.of(rate) == Ticks(parts, near)
    third = Ticks.of(100 / 3)
    assert third == Ticks(100, 3)
    assert third.steps(1) == Instant(30_000, 0)
    of_48 = Ticks.of(48)
    assert of_48.steps(1) == Instant(20_833, 16)
    at = Instant(0, 0)
    for _ in range(48):
        at = of_48.later(at, of_48.steps(1))
    assert at == Instant(1_000_000, 0)
    assert of_48.rounded(Instant(5, 23)) == 5
    assert of_48.rounded(Instant(5, 24)) == 6
    assert Ticks.of(1e6).parts < 1 << 31


def test_a_gap_that_needs_too_much_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"gap = 1e\+06 s has 5e\+07 samples at 50 a second"):
        Sampling.of(recipe(50, 1, 1, 1e6))
    with pytest.raises(InputError, match="the recipe has no rate or gap yet"):
        Sampling.of(Recipe("t", {"a": ("x",)}, 1.0, 1.0))
