"""BPEst: two seconds of finger PPG to two seconds of arterial blood pressure (section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray
from scipy import io

from rdeepsense.arrays import Floats as Array
from rdeepsense.arrays import Singles
from rdeepsense.distributions import Gaussian
from rdeepsense.errors import InputError, require
from rdeepsense.paper.tasks import task
from rdeepsense.paper.tasks.task import Indices, Task

# --------------------------------------------------------------------------------------------------
# Records in MATLAB files: a cell array of matrices (channels, samples)
# --------------------------------------------------------------------------------------------------

CHANNELS = (2, 3)  # accepted numbers of them


def cells(path: Path) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each cell's place, in words, and its (channels, samples).

    The cell array has the file's name. MATLAB 7.3 files (HDF5) are read cell by cell, classic ones
    as a whole, since their cells follow one another without an index.
    """
    hdf5 = require("h5py", "tasks")
    read = _hdf5_cells if hdf5.is_hdf5(path) else _classic_cells
    for index, cell in enumerate(read(path)):
        where = f"{path}, record {index}"
        yield where, _upright(cell, where)


def _hdf5_cells(path: Path) -> Iterator[NDArray[Any]]:
    hdf5 = require("h5py", "tasks")
    place = str(path)
    try:
        with hdf5.File(path, "r") as file:
            names = [name for name in file if not name.startswith("#")]
            _refuse_other_names(path, names)
            if not isinstance(file[path.stem], hdf5.Dataset) or (
                file[path.stem].dtype != hdf5.ref_dtype
            ):
                raise InputError(f"{path}: {path.stem} is no cell array of records")
            for index, reference in enumerate(file[path.stem][()].ravel()):
                place = f"{path}, record {index}"
                cell = file[reference]
                # MATLAB stores an empty matrix as its two sizes.
                yield np.empty((0, 0)) if "MATLAB_empty" in cell.attrs else cell[()]
    except InputError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise InputError(f"{place}: broken HDF5 (an incomplete copy?): {error}") from error


def _classic_cells(path: Path) -> Iterator[NDArray[Any]]:
    try:
        names = [name for name, _, _ in io.whosmat(path)]
        content = io.loadmat(path, variable_names=[path.stem])
    except Exception as error:  # on damaged files scipy raises errors of a dozen kinds
        reason = str(error) if path.stat().st_size else "it is empty"
        raise InputError(
            f"{path}: neither MATLAB 7.3 (HDF5) nor a classic MATLAB file: {reason}"
        ) from error
    _refuse_other_names(path, names)
    if content[path.stem].dtype != object:
        raise InputError(f"{path}: {path.stem} is no cell array of records")
    yield from content[path.stem].ravel()


def _refuse_other_names(path: Path, names: list[str]) -> None:
    if path.stem not in names:
        raise InputError(f"{path}: no variable {path.stem!r}; it has: {', '.join(names) or 'none'}")


def _upright(cell: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Return (channels, samples), whichever way the file has it: channels are the short side."""
    if cell.size == 0:
        return np.empty((max(CHANNELS), 0))
    if cell.dtype.kind not in "fiu" or cell.ndim != 2 or min(cell.shape) not in CHANNELS:
        raise InputError(
            f"{where}: {cell.dtype} of shape {cell.shape}; accepted: numbers of shape (3, samples) "
            "or (samples, 3); 2 channels will do"
        )
    return np.asarray(cell if cell.shape[0] <= cell.shape[1] else cell.T, np.float64)


# --------------------------------------------------------------------------------------------------
# BPEst: two seconds of finger PPG -> two seconds of arterial blood pressure (section 4.1)
#
# The data is published as UCI "Cuff-Less Blood Pressure Estimation" (Kachuee et al. 2015; the waves
# are from PhysioNet's MIMIC-II). Wanted in one folder: `Part_1.mat` to `Part_4.mat`, or some of
# them; each is a MATLAB cell array of records, 3 rows (PPG, ABP in mmHg, ECG) at 125 Hz, as HDF5
# (MATLAB 7.3, as published) or in the classic format. Or CSV exports, one `*.csv` per record with
# the columns PPG, ABP and perhaps ECG in this order; a header is allowed and not believed.
#
# A record is a stretch of one patient's stay. Neighbouring records can be of one patient.
# --------------------------------------------------------------------------------------------------

LENGTH = 250  # samples of a window: 2 s
RATE = 125  # Hz
PRESSURES = (20.0, 300.0)  # mmHg; outside, the catheter was not measuring a patient
LARGEST_PPG = 5.0  # of the median, in the units of the monitor; a pressure is far above
PARTS = tuple(f"Part_{number}.mat" for number in range(1, 5))

Record = tuple[int, str, NDArray[np.float64]]  # its number, where it stands, (channels, samples)


class PulseWindows(NamedTuple):
    """The usable windows of a record, and which of all its windows they are."""

    ppg: Singles  # (rows, length)
    abp: Singles  # (rows, length)
    kept: Indices  # (rows,): 0 is the window at the record's start


def windows(ppg: ArrayLike, abp: ArrayLike, length: int = LENGTH) -> PulseWindows:
    """Cut windows, none overlapping; drop those with NaN, a flat line or an impossible ABP."""
    first, second = np.asarray(ppg, np.float32), np.asarray(abp, np.float32)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"ppg has shape {first.shape} and abp {second.shape}: equal lengths only")
    if length < 2:
        raise InputError(f"length = {length}: a window has at least 2 samples")
    rows = len(first) // length
    waves = [wave[: rows * length].reshape(rows, length) for wave in (first, second)]
    usable = np.ones(rows, bool)
    for wave in waves:
        usable &= np.isfinite(wave).all(axis=1) & (wave != wave[:, :1]).any(axis=1)
    low, high = PRESSURES
    usable &= ((waves[1] >= low) & (waves[1] <= high)).all(axis=1)
    return PulseWindows(waves[0][usable], waves[1][usable], np.flatnonzero(usable))


def load(folder: Path, per_record: int | None = None) -> Task:
    """Return the task from the published files, at most `per_record` windows of each record."""
    if per_record is not None and per_record < 1:
        raise InputError(f"per_record = {per_record}: accepted are None and whole numbers from 1")
    files, records = _records(Path(folder))
    inputs, targets, groups, dropped = [], [], [], 0
    for number, where, channels in records:
        ppg, abp = _told_apart(channels, where)
        found = windows(ppg, abp)
        dropped += len(ppg) // LENGTH - len(found.kept)
        chosen = _evenly(len(found.kept), per_record)
        inputs.append(found.ppg[chosen])
        targets.append(found.abp[chosen])
        groups.append(np.full(len(chosen), number))
    if not groups:
        raise InputError(f"{folder}: {files} has no record")
    low, high = PRESSURES
    return Task(
        name="BPEst",
        X=_stacked(inputs),
        y=_stacked(targets),
        features=tuple(f"ppg_{sample}" for sample in range(LENGTH)),
        targets=tuple(f"abp_{sample}" for sample in range(LENGTH)),
        unit="mmHg",
        source=f"UCI Cuff-Less Blood Pressure Estimation, {files}: {len(groups)} records, "
        f"{dropped} windows dropped (NaN, flat line, or ABP outside {low:g} to {high:g} mmHg)",
        simulated=False,
        groups=np.concatenate(groups).astype(np.int64),
        grouped_by="record",
        split_by="rows",
    )


def _stacked(parts: list[Singles]) -> Singles:
    """Join the parts and let them go, so that two copies of all four files never meet."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _evenly(count: int, most: int | None) -> Indices:
    """Return the middles of `most` equal stretches of range(count), or all of it."""
    if most is None or count <= most:
        return np.arange(count)
    return ((np.arange(most) + 0.5) * count / most).astype(np.intp)


def _told_apart(
    channels: NDArray[np.float64], where: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return PPG and ABP by position, if their sizes do not speak against it."""
    ppg, abp = channels[:2]
    expected = (("PPG", ppg, (-LARGEST_PPG, LARGEST_PPG)), ("ABP", abp, PRESSURES))
    for name, wave, (low, high) in expected:
        live = wave[np.isfinite(wave)]
        # A dead sensor says nothing about the order of columns; its windows are dropped anyway.
        if live.size and np.ptp(live) > 0 and not low <= np.median(live) <= high:
            raise InputError(
                f"{where}: the columns cannot be told apart: the median of what should be {name} "
                f"is {np.median(live):g}; accepted: PPG (at most {LARGEST_PPG:g}), then ABP "
                f"({PRESSURES[0]:g} to {PRESSURES[1]:g} mmHg)"
            )
    return ppg, abp


def _records(folder: Path) -> tuple[str, Iterator[Record]]:
    """Return the files of the folder, in words, and their records one by one."""
    parts = [folder / name for name in PARTS if (folder / name).is_file()]
    if parts:
        return ", ".join(path.name for path in parts), _mat_records(parts)
    tables = sorted(folder.glob("*.csv"), key=lambda path: (_number(path), path.name))
    if tables:
        return f"{len(tables)} CSV files", _csv_records(tables)
    raise InputError(f"{folder}: none of {', '.join(PARTS)} and no *.csv (one per record) is there")


def _mat_records(paths: list[Path]) -> Iterator[Record]:
    """Return the records of all parts, numbered through."""
    return (
        (number, *record)
        for number, record in enumerate(chain.from_iterable(cells(path) for path in paths))
    )


def _csv_records(paths: list[Path]) -> Iterator[Record]:
    """Yield one record a file; its number is that in the name, if those are all different."""
    numbers = [_number(path) for path in paths]
    if min(numbers) < 0 or len(set(numbers)) < len(numbers):
        numbers = list(range(len(paths)))
    for number, path in zip(numbers, paths, strict=True):
        yield number, str(path), _csv_record(path)


def _number(path: Path) -> int:
    """Return the last number in the file's name; -1 without one."""
    return int((["-1", *re.findall(r"\d+", path.stem)])[-1])


def _csv_record(path: Path) -> NDArray[np.float64]:
    polars = require("polars", "tasks")
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = task.fields(file.readline())
    if len(first) < 2:
        what = "no first line" if first == [""] else "1 column"
        raise InputError(f"{path}: {what}; accepted: the columns PPG, ABP and perhaps ECG")
    header = not all(_is_number(field) for field in first)
    names = first if header else task.positions(first)
    readings = dict.fromkeys(names[:2], task.number)
    try:
        frame = polars.read_csv(
            path,
            has_header=header,
            glob=False,
            schema_overrides=[polars.Float64] * 2 + [polars.String] * (len(first) - 2),
        )
    except polars.exceptions.PolarsError as error:
        task.refuse_broken_lines(path, readings, header)
        raise InputError(f"{path}: cannot be read: {error}") from error
    frame = frame[:, :2]
    if sum(frame.null_count().row(0)):
        task.refuse_broken_lines(path, readings, header)
    # A value that is missing is NaN, and its window is dropped like any with NaN.
    values: NDArray[np.float64] = frame.fill_null(np.nan).to_numpy().T
    return values


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------
# BPEst, simulated: 2 s of finger PPG -> 2 s of arterial pressure (ABP)
#
# A window has a heart rate f, a phase, a stiffness s, an amplitude a, a baseline and a tilt. They
# fix the PPG without noise, so the PPG tells them:
#
#     PPG(t) = baseline + tilt (t - 1) + a pulse(phase - 2 pi f delay(s); s)
#
# A record's pressure is known only up to an offset u and a gain v, both N(0, 1), that no PPG shows:
#
#     ABP(t) = mean(t) + offset_std u + gain_std w(t) v + noise_std e(t)
#     mean(t) = diastole(s, a, f) + height(s, a) w(t),   w(t) = pulse(phase; s)
#
# e is a smooth wave of variance 1 at each t. For a record never trained on, every ABP sample given
# the PPG is therefore Gaussian with this mean and variance offset_std^2 + gain_std^2 w^2 +
# noise_std^2, and that is the truth given here. Windows of a record share u, v and much of their
# look: a random split of windows (the paper's) leaks them, and may do better than this truth.
# Pressures are not clipped, or else they would not be Gaussian: a few lie outside 50 to 200 mmHg.
# --------------------------------------------------------------------------------------------------

WINDOWS = 20  # of each record
TIME = np.arange(LENGTH) / RATE

# The bumps of one beat: angle of the peak, sharpness, height and its change with stiffness.
ABP_BUMPS = ((0.0, 14.0, 0.48, -0.14), (0.35, 14.0, 0.24, 0.20), (1.0, 30.0, 0.12, -0.06))
PPG_BUMPS = ((0.0, 6.0, 0.55, -0.10), (0.5, 9.0, 0.22, 0.20), (1.15, 20.0, 0.12, -0.08))
RUN_OFF = (0.5, 1.0, 0.45, 0.0)  # the slow fall of both until the next beat
SKEW = 0.75  # from 0 to 1: how much faster a beat rises than it falls

NOISE_HZ = np.array([0.5, 1.1, 1.9, 2.9, 4.3, 6.1])


class Window(NamedTuple):
    """The cause of a PPG window: one number of each for every row."""

    rate: Array  # Hz
    start: Array  # phase of the first sample
    stiff: Array  # from -1 to 1
    size: Array  # of the pulse, from -1 to 1
    baseline: Array
    tilt: Array  # of the baseline, in units a second

    def phase(self) -> Array:
        """Return the angle of the heart beat at every sample: shape (rows, 250)."""
        return 2 * np.pi * self.rate[:, None] * TIME + self.start[:, None]


def simulate(rows: int, seed: int, windows_per_record: int = WINDOWS) -> Task:
    """Draw `rows` windows, 20 to a record by default."""
    rng = task.seeded(rows, seed)
    record = np.arange(rows, dtype=np.int64) // windows_per_record
    records = int(record[-1]) + 1
    window = simulated_windows(record, rng)
    wave = pulse(window.phase(), window.stiff, ABP_BUMPS)
    truth = pressure(window, wave)
    offset, gain = rng.standard_normal((2, records, 1))
    offset_std, gain_std, noise_std = spreads(window)
    abp = truth.mean + offset_std * offset[record] + gain_std * wave * gain[record]
    abp += noise_std * smooth_noise(rows, rng)
    return Task(
        name="BPEst",
        X=ppg(window).astype(np.float32),
        y=abp,
        features=tuple(f"ppg_{i}" for i in range(LENGTH)),
        targets=tuple(f"abp_{i}" for i in range(LENGTH)),
        unit="mmHg",
        source=f"simulated pulse and pressure waves of {records} records, seed {seed}",
        simulated=True,
        groups=record,
        grouped_by="record",
        truth=truth,
    )


def simulated_windows(record: npt.NDArray[np.int64], rng: np.random.Generator) -> Window:
    """Draw windows that look alike where they are of the same record."""
    rows = len(record)
    usual = rng.standard_normal((4, int(record[-1]) + 1))
    rate, stiff, size, baseline = 0.9 * usual[:, record] + 0.44 * rng.standard_normal((4, rows))
    return Window(
        rate=1.3 + 0.3 * np.tanh(rate),
        start=rng.uniform(0, 2 * np.pi, rows),
        stiff=np.tanh(0.8 * stiff),
        size=np.tanh(0.7 * size),
        baseline=1.0 + 0.25 * np.tanh(baseline),
        tilt=0.08 * rng.standard_normal(rows),
    )


def ppg(window: Window) -> Array:
    """Return the finger pulse, later than the pressure by a delay that shortens with stiffness."""
    delay = 2 * np.pi * window.rate * (0.20 - 0.04 * window.stiff)
    beat = pulse(window.phase() - delay[:, None], window.stiff, PPG_BUMPS)
    beat *= 1.1 * np.exp(0.5 * window.size)[:, None]
    return beat + window.baseline[:, None] + window.tilt[:, None] * (TIME - 1)


def pressure(window: Window, wave: Array) -> Gaussian:
    """Return the distribution of every ABP sample with this w(t), for a record never met."""
    stiff, size = window.stiff, window.size
    diastole = 60 + 9 * stiff - 6 * size + 25 * (window.rate - 1.3)
    height = 70 + 20 * stiff - 12 * size
    offset_std, gain_std, noise_std = spreads(window)
    std = np.sqrt(offset_std**2 + (gain_std * wave) ** 2 + noise_std**2)
    return Gaussian(diastole[:, None] + height[:, None] * wave, std)


def spreads(window: Window) -> tuple[Array, Array, Array]:
    """Return standard deviations in mmHg of a record's offset, of its gain and of the noise.

    Stiff vessels and faint pulses tell less about the pressure.
    """
    stiff, size = window.stiff[:, None], window.size[:, None]
    return 6 + 2 * stiff, 13 + 4 * stiff - 4 * size, 2.5 - size


def pulse(phase: Array, stiff: Array, bumps: tuple[tuple[float, ...], ...]) -> Array:
    """Return the sum of (height + change s) exp(sharpness (cos(turn - angle) - 1)): a beat a turn.

    turn = phase + SKEW (cos(phase) - 1) runs fast before the peak and slowly after it.
    """
    turn = phase + SKEW * (np.cos(phase) - 1)
    cos, sin = np.cos(turn), np.sin(turn)
    total = np.zeros_like(phase)
    for angle, sharpness, height, change in (*bumps, RUN_OFF):
        bump = np.exp(sharpness * (np.cos(angle) * cos + np.sin(angle) * sin - 1))
        total += (height + change * stiff)[:, None] * bump
    return total


def smooth_noise(rows: int, rng: np.random.Generator) -> Array:
    """Return the sum of (z cos + z' sin) / sqrt(K) over K frequencies: N(0, 1) at every time."""
    angle = 2 * np.pi * NOISE_HZ[:, None] * TIME
    basis = np.concatenate([np.cos(angle), np.sin(angle)]) / np.sqrt(len(NOISE_HZ))
    wave: Array = rng.standard_normal((rows, len(basis))) @ basis
    return wave
