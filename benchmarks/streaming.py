"""Training from a folder of Parquet files against training on the same rows in memory.

    python benchmarks/streaming.py [--rows 2000000] [--device cpu] [--out FILE]

Simulated rows of 16 inputs in float32. The budget is such that a window holds an eighth of the
rows. Each way runs in a process of its own, in turn, `--rounds` times; rows a second are those of
the training itself, peak memory is that of the process less what it was before the fit.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from rdeepsense import RDeepSenseRegressor
from rdeepsense._files import write_whole
from rdeepsense.fitting.stream_trainer import reader_count

INPUTS, SHARE, GROUPS = 16, 8, 64
NAMES = [f"x{number}" for number in range(INPUTS)]


def write_rows(folder: Path, rows: int) -> None:
    """Eight files, each of eight row groups."""
    per_file = rows // SHARE
    for number in range(SHARE):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((per_file, INPUTS), dtype=np.float32)
        noise = 0.3 * rng.standard_normal(per_file, dtype=np.float32)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
        columns = {**{name: X[:, i] for i, name in enumerate(NAMES)}, "y": y}
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=-(-rows // GROUPS))


def budget(rows: int) -> int:
    """Bytes for windows of an eighth of the rows (see rdeepsense.fitting.stream_trainer)."""
    row = 4 * (INPUTS + 1)
    reading = -(-rows // GROUPS) * (2 * reader_count() + 3) * row
    return 8 * (rows // SHARE * (3 * row + 24) + reading) // 5


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def one_fit(folder: Path, way: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train one way; called in a process of its own."""
    settings: dict[str, Any] = {
        "hidden": tuple(args.hidden),
        "batch_size": args.batch,
        "device": args.device,
        "effort": "quick",
        "likelihood": "gaussian",
        "random_state": 0,
        "verbose": False,
    }
    small = np.random.default_rng(0).random((5_000, INPUTS), dtype=np.float32)
    RDeepSenseRegressor(epochs=1, **settings).fit(small, small[:, 0])  # libraries, first kernels
    before, begin = peak(), time.perf_counter()
    model = RDeepSenseRegressor(epochs=args.epochs, **settings)
    if way == "folder":
        model.fit(folder, "y", memory=budget(args.rows))
    else:
        table = pq.read_table(folder)
        X = np.empty((len(table), INPUTS), dtype=np.float32)
        for number, name in enumerate(NAMES):
            X[:, number] = table[name]
        model.fit(X, table["y"].to_numpy())
    done = model.training_
    return {
        "seconds": time.perf_counter() - begin,
        "training_seconds": done["seconds"],
        "rows_per_second": done["steps"] * done["batch_size"] / done["seconds"],
        "peak_bytes": peak() - before,
        "validation_nll": model.validation_scores_["nll"],
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {"memory": [], "folder": []}
    with tempfile.TemporaryDirectory() as scratch:
        write_rows(Path(scratch), args.rows)
        for _ in range(args.rounds):
            for way, found in runs.items():
                command = [sys.executable, __file__, *sys.argv[1:], "--child", way, scratch]
                child = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(json.loads(child.stdout.splitlines()[-1]))
    medians = {
        way: {key: statistics.median(run[key] for run in found) for key in found[0]}
        for way, found in runs.items()
    }
    pairs = zip(runs["folder"], runs["memory"], strict=True)
    ratio = statistics.median(f["rows_per_second"] / m["rows_per_second"] for f, m in pairs)
    return {
        "rows": args.rows,
        "bytes": args.rows * 4 * (INPUTS + 1),
        "budget": budget(args.rows),
        "hidden": args.hidden,
        "batch": args.batch,
        "epochs": args.epochs,
        **medians,
        "ratio": ratio,
        "machine": platform.processor() or platform.machine(),
        "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "runs": runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--batch", type=int, default=1_024)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="also write the figures to this file, as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(one_fit(Path(args.child[1]), args.child[0], args)))
        return
    found = measure(args)
    print(f"{args.rows:,} rows x {INPUTS} inputs, {found['bytes'] / 2**20:.0f} MiB, {args.device}")
    for way in ("memory", "folder"):
        said = found[way]
        print(
            f"{way:7} {said['rows_per_second']:12,.0f} rows/s, fit {said['seconds']:.1f} s, "
            f"peak {said['peak_bytes'] / 2**20:.0f} MiB, NLL {said['validation_nll']:.3f}"
        )
    print(f"ratio {found['ratio']:.2f}; budget {found['budget'] / 2**20:.0f} MiB")
    if args.out:
        write_whole(args.out, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
