"""Windows of a long log: samples a second, and memory beyond the log itself.

    python benchmarks/windows.py [--samples 10000000] [--jitter 0.2] [--form dict]

The log has six channels in float32, a clock with jitter, gaps, repeated and late times, 20 users
with 5 recordings each, and six labels. Memory is the peak of the process less what it had with the
log in memory; gathering is of batches of 256 windows drawn at random.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import rdeepsense as rds

RATE, USERS, RECORDINGS, LABELS = 50.0, 20, 5, 6
CHANNELS = ("ax", "ay", "az", "gx", "gy", "gz")
SENSORS = {"accelerometer": CHANNELS[:3], "gyroscope": CHANNELS[3:]}
BATCH, BATCHES = 256, 40
MIB = 2**20


def log(samples: int, jitter: float) -> dict[str, Any]:
    """Draw a log; `jitter` is the standard deviation of a step, in periods."""
    rng = np.random.default_rng(0)
    recording = np.arange(samples) * (USERS * RECORDINGS) // samples
    t = np.arange(samples) / RATE
    if jitter:
        t += rng.standard_normal(samples) * (jitter / RATE)
        t += np.cumsum(rng.random(samples) < 1e-5) * 2.0  # gaps
        again = np.flatnonzero(rng.random(samples) < 1e-4)[1:]
        t[again] = t[again - 1]
    table: dict[str, Any] = {name: rng.standard_normal(samples, np.float32) for name in CHANNELS}
    label = (np.arange(samples) // 3_000 % LABELS).astype(np.int8)
    user = (recording // RECORDINGS).astype(np.int16)
    return {"t": t, **table, "user": user, "recording": recording.astype(np.int32), "label": label}


def in_form(table: dict[str, Any], form: str) -> Any:  # Any: of the library that is asked for
    """Return the log as a table of a library."""
    if form == "polars":
        import polars

        return polars.DataFrame(table)
    if form == "pandas":
        import pandas

        return pandas.DataFrame(table)
    if form == "pyarrow":
        import pyarrow

        return pyarrow.table(table)
    return table


def peak() -> float:
    """Return the most memory that the process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--jitter", type=float, default=0.2)
    parser.add_argument("--form", choices=("dict", "polars", "pandas", "pyarrow"), default="dict")
    arguments = parser.parse_args()
    rds.windows(log(10_000, 0.2), "t", SENSORS, "5s")  # imports what is imported late
    table = in_form(log(arguments.samples, arguments.jitter), arguments.form)
    before = peak()
    begin, busy = time.perf_counter(), time.process_time()
    found = rds.windows(
        table, "t", SENSORS, "5s", "1s", rate=RATE, by=("user", "recording"), label="label"
    )
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    beyond = peak() - before
    print(found.report)
    rng = np.random.default_rng(1)
    begin = time.perf_counter()
    for _ in range(BATCHES):
        found.gather(rng.integers(len(found), size=BATCH))
    gathered = (time.perf_counter() - begin) / (BATCH * BATCHES)
    whole = len(found) * np.prod(found.shape[1:]) * 4 / MIB
    each = f"{arguments.samples / seconds / 1e6:.2f} million samples a second"
    print(f"cut       {each}; {arguments.samples / busy / 1e6:.2f} of processor time")
    print(f"memory    {beyond:,.0f} MiB beyond the log; all windows would be {whole:,.0f} MiB")
    print(f"gathered  {gathered * 1e6:.2f} us a window of {found.shape[1]} samples")


if __name__ == "__main__":
    main()
