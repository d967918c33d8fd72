"""Seconds and peak memory of reading ten million taxi trips.

    python benchmarks/read_trips.py [--rows 10000000] [--layout zones positions]

Random trips are written to a temporary Parquet file in the layout of the Taxi and Limousine
Commission, then read by `paper.tasks.nycommute.load` in a process of its own, whose peak
resident memory is what is reported. Linux only.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

ZONES = 263
# VmHWM, because getrusage would give a child the peak of the process that started it.
READER = """
import sys, time
from pathlib import Path
begin = time.perf_counter()
from rdeepsense.paper.tasks.nycommute import load
task = load(Path(sys.argv[1]))
seconds = time.perf_counter() - begin
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(len(task.y), seconds, 1024 * int(peak))
"""


def write_trips(folder: Path, rows: int, layout: str) -> None:
    """A month of trips of 1 minute to almost 24 hours, in the columns of one layout."""
    rng = np.random.default_rng(0)
    begin = 1_483_228_800 + rng.integers(0, 31 * 86_400, rows)
    seconds = np.minimum(rng.lognormal(6.4, 0.8, rows), 86_399).astype(np.int64)
    columns: dict[str, object] = {
        "VendorID": rng.integers(1, 3, rows),
        "tpep_pickup_datetime": pl.Series(begin * 1_000_000).cast(pl.Datetime("us")),
        "tpep_dropoff_datetime": pl.Series((begin + seconds) * 1_000_000).cast(pl.Datetime("us")),
        "trip_distance": rng.random(rows).round(2),
        "fare_amount": rng.random(rows).round(2),
    }
    for end, short in (("pickup", "PU"), ("dropoff", "DO")):
        if layout == "zones":
            columns[f"{short}LocationID"] = rng.integers(1, ZONES + 1, rows)
        else:
            columns[f"{end}_longitude"] = -73.97 + 0.04 * rng.normal(size=rows)
            columns[f"{end}_latitude"] = 40.75 + 0.03 * rng.normal(size=rows)
    pl.DataFrame(columns).write_parquet(folder / "yellow_tripdata_2017-01.parquet")
    zones = {"zone_id": np.arange(1, ZONES + 1), "lon": np.full(ZONES, -73.9), "lat": 40.7}
    pl.DataFrame(zones).write_csv(folder / "zones.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--layout", nargs="+", default=["zones", "positions"])
    chosen = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"polars {pl.__version__}, numpy {np.__version__}"
    )
    print("| layout | trips | seconds | peak memory (GB) |\n|---|---|---|---|")
    for layout in chosen.layout:
        with tempfile.TemporaryDirectory() as name:
            write_trips(Path(name), chosen.rows, layout)
            done = subprocess.run(
                [sys.executable, "-c", READER, name], capture_output=True, text=True, check=True
            )
        rows, seconds, peak = done.stdout.split()
        print(f"| {layout} | {int(rows):,} | {float(seconds):.1f} | {int(peak) / 1e9:.2f} |")


if __name__ == "__main__":
    main()
