"""Heavy tails on real data, everything chosen automatically, with the paper's network.

    RDEEPSENSE_DATA=... python benchmarks/heavy_tails.py [--task nycommute gassen]
        [--likelihood auto gaussian] [--calibrate auto] [--json FILE]

NYCommute: zone centroids and time of day to minutes, no trip removed. Gas (UCI 270): the 16
steady-state features, signed log, to ppm. Random split 90/5/5 with seed 0; the test rows are seen
by no choice. Wants a GPU: the grid is 24 networks of three layers of 500.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pyarrow import parquet

from rdeepsense import RDeepSenseRegressor, metrics
from rdeepsense.files import write_whole

Floats = NDArray[np.float64]


def nycommute(folder: Path) -> tuple[Floats, Floats]:
    """Pick-up and drop-off longitude and latitude, time of day in hours; minutes."""
    trips = parquet.read_table(folder / "nycommute" / "trips.parquet").to_pydict()
    with (folder / "nycommute" / "zones.csv").open() as file:
        rows = list(csv.DictReader(file))
    places = {int(row["zone_id"]): (float(row["lon"]), float(row["lat"])) for row in rows}
    pick, drop = (np.array([places[z] for z in trips[c]]) for c in ("pu_zone", "do_zone"))
    hour = np.array(trips["pickup_epoch_s"]) % 86_400 / 3_600
    return np.column_stack([pick, drop, hour]), np.array(trips["duration_s"]) / 60


def gassen(folder: Path) -> tuple[Floats, Floats]:
    """The signed logarithm of the 16 steady-state changes; ppm."""
    table = parquet.read_table(folder / "gassen" / "uci270_drift.parquet").to_pydict()
    names = sorted(name for name in table if name.endswith("_dr"))
    values = np.array([table[name] for name in names], dtype=np.float64).T
    return np.sign(values) * np.log1p(np.abs(values)), np.array(table["ppm"], dtype=np.float64)


def measure(X: Floats, y: Floats, likelihood: str, calibrate: str) -> dict[str, object]:
    order = np.random.default_rng(0).permutation(len(X))
    train, held, test = np.split(order, [int(0.9 * len(X)), int(0.95 * len(X))])
    model = RDeepSenseRegressor(
        hidden=(500, 500, 500),
        alpha="auto",
        drop_prob="auto",
        likelihood=likelihood,
        calibrate=calibrate,
        random_state=0,
    )
    begin = time.perf_counter()
    model.fit(X[train], y[train], validation=(X[held], y[held]))
    seconds = time.perf_counter() - begin
    chosen = model.candidate_
    return {
        "likelihood": likelihood,
        "calibrate": calibrate,
        "chosen": f"{chosen.likelihood}, alpha {chosen.alpha}, drop {chosen.drop_prob}",
        "seconds": seconds,
        **metrics.evaluate(model.predict_dist(X[test]), y[test]),
        "selection": model.selection_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="+", default=["nycommute", "gassen"])
    parser.add_argument("--likelihood", nargs="+", default=["auto", "gaussian"])
    parser.add_argument("--calibrate", nargs="+", default=["auto"])
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    if "RDEEPSENSE_DATA" not in os.environ:
        sys.exit("needs the real data sets: set RDEEPSENSE_DATA to their folder")
    folder = Path(os.environ["RDEEPSENSE_DATA"])
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    print(f"{device or 'CPU'}, torch {torch.__version__}")
    results = []
    for task in arguments.task:
        X, y = {"nycommute": nycommute, "gassen": gassen}[task](folder)
        for likelihood, calibrate in product(arguments.likelihood, arguments.calibrate):
            row = {"task": task, "device": device, **measure(X, y, likelihood, calibrate)}
            results.append(row)
            print(
                f"{task:10s} {likelihood:9s} {calibrate:9s} -> {row['chosen']}: test n {row['n']}, "
                f"NLL {row['nll']:.3f}, deviation area {row['deviation_area']:.4f} "
                f"(floor {row['deviation_floor']:.4f}), MAE {row['mae']:.3f}, "
                f"{row['seconds']:.0f} s",
                flush=True,
            )
    if arguments.json:
        write_whole(arguments.json, json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
