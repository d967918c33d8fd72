"""HHAR: five seconds of accelerometer and gyroscope to one of six activities (section 4.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from rdeepsense.arrays import Floats as Array
from rdeepsense.arrays import Singles
from rdeepsense.distributions import Categorical
from rdeepsense.errors import InputError, require
from rdeepsense.paper.tasks import task
from rdeepsense.paper.tasks.task import Task

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# HHAR: five seconds of accelerometer and gyroscope -> one of six activities (section 4.1)
#
# The data is published as UCI "Heterogeneity Activity Recognition" (Stisen et al. 2015). Wanted in
# one folder: `Phones_accelerometer.csv` and `Phones_gyroscope.csv`, `Watch_accelerometer.csv` and
# `Watch_gyroscope.csv`, or one of the two pairs; each with the columns Index, Arrival_Time (ms),
# Creation_Time (ns, each device's own clock), x, y, z, User, Model, Device, gt.
#
# The devices sample unevenly at 50 to 200 Hz. A stretch of one user, device and activity without a
# gap is brought to 50 Hz; 240 samples are a window, 12 an interval of a quarter of a second (0.24
# s), and each interval is replaced by its frequency response: 20 intervals x 6 channels x 7 = 840
# inputs.
# --------------------------------------------------------------------------------------------------

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
READINGS: dict[str, task.Reading] = {
    **dict.fromkeys(CLOCKS, task.whole_number),
    **dict.fromkeys(AXES, task.number),
    **dict.fromkeys(KEY, task.word),
    "gt": task.one_of(*ACTIVITIES, UNLABELLED),
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
        header = task.fields(file.readline())
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
        task.refuse_broken_lines(path, READINGS)
        raise InputError(f"{path}: cannot be read: {error}") from error
    strange = set(frame["gt"].unique().cast(polars.String)) - set(ACTIVITIES)
    if strange or sum(frame.null_count().row(0)):
        task.refuse_broken_lines(path, READINGS)
    usable = frame.filter(polars.all_horizontal(polars.col(*AXES).is_finite()))
    if usable.is_empty():
        raise InputError(f"{path}: no sample with x, y, z and an activity")
    return usable, frame.height - usable.height


# --------------------------------------------------------------------------------------------------
# HHAR, simulated: 4.8 s of accelerometer and gyroscope -> one of six activities
#
# How somebody moves is a vector theta of seven numbers: the logarithms of cadence, strength of the
# acceleration, speed of rotation, share of the second harmonic and gain of the device, and the
# pitch and roll at which it is carried. Given the activity k,
#
#     theta = centre_k + user + unit + own,   each of the last three N(0, diagonal)
#
# with one draw of `user` for each user and one of `unit` for each of the user's two devices. For a
# user never trained on theta is thus Gaussian with the sum of the variances, and Bayes gives
#
#     p(k | theta) proportional to N(theta; centre_k, user^2 + unit^2 + own_k^2)
#
# (all activities are equally frequent), which is the truth given here. The window follows from
# theta and a phase that has nothing to do with the activity, without noise; the network sees its
# spectra, 840 numbers that tell theta. There are 30 users, not the paper's 9: the truth is that of
# all users there could be, and those trained on should stand for them.
# --------------------------------------------------------------------------------------------------

CLASSES = tuple(ACTIVITIES.values())
USERS, UNITS = 30, 2
GRAVITY = 9.81  # m/s^2

# For each activity: cadence in Hz, acceleration in m/s^2, rotation in rad/s, share of the second
# harmonic, gain; pitch and roll in radians.
_USUAL = np.array(
    [
        (1.25, 1.40, 0.80, 0.30, 1.0, 0.70, 0.10),  # biking
        (0.80, 0.14, 0.05, 0.30, 1.0, 0.95, 0.15),  # sitting
        (0.80, 0.18, 0.06, 0.30, 1.0, 0.20, 0.00),  # standing
        (1.85, 2.40, 0.90, 0.50, 1.0, 0.20, 0.00),  # walking
        (1.50, 2.00, 1.20, 0.40, 1.0, 0.45, 0.00),  # stairs up
        (1.90, 3.70, 1.30, 0.70, 1.0, 0.15, 0.05),  # stairs down
    ]
)
CENTRES = np.hstack([np.log(_USUAL[:, :5]), _USUAL[:, 5:]])
SPREAD = np.array([0.14, 0.30, 0.30, 0.30, 0.05, 0.26, 0.20])
USER, UNIT = 0.35 * SPREAD, 0.25 * SPREAD
# Somebody on a bicycle or on a chair may move in more ways than a walker.
OWN = np.array([1.1, 1.0, 0.9, 0.8, 0.9, 0.9])[:, None] * SPREAD


def simulate(rows: int, seed: int) -> Task:
    """Draw `rows` windows of 30 users."""
    rng = task.seeded(rows, seed)
    user = np.arange(rows, dtype=np.int64) % USERS
    y, theta = movements(user, rng)
    start = rng.uniform(0, 2 * np.pi, rows)
    blocks = np.array_split(np.arange(rows), 1 + rows // 2_000)  # bounds the memory of the windows
    X = np.concatenate([spectra(simulated_windows(theta[block], start[block])) for block in blocks])
    return Task(
        name="HHAR",
        X=X,
        y=y,
        features=spectra_names(),
        targets=("activity",),
        unit="",
        source=f"simulated body motion of {USERS} users, seed {seed}",
        simulated=True,
        groups=user,
        grouped_by="user",
        classes=CLASSES,
        truth=posterior(theta),
        split_by="groups",
    )


def movements(
    user: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Array]:
    """Draw the activity of each row and how this user does it: theta, of shape (rows, 7)."""
    users, rows, size = int(user.max()) + 1, len(user), len(SPREAD)
    activity = rng.integers(len(CLASSES), size=rows)
    unit = rng.integers(UNITS, size=rows)
    theta = CENTRES[activity] + OWN[activity] * rng.standard_normal((rows, size))
    theta += (USER * rng.standard_normal((users, size)))[user]
    theta += (UNIT * rng.standard_normal((users, UNITS, size)))[user, unit]
    return activity, theta


def posterior(theta: Array) -> Categorical:
    """Return p(activity | theta) for a user never met, by Bayes."""
    variance = USER**2 + UNIT**2 + OWN**2
    gap = (theta[:, None] - CENTRES) ** 2 / variance
    log_p = -0.5 * (gap + np.log(variance)).sum(axis=-1)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return Categorical(p / p.sum(axis=1, keepdims=True))


def simulated_windows(theta: Array, start: Array) -> Array:
    """Return acceleration (m/s^2) and rotation (rad/s) along three axes: shape (rows, 240, 6).

    The body moves up and down and to and fro once a step; gravity shows how the device is held.
    """
    cadence, strength, rotation, harmonic, gain = np.exp(theta[:, :5]).T[..., None]
    pitch, roll = theta[:, 5:].T
    phase = 2 * np.pi * cadence * np.arange(LENGTH) / RATE + start[:, None]
    down = np.array([np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)])
    ahead = np.array([np.cos(pitch), -np.sin(pitch) * np.sin(roll), -np.sin(pitch) * np.cos(roll)])
    bounce = GRAVITY + strength * (np.cos(phase) + harmonic * np.cos(2 * phase))
    sway = 0.5 * strength * np.sin(phase + 0.6)
    turn = (np.cos(phase + 0.7), 0.6 * harmonic * np.cos(2 * phase + 0.2), 0.4 * np.sin(phase))
    moved = gain * (down[..., None] * bounce + ahead[..., None] * sway)
    return np.concatenate([moved, rotation * np.array(turn)]).transpose(1, 2, 0)


# --------------------------------------------------------------------------------------------------
# HHAR, simulated as the log of a phone, with changes of activity
#
# A recording is one way to move, theta of `simulate`, whose phase goes on: windows that follow
# each other, with the phase of each where the one before ended.
# --------------------------------------------------------------------------------------------------

SENSORS = {"accelerometer": ("ax", "ay", "az"), "gyroscope": ("gx", "gy", "gz")}
LOG_CHANNELS = tuple(name for own in SENSORS.values() for name in own)
LOG_UNITS = ("m/s2", "m/s2", "m/s2", "rad/s", "rad/s", "rad/s")
NOISE = np.array([0.15, 0.15, 0.15, 0.05, 0.05, 0.05])  # of a sample
PAUSE = 10.0  # seconds between two recordings

Log = dict[str, NDArray[Any]]


def simulate_log(
    users: Sequence[int], seconds: float, seed: int, repeats: int = 1, pause: float = PAUSE
) -> Log:
    """Return columns t, ax ... gz, user, recording, activity; each user does everything.

    A user is drawn by seed and number, so that another call can have others of the same kind.
    """
    parts: list[Log] = []
    for user in users:
        rng = np.random.default_rng((seed, user))
        own, clock = USER * rng.standard_normal(len(SPREAD)), 0.0
        for activity in [int(k) for _ in range(repeats) for k in rng.permutation(len(CLASSES))]:
            drawn = OWN[activity] * rng.standard_normal(len(SPREAD))
            values = _recording(CENTRES[activity] + own + 0.5 * drawn, seconds, rng)
            columns = dict(zip(LOG_CHANNELS, values.T, strict=True))
            texts = {"user": f"user {user}", "activity": CLASSES[activity]}
            parts.append(
                {"t": clock + np.arange(len(values)) / RATE, **columns}
                | {name: np.full(len(values), text) for name, text in texts.items()}
                | {"recording": np.full(len(values), len(parts))}
            )
            clock += seconds + pause
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _recording(theta: NDArray[Any], seconds: float, rng: np.random.Generator) -> NDArray[Any]:
    """Return samples (times, channels)."""
    count = -(-int(seconds * RATE) // LENGTH)
    turn = 2 * np.pi * np.exp(theta[0]) * LENGTH / RATE
    starts = rng.uniform(0, 2 * np.pi) + turn * np.arange(count)
    values = simulated_windows(np.tile(theta, (count, 1)), starts).reshape(-1, len(LOG_CHANNELS))
    noisy = values[: int(seconds * RATE)]
    found: NDArray[Any] = noisy + NOISE * rng.standard_normal(noisy.shape)
    return found
