"""BPEst: two seconds of finger PPG -> two seconds of arterial blood pressure (section 4.1).

The data is published as UCI "Cuff-Less Blood Pressure Estimation" (Kachuee et al. 2015; the waves
are from PhysioNet's MIMIC-II). Wanted in one folder: `Part_1.mat` to `Part_4.mat`, or some of them;
each is a MATLAB cell array of records, 3 rows (PPG, ABP in mmHg, ECG) at 125 Hz, as HDF5 (MATLAB
7.3, as published) or in the classic format. Or CSV exports, one `*.csv` per record with the columns
PPG, ABP and perhaps ECG in this order; a header is allowed and not believed.

A record is a stretch of one patient's stay. Neighbouring records can be of one patient.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Singles
from rdeepsense.errors import InputError, require
from rdeepsense.experiments.tasks import broken_lines, matlab
from rdeepsense.experiments.tasks.task import Indices, Task

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
        for number, record in enumerate(chain.from_iterable(matlab.cells(path) for path in paths))
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
        first = broken_lines.fields(file.readline())
    if len(first) < 2:
        what = "no first line" if first == [""] else "1 column"
        raise InputError(f"{path}: {what}; accepted: the columns PPG, ABP and perhaps ECG")
    header = not all(_is_number(field) for field in first)
    names = first if header else broken_lines.positions(first)
    readings = dict.fromkeys(names[:2], broken_lines.number)
    try:
        frame = polars.read_csv(
            path,
            has_header=header,
            glob=False,
            schema_overrides=[polars.Float64] * 2 + [polars.String] * (len(first) - 2),
        )
    except polars.exceptions.PolarsError as error:
        broken_lines.refuse_broken_lines(path, readings, header)
        raise InputError(f"{path}: cannot be read: {error}") from error
    frame = frame[:, :2]
    if sum(frame.null_count().row(0)):
        broken_lines.refuse_broken_lines(path, readings, header)
    # A value that is missing is NaN, and its window is dropped like any with NaN.
    values: NDArray[np.float64] = frame.fill_null(np.nan).to_numpy().T
    return values


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
