"""One fit from Parquet files on workers of Ray, against the same fit without an engine.

    python benchmarks/cluster_fit.py [--rows 2000000] [--epochs 20] [--workers 1 2 4] [--out FILE]

Simulated rows of the task whose true distribution is known, in windows of a budget of 48 MiB. All
workers are processes of this machine, so more of them than cores show no growth: what is shown is
that figures stay, what a step sends, and what one worker costs beside none. `seconds` are of the
whole fit; `start-up` is what of them Ray took to start and end the workers, reading excluded;
`CPU s` is what this process and the workers computed, which other programs on the machine hardly
change. The first way is run before Ray is started, and again after each other way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import rdeepsense as rds
from rdeepsense._files import write_whole
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.metrics import nll

FILES, GROUPS = 8, 64
MEMORY = 48 * 2**20
TEST_ROWS = 200_000
BOUND = 0.15  # of the seconds without an engine
HEADS = (
    "workers",
    "s",
    "start-up",
    "rest",
    "CPU s",
    "NLL",
    "cover 90 %",
    "steps",
    "bytes",
    "by the model",
)


def write_rows(folder: Path, rows: int) -> None:
    """Eight files, each of eight row groups."""
    per_file = rows // FILES
    for number in range(FILES):
        data = simulate(per_file, number)
        columns = dict(zip(FEATURES, data.X.T.astype(np.float32), strict=True))
        table = pa.table({**columns, "y": data.y.astype(np.float32)})
        path = folder / f"{number}.parquet"
        pq.write_table(table, path, row_group_size=-(-rows // GROUPS))


def one_fit(folder: Path, workers: int | None, args: argparse.Namespace) -> dict[str, Any]:
    """Fit on so many workers, or without an engine."""
    model = rds.RDeepSenseRegressor(
        hidden=tuple(args.hidden),
        drop_prob=0.02,
        alpha=0.1,
        likelihood="gaussian",
        epochs=args.epochs,
        batch_size=args.batch,
        device="cpu",
        random_state=args.seed,
        verbose=False,
    )
    engine = None if workers is None else rds.Ray(workers=workers)
    begin, used = time.perf_counter(), time.process_time()
    model.fit(folder, "y", memory=MEMORY, engine=engine)
    seconds, used = time.perf_counter() - begin, time.process_time() - used
    test, training = simulate(TEST_ROWS, 1_000), model.training_
    found = rds.metrics.evaluate(model.predict_dist(test.X), test.y)
    each = training.get("workers", [])
    weights = [value.numpy().tobytes() for value in model.network_.state_dict().values()]
    return {
        "workers": workers,
        "seconds": seconds,
        "startup": training.get("seconds_around", 0.0),
        "cpu": used + sum(one["cpu_seconds"] for one in each),
        "steps": training["steps"],
        "steps_each": [one["steps"] for one in each],
        "rows_each": [one["rows"] for one in each],
        "bytes_each": [one["bytes_reduced"] for one in each],
        "parameters": sum(value.numel() for value in model.network_.parameters()),
        "nll": found["nll"],
        "coverage_90": found["coverage_90"],
        "digest": hash(b"".join(weights)),
    }


def row_of(result: dict[str, Any]) -> list[str]:
    bytes_each = max(result["bytes_each"], default=0)
    model = result["steps"] * 4 * result["parameters"] if (result["workers"] or 1) > 1 else 0
    return [
        "none" if result["workers"] is None else str(result["workers"]),
        f"{result['seconds']:.1f}",
        f"{result['startup']:.1f}",
        f"{result['seconds'] - result['startup']:.1f}",
        f"{result['cpu']:.1f}",
        f"{result['nll']:.4f}",
        f"{result['coverage_90']:.4f}",
        f"{result['steps']:,}",
        f"{bytes_each:,}",
        f"{model:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1_024)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, args.rows)
        results = [one_fit(folder, None, args)]
        print(row_of(results[0]), flush=True)
        ray.init(
            address="local",
            num_cpus=max(args.workers),
            object_store_memory=100 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
        )
        for workers in args.workers:
            for way in (workers, None):
                results.append(one_fit(folder, way, args))
                print(row_of(results[-1]), flush=True)
        ray.shutdown()
    print(f"{args.rows:,} simulated rows, {os.cpu_count()} cores, {platform.machine()}")
    for line in ([*HEADS], ["---"] * len(HEADS), *map(row_of, results)):
        print(f"| {' | '.join(line)} |")
    test = simulate(TEST_ROWS, 1_000)
    print(f"NLL of the true distribution: {nll(test.truth, test.y):.4f}")
    plain = [result for result in results if result["workers"] is None]
    base, cpu = (statistics.median(one[key] for one in plain) for key in ("seconds", "cpu"))
    for one in (result for result in results if result["workers"] == 1):
        over, more = (one["seconds"] - one["startup"]) / base - 1, one["cpu"] / cpu - 1
        same = one["digest"] == plain[0]["digest"]
        print(f"one worker: {100 * over:+.1f} % beyond start-up (bound {100 * BOUND:.0f} %)")
        print(f"one worker: {100 * more:+.1f} % of CPU seconds")
        print(f"one worker: {'the same bits as' if same else 'OTHER BITS THAN'} none")
    if args.out is not None:
        write_whole(args.out, json.dumps(results, indent=1).encode())


if __name__ == "__main__":
    main()
