"""The real data of the studies: a folder with `gassen`, `har` and `bpest`, as arrays.

gassen/uci270_drift.parquet   batch, gas (1 to 6), ppm, and 8 features of each of 16 sensors
har/hapt.parquet              user, experiment, segment, label, ax to az, gx to gz
bpest/waves.parquet           ppg_diff, abp_diff: differences of samples, 250 to a window
bpest/windows.parquet         record, abp_gain
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Integers
from rdeepsense.errors import InputError, require
from rdeepsense.experiments.tasks.bpest import LENGTH

Rows = NDArray[Any]
GAS = "gassen/uci270_drift.parquet"
PEOPLE = "har/hapt.parquet"
PRESSURE = ("bpest/waves.parquet", "bpest/windows.parquet")


def columns(path: Path) -> dict[str, Rows]:
    """Return a Parquet file as arrays."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read: {error!s:.200}") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def digest(folder: Path, names: tuple[str, ...]) -> str:
    """Return SHA-256 of files, whose figures are then known by it."""
    found = hashlib.sha256()
    for name in names:
        if not (folder / name).is_file():
            raise InputError(f"--data {folder}: there is no {name}")
        found.update((folder / name).read_bytes())
    return found.hexdigest()[:16]


def hapt_recordings(folder: Path) -> tuple[Rows, list[Rows], dict[str, Rows]]:
    """Return HAPT's samples (time, 6) in g and rad/s, the places of each recording, the table."""
    table = columns(folder / PEOPLE)
    acceleration = np.stack([table[name] for name in ("ax", "ay", "az")], axis=1) / 720
    rotation = np.stack([table[name] for name in ("gx", "gy", "gz")], axis=1) * 0.000305433
    signal = np.hstack([acceleration, rotation]).astype(np.float32)
    key = np.stack([table[name].astype(np.int64) for name in ("user", "experiment", "segment")])
    cuts = np.flatnonzero(np.any(np.diff(key, axis=1), axis=0)) + 1
    return signal, np.split(np.arange(len(signal)), cuts), table


def pressure_windows(folder: Path) -> tuple[Rows, Rows, Integers]:
    """Return windows of PPG, of blood pressure in mmHg, and the record of each."""
    waves, about = (columns(folder / name) for name in PRESSURE)
    steps = (waves[name].reshape(-1, LENGTH) for name in ("ppg_diff", "abp_diff"))
    ppg, abp = (np.cumsum(step, axis=1, dtype=np.int32) for step in steps)
    pressure = (abp * about["abp_gain"][:, None]).astype(np.float32)
    return (ppg / 1023).astype(np.float32), pressure, about["record"].astype(np.int64)
