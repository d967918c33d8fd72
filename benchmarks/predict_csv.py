"""Rows a second of `rdeepsense predict TABLE.csv -o OUT.csv`, beside another version of it.

    python benchmarks/predict_csv.py --before PATH [--rows 2000000] [--model FILE] [--rounds 3]

PATH is a checkout of the version to compare with, such as `git worktree add PATH COMMIT` makes.
Simulated rows of 12 inputs with four decimals. The two take turns, each in a process of its own,
and seconds are those of the whole process. The first call for a model also compiles it and times
it beside torch; `--fresh` makes every call a first one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from batch_predict import INPUTS, NAMES, write_model
from processes import Measured, measured


def write_table(path: Path, rows: int) -> None:
    X = np.random.default_rng(1).standard_normal((rows, INPUTS)).round(4)
    pl.DataFrame(X, NAMES).write_csv(path)


def predict(source: Path, model: Path, table: Path, cache: Path | None) -> Measured:
    out = table.with_suffix(".out.csv")
    command = [sys.executable, "-m", "rdeepsense", "predict", model, table, "-o", out, "--quiet"]
    env = {**os.environ, "PYTHONPATH": str(source)}
    if cache is not None:
        env["XDG_CACHE_HOME"] = str(cache)
    return measured([*map(str, command), "--overwrite"], env)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--model", help="a model of the inputs s0 to s11; else one is fitted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    sources = {"before": args.before / "src", "now": Path(__file__).parents[1] / "src"}
    taken: dict[str, list[Measured]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "m.safetensors"
        if args.model is None:
            write_model(model)
        else:
            model.write_bytes(Path(args.model).read_bytes())
        write_table(folder / "t.csv", args.rows)
        for number in range(args.rounds):
            for which, source in sources.items():
                cache = folder / f"cache-{number}" if args.fresh else None
                one = predict(source, model, folder / "t.csv", cache)
                taken[which].append(one)
                print(f"{number} {which}: {one}", flush=True)
    median = statistics.median
    whole = {which: median(one.seconds for one in found) for which, found in taken.items()}
    cpu = {which: median(one.cpu for one in found) for which, found in taken.items()}
    peak = {which: max(one.peak for one in found) for which, found in taken.items()}
    together = {which: max(one.together for one in found) for which, found in taken.items()}
    for name, found in (("seconds", whole), ("CPU seconds", cpu)):
        times = found["before"] / found["now"]
        print(f"{name}: {found['before']:.1f} before, {found['now']:.1f} now, {times:.1f} times")
    print(f"rows a second now: {args.rows / whole['now']:,.0f}")
    print(f"peak MiB of a process: {peak['before']:.0f} before, {peak['now']:.0f} now")
    print(f"peak MiB of all processes together: {together['now']:.0f} now")


if __name__ == "__main__":
    main()
