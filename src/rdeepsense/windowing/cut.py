"""From a log to windows: recording by recording, and never window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Integers
from rdeepsense.errors import InputError
from rdeepsense.windowing import report as reasons
from rdeepsense.windowing.clock import TIME_UNITS, clock_of
from rdeepsense.windowing.columns import (
    Table,
    check_columns,
    check_lengths,
    need_double,
    numbers_of,
)
from rdeepsense.windowing.durations import seconds
from rdeepsense.windowing.gathered import Windows
from rdeepsense.windowing.heard import Heard
from rdeepsense.windowing.overlap import check_overlap
from rdeepsense.windowing.pace import check_repeated, found_rate, settled
from rdeepsense.windowing.plan import Plan, plan_of
from rdeepsense.windowing.recipe import TARGETS, Recipe, listed
from rdeepsense.windowing.recordings import recordings_of, with_times
from rdeepsense.windowing.report import WindowReport
from rdeepsense.windowing.timeline import Timeline, ordered
from rdeepsense.windowing.truth import Truth, truth_of


def windows(
    table: Table,
    time: str,
    sensors: Mapping[str, Sequence[str]],
    window: str | float,
    hop: str | float | None = None,
    rate: float | None = None,
    by: str | Sequence[str] = (),
    label: str | Sequence[str] | None = None,
    purity: float = 0.5,
    target: str = "majority",
    gap: str | float | None = None,
    time_unit: str | None = None,
    rounding: Mapping[str, float] | None = None,
) -> Windows:
    """Cut a sensor log into windows (n, time, channels) of equal length and rate.

    Samples are sorted by time within their recording; of rows with the same time each sensor's
    last sample counts. They are resampled to `rate` by linear interpolation between neighbours. No
    window reaches over a gap, over a sensor's silence, or from one recording into another. The
    `report` of what comes back says how many samples and windows were lost, and why.

    Parameters
    ----------
    table : of pandas, polars or pyarrow, or a dictionary of arrays; one row per sample.
    time : its column of times: seconds, dates, or whole numbers with a `time_unit`.
    sensors : the columns of each sensor, by its name.
    window, hop : durations, such as "5s", "200ms" or 2.5 (seconds); the hop, from one window's
        begin to the next one's, is a window by default.
    rate : samples a second; by default the median one of the log, rounded.
    by : columns that tell recordings apart.
    label : column with the truth; several for numbers.
    purity : the share of a window's samples that must have its majority label.
    target : "majority" for labels; "mean" over the window, or the value at its "end".
    gap : time without a sample that ends a window; by default three periods, and 0.1 s at least.
    time_unit : of whole numbers: "s", "ms", "us" or "ns".
    rounding : the step that a sensor rounds to where the model will run, by its name, such as
        {"accelerometer": 0.1} in m/s2 for a browser; nothing is rounded here, but networks that
        are chosen for these windows are trained on rounded ones as well.
    """
    for name, value, accepted in (
        ("target", target, TARGETS),
        ("time_unit", time_unit, (None, *TIME_UNITS)),
    ):
        if value not in accepted:
            known = ", ".join(repr(one) for one in accepted)
            raise InputError(f"{name} = {value!r} is unknown; accepted: {known}")
    for name, number in (("rate", rate), ("purity", purity)):
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise InputError(f"{name} = {number!r} is no number")
    if not isinstance(sensors, Mapping):
        raise InputError(
            f"sensors = {sensors!r:.80} is no dictionary of sensors with their columns, such as "
            '{"accelerometer": ["ax", "ay", "az"]}'
        )
    length = seconds("window", window)
    recipe = Recipe(
        time,
        {name: listed(f"sensors[{name!r}]", own) for name, own in dict(sensors).items()},
        length,
        length if hop is None else seconds("hop", hop),
        None if rate is None else float(rate),
        None if gap is None else seconds("gap", gap),
        listed("by", by),
        listed("label", label),
        target,
        float(purity),
        time_unit,
        rounding or {},
    )
    return cut(recipe, table, is_first=True)


def cut(recipe: Recipe, table: Table, is_first: bool = False) -> Windows:
    """Cut a log by a recipe; what it leaves open is found in the log.

    Of the `first` log it is also found whether float32 tells its samples apart.
    """
    check_columns(table, "time", [recipe.time])
    check_columns(table, "sensors", recipe.channels)
    check_columns(table, "by", recipe.by)
    check_columns(table, "label", recipe.label)
    clock = clock_of(table, recipe.time, recipe.time_unit)
    samples = len(clock.seconds)
    check_lengths(table, [*recipe.channels, *recipe.by, *recipe.label], samples, recipe.time)
    recordings = recordings_of(table, recipe.by, samples)
    columns = {name: numbers_of(table, name) for name in recipe.channels}
    double = need_double(columns) if is_first else []
    if double:
        recipe = replace(recipe, double=True)
    sensors = [[columns[name] for name in names] for names in recipe.sensors.values()]
    lost, heard, late = Counter[str](), [], 0
    for rows in recordings.rows:
        kept = with_times(rows, clock.known)
        check_overlap(
            Timeline(clock.seconds[kept], kept), sensors, recipe.gap, recipe.time, recipe.by
        )
        line, behind = ordered(clock.seconds[kept], kept)
        heard.append(Heard.of(line, sensors))
        late, lost[reasons.REPEATED] = late + behind, lost[reasons.REPEATED] + heard[-1].repeated
    if clock.known is not None:
        lost[reasons.NO_TIME] = int((~clock.known).sum())
    found = found_rate([own.line for own in heard], recipe.time, samples)
    check_repeated(lost[reasons.REPEATED], samples, recipe.time, recipe.by)
    recipe, said = settled(recipe, found, recipe.time)
    if double:
        named = ", ".join(double)
        said.append(f"samples are float64: float32 does not tell those of {named} apart")
    if merged := sum(own.merged for own in heard):
        said.append(f"{merged:,} rows are one sample with another of the same time")
    plans = [plan_of(recipe, own) for own in heard]
    for plan in plans:
        lost.update(plan.lost_samples)
    signal: NDArray[Any] = np.empty(
        (sum(len(plan.grid) for plan in plans), len(columns)), recipe.dtype
    )
    truth = truth_of(table, recipe)
    lost_windows = Counter[str]({reasons.GAPS: sum(plan.over_gaps for plan in plans)})
    parts: list[tuple[Integers, NDArray[Any], NDArray[Any] | None, int]] = []
    begin = 0
    for number, plan in enumerate(plans):
        stop = begin + len(plan.grid)
        values = plan.fill(signal[begin:stop], columns, truth)
        first = plan.first()
        y = None
        if truth is not None:
            known, y = truth.judged(values, first, recipe, lost_windows)
            first = first[known]
        if len(first):
            parts.append((first + begin, plan.times(first), y, number))
        begin = stop
    made = sum(len(part[0]) for part in parts)
    report = WindowReport(
        samples,
        len(recordings),
        made,
        found,
        late,
        {why: count for why, count in lost.items() if count},
        {why: count for why, count in lost_windows.items() if count},
        tuple(said),
    )
    if not made:
        _refuse_none(recipe, plans, report)
    number_of = np.repeat([part[3] for part in parts], [len(part[0]) for part in parts])
    return Windows(
        signal,
        np.concatenate([part[0] for part in parts]),
        None if truth is None else _joined(truth, parts),
        {name: values[number_of] for name, values in recordings.groups.items()},
        clock.own(np.concatenate([part[1] for part in parts])),
        recipe,
        report,
    )


def _joined(truth: Truth, parts: Sequence[tuple[Any, Any, Any, Any]]) -> NDArray[Any]:
    return truth.in_words(np.concatenate([part[2] for part in parts]))


def _refuse_none(recipe: Recipe, plans: Sequence[Plan], report: WindowReport) -> None:
    longest = max((plan.longest for plan in plans), default=0.0)
    why = [f"{count:,} samples {reason}" for reason, count in report.lost_samples.items()]
    why += [f"{count:,} windows {reason}" for reason, count in report.lost_windows.items()]
    assert recipe.gap is not None
    raise InputError(
        f"no window of {recipe.window:g} s is left: the longest stretch of {recipe.time!r} without "
        f"a gap of more than {recipe.gap:.4g} s has {longest:.4g} s, at {report.found_rate:.4g} "
        f"samples a second; lost: {'; '.join(why) or 'nothing'}"
    )
