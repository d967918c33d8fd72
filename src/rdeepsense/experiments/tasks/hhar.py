"""HHAR: five seconds of accelerometer and gyroscope -> one of six activities (section 4.1).

The data is published as UCI "Heterogeneity Activity Recognition" (Stisen et al. 2015). Wanted in
one folder: `Phones_accelerometer.csv` and `Phones_gyroscope.csv`, `Watch_accelerometer.csv` and
`Watch_gyroscope.csv`, or one of the two pairs; each with the columns Index, Arrival_Time (ms),
Creation_Time (ns, each device's own clock), x, y, z, User, Model, Device, gt.

The devices sample unevenly at 50 to 200 Hz. A stretch of one user, device and activity without a
gap is brought to 50 Hz; 240 samples are a window, 12 an interval of a quarter of a second (0.24 s),
and each interval is replaced by its frequency response: 20 intervals x 6 channels x 7 = 840 inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from rdeepsense.arrays import Singles
from rdeepsense.errors import InputError, require
from rdeepsense.experiments.tasks import broken_lines
from rdeepsense.experiments.tasks.task import Task

if TYPE_CHECKING:
    import polars as pl

RATE = 50  # Hz
LENGTH = 240  # samples of a window
INTERVALS = 20
CHANNELS = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
ACTIVITIES = {  # the word in the files -> the class, in the paper's order
    "bike": "biking",
    "sit": "sitting",
    "stand": "standing",
    "walk": "walking",
    "stairsup": "stairs up",
    "stairsdown": "stairs down",
}
UNLABELLED = "null"
PAIRS = tuple((f"{on}_accelerometer.csv", f"{on}_gyroscope.csv") for on in ("Phones", "Watch"))
CLOCKS = ("Arrival_Time", "Creation_Time")
AXES = ("x", "y", "z")
KEY = ("User", "Device", "gt")
READINGS: dict[str, broken_lines.Reading] = {
    **dict.fromkeys(CLOCKS, broken_lines.whole_number),
    **dict.fromkeys(AXES, broken_lines.number),
    **dict.fromkeys(KEY, broken_lines.word),
    "gt": broken_lines.one_of(*ACTIVITIES, UNLABELLED),
}
PERIOD = 1_000_000_000 // RATE  # ns
QUIET = 1e-3  # in the sensor's unit: below it there is only noise
GAP = 1_000_000_000  # ns without a sample, after which another stretch begins

Key = tuple[str, str, str]  # user, device, word for the activity


class Stretch(NamedTuple):
    """A sensor without a gap, at the whole multiples of the period from `start` on."""

    start: int
    values: Singles  # (samples, 3)


def windows(signal: ArrayLike, length: int = LENGTH) -> Singles:
    """Cut ONE stretch (samples, channels) into windows (rows, length, channels) side by side."""
    values = np.asarray(signal, np.float32)
    if values.ndim != 2 or length < 1:
        raise InputError(
            f"signal has shape {values.shape} and length = {length}; accepted: (samples, channels) "
            "and a length from 1"
        )
    rows = len(values) // length
    return values[: rows * length].reshape(rows, length, values.shape[1])


def spectra(windows: ArrayLike, intervals: int = INTERVALS) -> Singles:
    """Return the spectrum of each interval and channel: (rows, intervals * channels * terms).

    With X_f = sum_t x_t exp(-2 pi i f t / n) / n for an interval of n samples x, the terms are
    log(|X_f| + 0.001) for f = 1 .. n/2, because motion spans orders of magnitude, and the mean X_0
    itself: the direction of gravity tells sitting from standing.
    """
    values = np.asarray(windows, np.float32)
    if values.ndim != 3 or intervals < 1 or values.shape[1] % intervals:
        raise InputError(
            f"windows has shape {values.shape}; accepted: (rows, length, channels), the length a "
            f"multiple of intervals = {intervals}"
        )
    rows, length, channels = values.shape
    parts = values.reshape(rows, intervals, length // intervals, channels)
    terms = fft.rfft(parts, axis=2, norm="forward")
    response = np.log(np.abs(terms) + QUIET)
    response[:, :, 0] = terms[:, :, 0].real
    flat: Singles = response.transpose(0, 1, 3, 2).reshape(rows, np.prod(response.shape[1:]))
    return flat


def waveforms(
    spectra: ArrayLike, channels: int = len(CHANNELS), intervals: int = INTERVALS, seed: int = 0
) -> Singles:
    """Return windows (rows, length, channels) with these `spectra`, which do not tell the phases.

    Phases are drawn at random, for each interval by itself. Only intervals of an even number of
    samples are known.
    """
    values = np.asarray(spectra, np.float32)
    if values.ndim != 2 or values.shape[1] % (intervals * channels):
        raise InputError(
            f"spectra has shape {values.shape}; accepted: (rows, {intervals} intervals x "
            f"{channels} channels x terms)"
        )
    rows = len(values)
    terms = values.reshape(rows, intervals, channels, -1).transpose(0, 1, 3, 2)
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, terms.shape)
    phases[:, :, -1] = np.pi * (phases[:, :, -1] < np.pi)  # at half the rate a term is real
    complex_terms = np.maximum(np.exp(terms) - QUIET, 0) * np.exp(1j * phases)
    complex_terms[:, :, 0] = terms[:, :, 0]
    samples = 2 * (terms.shape[2] - 1)
    parts = fft.irfft(complex_terms, samples, axis=2, norm="forward")
    flat: Singles = parts.reshape(rows, intervals * samples, channels).astype(np.float32)
    return flat


def spectra_names(
    channels: Sequence[str] = CHANNELS, length: int = LENGTH, intervals: int = INTERVALS
) -> tuple[str, ...]:
    """Return names for the columns of `spectra`: interval, channel and frequency at 50 Hz."""
    frequencies = np.fft.rfftfreq(length // intervals, 1 / RATE)
    return tuple(
        f"{interval:02d}_{channel}_{frequency:.1f}Hz"
        for interval in range(intervals)
        for channel in channels
        for frequency in frequencies
    )


def load(folder: Path) -> Task:
    """Return the task from the published files."""
    inputs, labels, owners, missing = [], [], [], 0
    pairs = _pairs(Path(folder))
    words = list(ACTIVITIES)
    for pair in pairs:
        (acceleration, lost), (rotation, lost_too) = (_stretches(path) for path in pair)
        missing += lost + lost_too
        for key, found in acceleration.items():
            for together in _overlaps(found, rotation.get(key, [])):
                rows = spectra(windows(together))
                inputs.append(rows)
                labels += [words.index(key[2])] * len(rows)
                owners += [key[0]] * len(rows)
    names = ", ".join(path.name for pair in pairs for path in pair)
    if not inputs:
        raise InputError(
            f"{folder}: in {names}, no user, device and activity has both sensors for "
            f"{LENGTH / RATE:g} s without a gap"
        )
    users, groups = np.unique(owners, return_inverse=True)
    return Task(
        name="HHAR",
        X=np.concatenate(inputs),
        y=np.array(labels, np.int64),
        features=spectra_names(),
        targets=("activity",),
        unit="",
        source=f"UCI Heterogeneity Activity Recognition, {names}: {len(users)} users, "
        f"{missing} samples with missing values dropped",
        simulated=False,
        groups=groups.astype(np.int64),
        grouped_by="user",
        classes=tuple(ACTIVITIES.values()),
        split_by="groups",
    )


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Return accelerometer and gyroscope of the phones, of the watches, or of both."""
    pairs = [(folder / first, folder / second) for first, second in PAIRS]
    there = [pair for pair in pairs if any(path.is_file() for path in pair)]
    if not there:
        wanted = ", ".join(name for pair in PAIRS for name in pair)
        raise InputError(f"{folder}: none of {wanted} is there")
    for path in (path for pair in there for path in pair):
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; both sensors are needed")
    return there


def _overlaps(first: list[Stretch], second: list[Stretch]) -> list[Singles]:
    """Yield (samples, 6) wherever both sensors have at least one window in common."""
    found = []
    for a in first:
        for b in second:
            start = max(a.start, b.start)
            stop = min(a.start + len(a.values), b.start + len(b.values))
            if stop - start >= LENGTH:
                parts = [s.values[start - s.start : stop - s.start] for s in (a, b)]
                found.append(np.hstack(parts))
    return found


def _stretches(path: Path) -> tuple[dict[Key, list[Stretch]], int]:
    """Cut a file into stretches at 50 Hz; also count the samples with missing values."""
    polars = require("polars", "tasks")
    frame, missing = _samples(path)
    creation, arrival = polars.col("Creation_Time"), polars.col("Arrival_Time")
    # In the order of arrival, since a clock that was set back would mix two recordings.
    frame = frame.sort("User", "Device", "Arrival_Time", "Creation_Time")
    begins = polars.any_horizontal(
        *(polars.col(name) != polars.col(name).shift() for name in KEY),
        creation.diff().abs() > GAP,
        arrival.diff() > GAP // 1_000_000,
    ).fill_null(True)
    cuts = frame.select(begins).to_series().arg_true().to_numpy()
    keys = frame.select(polars.col(*KEY).cast(polars.String).gather(cuts)).rows()
    times = frame.select(creation, arrival * 1_000_000).to_numpy()
    values = frame.select(*AXES).to_numpy()
    found: dict[Key, list[Stretch]] = defaultdict(list)
    for owner, start, stop in zip(keys, cuts, [*cuts[1:], frame.height], strict=True):
        stretch = _even(times[start:stop, 0], times[start:stop, 1], values[start:stop])
        if len(stretch.values) >= LENGTH:
            found[owner].append(stretch)
    return found, missing


def _even(creation: NDArray[np.int64], arrival: NDArray[np.int64], values: Singles) -> Stretch:
    """Interpolate linearly at multiples of the period.

    The device's clock gives the spacing. Two sensors may have two clocks, so their place in time is
    that of arrival: the median delay, which a late delivery does not move.
    """
    times, order = np.unique(creation, return_index=True)  # sorted, samples sent twice taken once
    times += int(np.median(arrival - creation))
    start, stop = -(-times[0] // PERIOD), times[-1] // PERIOD + 1
    grid = (np.arange(start, stop) * PERIOD - times[0]).astype(float)
    seconds = (times - times[0]).astype(float)
    columns = [np.interp(grid, seconds, values[order, axis]) for axis in range(3)]
    return Stretch(int(start), np.stack(columns, axis=1).astype(np.float32))


def _samples(path: Path) -> tuple[pl.DataFrame, int]:
    """Return the labelled samples of a file, and how many had missing values."""
    polars = require("polars", "tasks")
    types: dict[str, Any] = {
        **dict.fromkeys(CLOCKS, polars.Int64),
        **dict.fromkeys(AXES, polars.Float32),
        **dict.fromkeys(KEY, polars.Categorical),
    }
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = broken_lines.fields(file.readline())
    lacking = [name for name in types if name not in header]
    if lacking:
        has = ", ".join(header) or "nothing"
        raise InputError(f"{path}, line 1: no column {', '.join(lacking)}; it has: {has}")
    try:
        frame: pl.DataFrame = (
            polars.scan_csv(path, schema_overrides=types, infer_schema_length=0, glob=False)
            .select(*types)
            .filter(polars.any_horizontal(polars.all().is_not_null()))  # blank lines
            .filter(polars.col("gt").ne_missing(polars.lit(UNLABELLED)))
            .collect(engine="streaming")
        )
    except polars.exceptions.PolarsError as error:
        broken_lines.refuse_broken_lines(path, READINGS)
        raise InputError(f"{path}: cannot be read: {error}") from error
    strange = set(frame["gt"].unique().cast(polars.String)) - set(ACTIVITIES)
    if strange or sum(frame.null_count().row(0)):
        broken_lines.refuse_broken_lines(path, READINGS)
    usable = frame.filter(polars.all_horizontal(polars.col(*AXES).is_finite()))
    if usable.is_empty():
        raise InputError(f"{path}: no sample with x, y, z and an activity")
    return usable, frame.height - usable.height
