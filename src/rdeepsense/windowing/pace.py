"""The rate of a log, found by its steps, and what of a recipe follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import ROUNDED, Recipe
from rdeepsense.windowing.timeline import Timeline

SAME = 0.02  # rates closer than this, by ratio, are the same
ABSURD = 20.0  # a ratio of rates that tells of another unit
PERIODS, SHORTEST_GAP = 3.0, 0.1  # a gap is longer than both: periods, and seconds
MOST_STEPS = 1 << 20  # that a median is taken of


def found_rate(lines: Sequence[Timeline], name: str, samples: int) -> float:
    """Return samples a second: one over the median step, recordings weighted by their steps."""
    medians, counts = [], []
    for line in lines:
        if len(line.t) > 1:
            steps = np.diff(line.t[: MOST_STEPS + 1])
            medians.append(float(np.median(steps)))
            counts.append(len(line.t) - 1)
    if not medians:
        raise InputError(
            f"the time {name!r} goes nowhere: its {samples:,} samples have one time in each "
            "recording"
        )
    order = np.argsort(medians)
    running = np.cumsum(np.array(counts)[order])
    middle = int(order[int(np.searchsorted(running, running[-1] / 2))])
    return 1 / medians[middle]


def check_repeated(repeated: int, samples: int, name: str, by: Sequence[str]) -> None:
    """Refuse a log in which most times come twice: several recordings are taken for one."""
    if 2 * repeated > samples:
        told = f"by = {list(by)}" if by else "by is not given"
        raise InputError(
            f"{repeated:,} of {samples:,} samples repeat a time {name!r} of their recording, and "
            f"{told}; name the columns that tell recordings apart"
        )


def settled(recipe: Recipe, found: float, name: str) -> tuple[Recipe, list[str]]:
    """Return the recipe with rate and gap, and what is to be said about them."""
    said, rate = [], recipe.rate
    if rate is None:
        rate = rounded(found)
        said.append(f"rate {rate:g} a second: the median of {name!r}, {found:.6g}, rounded")
    elif not 1 / ABSURD <= found / rate <= ABSURD:
        raise InputError(
            f"rate = {rate:g}: the time {name!r} has {found:.4g} samples a second; is its unit "
            "another one? time_unit says which"
        )
    elif abs(math.log(found / rate)) > SAME:
        said.append(f"{name!r} runs at {found:.4g} samples a second; resampled to {rate:g}")
    gap = recipe.gap
    if gap is None:
        gap = max(PERIODS / rate, PERIODS / found, SHORTEST_GAP)
    recipe.check_length(rate)
    known = replace(recipe, rate=rate, gap=gap)
    for what, given, made in (
        ("window", recipe.window, known.length),
        ("hop", recipe.hop, known.step),
    ):
        exact = given * rate
        if abs(exact - made) > ROUNDED * max(1.0, exact):
            said.append(
                f"a {what} of {given:g} s has {exact:.6g} samples at {rate:g} a second; {made} it "
                f"is, {made / rate:.4g} s"
            )
    return known, said


def rounded(rate: float) -> float:
    """Round to a whole number, or to two digits below ten."""
    if rate >= 10:
        return float(round(rate))
    digits = 1 - math.floor(math.log10(rate))
    return round(rate, digits)
