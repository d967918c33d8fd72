"""Seconds of `rdeepsense fit`, `predict` and `evaluate` on tables with very many columns.

    python benchmarks/wide_table.py [--columns 1000 3000 10000] [--rows 60] [--suffix csv parquet]

Random numbers are written to a temporary table. Each command runs in this process, for one epoch
of a small network, so that what is measured is what the command line does around the training.
Seconds should grow as the columns do, not as their square.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from rdeepsense.cli import main
from rdeepsense.cli.terminal import write_table


def write_wide(path: Path, columns: int, rows: int) -> None:
    """A table of `columns` random inputs and a target that follows from the first."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, columns))
    inputs = {f"sensor_{number}": values[:, number] for number in range(columns)}
    write_table(path, pl.DataFrame({**inputs, "y": values[:, 0] + rng.normal(size=rows)}))


def seconds_of(*words: object) -> float:
    """Seconds of one command, which must succeed."""
    begin = time.perf_counter()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main([str(word) for word in words])
    except SystemExit as end:
        if end.code:
            raise
    return time.perf_counter() - begin


def measure(columns: int, rows: int, suffix: str, folder: Path) -> dict[str, float]:
    """Seconds of each command, by its name."""
    table, model = folder / f"wide.{suffix}", folder / "model.safetensors"
    write_wide(table, columns, rows)
    fit = ("fit", "--quick", table, "--target", "y", "--hidden", "4", "--epochs", 1, "-o", model)
    return {
        "fit": seconds_of(*fit, "--overwrite"),
        "predict": seconds_of("predict", model, table, "--overwrite", "-o", folder / "out.csv"),
        "evaluate": seconds_of("evaluate", model, table, "--target", "y"),
    }


def run() -> None:
    """Print a line for each number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--suffix", nargs="+", default=["csv", "parquet"])
    args = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, {args.rows} rows")
    with tempfile.TemporaryDirectory() as folder:
        measure(10, args.rows, "csv", Path(folder))  # imports
        for suffix in args.suffix:
            for columns in args.columns:
                found = measure(columns, args.rows, suffix, Path(folder))
                told = "  ".join(f"{name} {seconds:7.2f} s" for name, seconds in found.items())
                print(f"{suffix:8} {columns:6,} columns  {told}", flush=True)


if __name__ == "__main__":
    run()
