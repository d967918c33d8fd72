"""How many healthy held-out rows the input guard flags, on real data; nothing is trained.

    python benchmarks/guard.py --uci FOLDER [--gas FILE] [--trips FILE] [--activities FILE]

The ranges are learnt from training rows alone; the held-out rows are of the same kind (random
splits), so every flag is a false alarm. `moved` has one input 35 standard deviations out in every
row, `absurd` has a training row of 1e6 standard deviations in every input beside that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.experiments.uci.datafile import find, load
from rdeepsense.guard import Guard

SPLITS = 20
AIM = 0.005

Split = tuple[NDArray[Any], NDArray[Any]]


def of_table(path: Path, most: int = 60_000) -> Iterator[Split]:
    """Yield random splits of the numeric columns of a Parquet file."""
    import polars as pl

    X = pl.read_parquet(path).select(pl.selectors.numeric().cast(pl.Float64)).to_numpy()
    X = X[np.isfinite(X).all(1)][:most]
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(X))
        cut = len(X) // 10
        yield X[order[cut:]], X[order[:cut]]


def of_uci(path: Path) -> Iterator[Split]:
    """Yield the splits that come with a set."""
    data = load(path)
    for test in data.test[:SPLITS]:
        yield data.x[~test], data.x[test]


def judge(name: str, splits: Iterator[Split]) -> None:
    """Print a line for a set."""
    rng, flagged, rows, moved, absurd = np.random.default_rng(0), 0, 0, [], []
    for train, test in splits:
        guard = Guard.fit(train, np.ones(1))
        flagged += int((guard.status(test) > 0).sum())
        rows += len(test)
        out = test.copy()
        out[np.arange(len(out)), rng.integers(out.shape[1], size=len(out))] += 0.0
        column = rng.integers(out.shape[1], size=len(out))
        std = train.std(0)
        step = 35 * np.where(std > 0, std, 1.0)
        out[np.arange(len(out)), column] += step[column]
        moved.append((guard.status(out) > 0).mean())
        with_absurd = np.vstack([train, train.mean(0) + 1e6 * np.where(std > 0, std, 1.0)])
        absurd.append((Guard.fit(with_absurd, np.ones(1)).status(out) > 0).mean())
    share = flagged / rows
    sign = "met" if share <= AIM else "MISSED"
    print(
        f"{name:24} {rows:8,} rows  flagged {share:7.3%} ({sign})   moved {np.mean(moved):6.1%}   "
        f"absurd {np.mean(absurd):6.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--table", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    if arguments.uci:
        for path in find(arguments.uci):
            judge(path.stem, of_uci(path))
    for path in arguments.table:
        judge(path.stem, of_table(path))


if __name__ == "__main__":
    main()
