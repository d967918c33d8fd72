"""The real data sets beside the project as tasks, and as the files that `reproduce --data` reads.

    RDEEPSENSE_DATA=... python benchmarks/adapters.py --out DIR

writes `bpest.parquet`, `nycommute.parquet`, `gassen.parquet` and `hhar.parquet` to DIR. What stands
in for what: one part of four of the paper's blood pressure data; taxi trips of other years, with
zone centroids for positions; UCI 270 (16 gas sensors, single gases) for UCI 322; UCI HAPT (30
users, a phone at the waist) for HHAR.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path

import numpy as np

from rdeepsense.paper.drift import columns, hapt_recordings, pressure_windows
from rdeepsense.paper.tasks import hhar
from rdeepsense.paper.tasks import task as prepared
from rdeepsense.paper.tasks.bpest import LENGTH
from rdeepsense.paper.tasks.nycommute import EARTH_MILES, FEATURES, MINUTES, MOST_MPH
from rdeepsense.paper.tasks.task import Task

BLOCK = 50  # neighbouring records may be of one patient
HAPT = ("walking", "upstairs", "downstairs", "sitting", "standing", "lying")


def bpest(folder: Path) -> Task:
    """Windows of PPG and pressure; a group is a block of 50 records."""
    ppg, pressure, record = pressure_windows(folder)
    return Task(
        name="BPEst",
        X=ppg,
        y=pressure,
        features=tuple(f"ppg_{i}" for i in range(LENGTH)),
        targets=tuple(f"abp_{i}" for i in range(LENGTH)),
        unit="mmHg",
        source="UCI Cuff-Less Blood Pressure Estimation, one part of four, 20 windows a record",
        simulated=False,
        groups=record // BLOCK,
        grouped_by=f"{BLOCK}-record block",
    )


def nycommute(folder: Path, drop_corrupted: bool = False) -> Task:
    """Zone centroids and time of day; with `drop_corrupted` the loader's documented filter."""
    trips = columns(folder / "nycommute" / "trips.parquet")
    with (folder / "nycommute" / "zones.csv").open() as file:
        rows = list(csv.DictReader(file))
    places = np.full((300, 2), np.nan)
    for row in rows:
        places[int(row["zone_id"])] = float(row["lon"]), float(row["lat"])
    begin, end = places[trips["pu_zone"]], places[trips["do_zone"]]
    minutes = trips["duration_s"] / 60
    keep = np.ones(len(minutes), bool)
    if drop_corrupted:
        low, high = np.radians(begin), np.radians(end)
        half = np.sin((high - low) / 2) ** 2
        across = half[:, 1] + np.cos(low[:, 1]) * np.cos(high[:, 1]) * half[:, 0]
        miles = 2 * EARTH_MILES * np.arcsin(np.sqrt(across))
        keep = (minutes >= MINUTES[0]) & (minutes <= MINUTES[1])
        keep &= miles <= MOST_MPH * minutes / 60
    hours = trips["pickup_epoch_s"] % 86_400 / 3_600
    return Task(
        name="NYCommute",
        X=np.column_stack([begin, end, hours]).astype(np.float32)[keep],
        y=minutes.astype(np.float32)[keep],
        features=FEATURES,
        targets=("duration",),
        unit="min",
        source="TLC trips of 2017 to 2023, zone centroids"
        + (", corrupted trips removed" if drop_corrupted else ", no trip removed"),
        simulated=False,
        groups=(trips["pickup_epoch_s"] // 86_400).astype(np.int64)[keep],
        grouped_by="day",
    )


def gassen(folder: Path) -> Task:
    """The signed logarithm of the 16 steady-state changes; a group is one of UCI 270's batches."""
    table = columns(folder / "gassen" / "uci270_drift.parquet")
    names = sorted(name for name in table if name.endswith("_dr"))
    values = np.stack([table[name] for name in names], axis=1)
    return Task(
        name="GasSen",
        X=(np.sign(values) * np.log1p(np.abs(values))).astype(np.float32),
        y=table["ppm"].astype(np.float32),
        features=tuple(names),
        targets=("concentration",),
        unit="ppm",
        source="UCI 270: one of six gases at a time, 16 sensors",
        simulated=False,
        groups=table["batch"].astype(np.int64),
        grouped_by="batch",
    )


def hapt(folder: Path) -> Task:
    """Windows of 240 samples as 20 intervals of 12, on users never trained on."""
    signal, recordings, table = hapt_recordings(folder)
    inputs, labels, users = [], [], []
    for part in recordings:
        rows = hhar.spectra(hhar.windows(signal[part]))
        inputs.append(rows)
        labels.append(np.full(len(rows), table["label"][part[0]]))
        users.append(np.full(len(rows), table["user"][part[0]]))
    return Task(
        name="HHAR",
        X=np.concatenate(inputs),
        y=np.concatenate(labels).astype(np.int64),
        features=hhar.spectra_names(),
        targets=("activity",),
        unit="",
        source="UCI HAPT: a phone at the waist, 30 users",
        simulated=False,
        groups=np.concatenate(users).astype(np.int64),
        grouped_by="user",
        classes=HAPT,
        split_by="groups",
    )


def data_folder() -> Path:
    """Where RDEEPSENSE_DATA points."""
    if "RDEEPSENSE_DATA" not in os.environ:
        sys.exit("needs the real data sets: set RDEEPSENSE_DATA to their folder")
    return Path(os.environ["RDEEPSENSE_DATA"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for task in (make(data_folder()) for make in (bpest, nycommute, gassen, hapt)):
        path = out / f"{task.name.lower()}.parquet"
        prepared.write(task, path)
        print(f"{path}: {len(task.X):,} rows, {len(task.features)} inputs; {task.source}")


if __name__ == "__main__":
    main()
