"""`make fuzz`: all kinds of files for FUZZ_SECONDS, from FUZZ_SEED; fails where one got through."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
from fuzz import data_files, model_files
from fuzz.loop import Row, fuzz, table

SHOWN = 20


def main() -> int:
    seconds, seed = (
        float(os.environ.get("FUZZ_SECONDS", "120")),
        int(os.environ.get("FUZZ_SEED", "0")),
    )
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subjects = [*model_files.subjects(folder), *data_files.subjects(folder)]
        rows = fuzz(subjects, folder, seed, 10**9, seconds)
    total = Row("all")
    for row in rows:
        for count in ("cases", "refused", "accepted", "foreign"):
            setattr(total, count, getattr(total, count) + getattr(row, count))
        total.slowest, total.largest = (
            max(total.slowest, row.slowest),
            max(total.largest, row.largest),
        )
        total.faults += [f"{row.name}, {fault}" for fault in row.faults]
    print(table([*rows, total]))
    for fault in total.faults[:SHOWN]:
        print(f"\n{fault}")
    if total.faults:
        print(f"\n{len(total.faults)} faults; seed {seed}")
    return 1 if total.faults else 0


if __name__ == "__main__":
    sys.exit(main())
