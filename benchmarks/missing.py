"""Missing values: 5 % of the cells taken out at random, by the ways to treat them.

    RDEEPSENSE_DATA=FOLDER python benchmarks/missing.py [--sets concrete energy power] [--splits 5]

Both the training and the test rows of UCI sets have holes; `whole` is the same without any. Printed
are mean test NLL, the difference of indicator and mean with its standard error over the splits, and
the coverage of 90 % intervals with that of the rows that have a hole.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

import rdeepsense as rds
from rdeepsense.paper.uci import find, load

HOLES = 0.05
MOST_ROWS = 1_500  # to train on, so that it takes a minute or two
SETTINGS: dict[str, Any] = {"effort": "quick", "likelihood": "gaussian", "device": "cpu"}


def figures(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    """NLL, and coverage of all rows and of those with a hole."""
    low, high = model.predict_interval(X, 0.9)
    inside, holed = (low <= y) & (y <= high), np.isnan(X).any(1)
    some = inside[holed].mean() if holed.any() else np.nan
    return model.evaluate(X, y)["nll"], inside.mean(), some


def judge(path: Path, splits: int) -> None:
    """Print a line for each way."""
    data = load(path)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for split in range(min(splits, data.splits)):
        test, rng = data.test[split], np.random.default_rng(split)
        holed = np.where(rng.random(data.x.shape) < HOLES, np.nan, data.x)
        train = np.flatnonzero(~test)
        train = train[rng.permutation(len(train))[:MOST_ROWS]]
        for way, X in (("whole", data.x), ("mean", holed), ("indicator", holed)):
            missing = "auto" if way == "whole" else way
            model = rds.RDeepSenseRegressor(random_state=split, missing=missing, **SETTINGS)
            model.fit(X[train], data.y[train])
            found.setdefault(way, []).append(figures(model, X[test], data.y[test]))
    for way, parts in found.items():
        nll, covered, of_holes = np.nanmean(parts, axis=0) if way != "whole" else (
            *np.mean([part[:2] for part in parts], axis=0), np.nan)  # fmt: skip
        said = "" if way == "whole" else f", of rows with holes {of_holes:.3f}"
        print(f"{data.name:>16} {way:>10}: NLL {nll:8.4f}, coverage {covered:.3f}{said}")
    apart = np.array([a[0] - b[0] for a, b in zip(found["indicator"], found["mean"], strict=True)])
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    print(f"{data.name:>16} indicator less mean: {apart.mean():+.4f} +- {error:.4f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sets", nargs="+", default=["concrete", "energy", "power-plant"])
    arguments.add_argument("--splits", type=int, default=5)
    given = arguments.parse_args()
    if "RDEEPSENSE_DATA" not in os.environ:
        raise SystemExit("set RDEEPSENSE_DATA to the folder that holds uci/")
    for path in find(Path(os.environ["RDEEPSENSE_DATA"]) / "uci", given.sets):
        judge(path, given.splits)


if __name__ == "__main__":
    main()
