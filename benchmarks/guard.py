"""The input guard: false alarms on healthy held-out rows of real data, and what it costs in C.

    python benchmarks/guard.py [--uci FOLDER] [--table FILE.parquet ...] [--cost]

False alarms: the ranges are learnt from training rows alone; the held-out rows are of the same kind
(random splits), so every flag is a false alarm. Nothing is trained. `moved` has one input 35
standard deviations out in every row; `absurd` is the same where a training row lies 1e6 standard
deviations out in every input.

Cost: instructions of one prediction, with and without the guard, of net A (16-500-500-500-4).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.guard import Guard
from rdeepsense.paper.uci import find, load

SPLITS = 20
MOST_FLAGGED, MOST_COST = 0.005, 1.02

Split = tuple[NDArray[Any], NDArray[Any]]


def of_uci(path: Path) -> Iterator[Split]:
    """The splits that come with a set."""
    data = load(path)
    for test in data.test[:SPLITS]:
        yield data.x[~test], data.x[test]


def of_table(path: Path, most: int = 60_000) -> Iterator[Split]:
    """Random splits of the numeric columns of a Parquet file."""
    import polars as pl

    X = pl.read_parquet(path).select(pl.selectors.numeric().cast(pl.Float64)).to_numpy()
    X = X[np.isfinite(X).all(1)][:most]
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(X))
        cut = len(X) // 10
        yield X[order[cut:]], X[order[:cut]]


def judge(name: str, splits: Iterator[Split]) -> None:
    """Print a line for a set."""
    rng, flagged, rows, moved, absurd = np.random.default_rng(0), 0, 0, [], []
    for train, test in splits:
        guard = Guard.fit(train, np.ones(1))
        flagged += int((guard.status(test) > 0).sum())
        rows += len(test)
        std = train.std(0)
        step = np.where(std > 0, std, 1.0)
        column, out = rng.integers(test.shape[1], size=len(test)), test.copy()
        out[np.arange(len(out)), column] += 35 * step[column]
        moved.append((guard.status(out) > 0).mean())
        blinded = Guard.fit(np.vstack([train, train.mean(0) + 1e6 * step]), np.ones(1))
        absurd.append((blinded.status(out) > 0).mean())
    share = flagged / rows
    print(
        f"{name:24} {rows:8,} rows  flagged {share:7.3%} "
        f"({'met' if share <= MOST_FLAGGED else 'MISSED'})   moved {np.mean(moved):6.1%}   "
        f"absurd {np.mean(absurd):6.1%}"
    )


def cost() -> None:
    """Count instructions of a network of net A's shape; its weights are hardly trained."""
    from latency import trained

    from rdeepsense.deploy.c.build import single
    from rdeepsense.deploy.c.emit import Source
    from rdeepsense.deploy.profile.forms import Native
    from rdeepsense.deploy.quantise import DTYPES, prepare

    with tempfile.TemporaryDirectory() as folder:
        profiled = trained("GasSen", 200, Path(folder))
        guarded, row = profiled.folded, profiled.rows[0]
        bare = replace(guarded, facts=replace(guarded.facts, guard=None))
        for dtype in DTYPES:
            network = prepare(guarded, dtype, profiled.rows.astype(np.float32))
            counts = [
                Native(single(Source(one, network)), row).instructions() for one in (guarded, bare)
            ]
            if counts[0] is None or counts[1] is None:
                print("instructions are counted by valgrind, which is not here")
                return
            ratio = counts[0] / counts[1]
            print(
                f"{dtype:8} {counts[0]:9,} instructions with the guard, {counts[1]:9,} without: "
                f"{ratio:.4f} ({'met' if ratio <= MOST_COST else 'MISSED'})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--cost", action="store_true")
    arguments = parser.parse_args()
    for path in find(arguments.uci) if arguments.uci else []:
        judge(path.stem, of_uci(path))
    for path in arguments.table:
        judge(path.stem, of_table(path))
    if arguments.cost:
        cost()


if __name__ == "__main__":
    main()
