"""Categories as inputs: NLL beside one-hot by hand, and what 10,000 levels cost beside 64.

    python benchmarks/categorical.py [--seeds 3]

Quality: a category of few and one of many levels decides half of the variance that can be told; the
inputs given by hand are numbers and one column for each level. `without` leaves the category out.
Cost: the same rows with 64 and with 10,000 levels, one after the other and again, in one process;
memory is what the vectors of the levels take in the model, beside the rows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd

import rdeepsense as rds

SETTINGS: dict[str, Any] = {"effort": "quick", "likelihood": "gaussian", "device": "cpu"}
MOST_APART, MOST_SLOWER = 0.02, 1.5


def table(rows: int, levels: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three numbers and a category; each half of them explains half of what is no noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    effect = np.random.default_rng(levels).normal(size=levels)
    level = rng.integers(levels, size=rows)
    y = (np.sin(2 * x[:, 0]) + 0.5 * x[:, 1]) / 0.87 + effect[level] + 0.5 * rng.normal(size=rows)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    return frame.assign(site=[f"site {k}" for k in level]), y


def by_hand(frame: pd.DataFrame, levels: int) -> np.ndarray:
    """Numbers, and a column for each level."""
    number = frame["site"].str.removeprefix("site ").astype(int)
    return np.column_stack([frame[["a", "b", "c"]].to_numpy(), np.eye(levels)[number]])


def quality(levels: int, rows: int, seeds: int) -> None:
    """Print the NLL of each way."""
    found: dict[str, list[float]] = {"categories": [], "by hand": [], "without": []}
    for seed in range(seeds):
        train, test = table(rows, levels, seed), table(20_000, levels, 1_000 + seed)
        ways = {
            "categories": lambda frame: frame,
            "by hand": lambda frame: by_hand(frame, levels),
            "without": lambda frame: frame[["a", "b", "c"]],
        }
        for name, way in ways.items():
            model = rds.RDeepSenseRegressor(random_state=seed, **SETTINGS)
            model.fit(way(train[0]), train[1])
            found[name].append(model.evaluate(way(test[0]), test[1])["nll"])
    means = {name: float(np.mean(values)) for name, values in found.items()}
    apart = means["categories"] - means["by hand"]
    said = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
    held = "holds" if apart <= MOST_APART else "MISSED"
    print(f"{levels:>5} levels, {rows:,} rows: NLL {said}; {apart:+.4f} from by hand ({held})")


def cost(rows: int = 50_000) -> None:
    """Print seconds of a fit and of predictions, and the bytes of the vectors."""
    tables = {levels: table(rows, levels, 0) for levels in (64, 10_000)}
    seconds: dict[int, list[tuple[float, float]]] = {levels: [] for levels in tables}
    models = {}
    for _ in range(3):
        for levels, (frame, y) in tables.items():
            model = rds.RDeepSenseRegressor(epochs=10, random_state=0, **SETTINGS)
            begin = time.perf_counter()
            model.fit(frame, y)
            middle = time.perf_counter()
            model.predict(frame)
            seconds[levels].append((middle - begin, time.perf_counter() - middle))
            models[levels] = model
    middle = {levels: np.median(parts, axis=0) for levels, parts in seconds.items()}
    for k, what in enumerate(("fit", "predict")):
        ratio = middle[10_000][k] / middle[64][k]
        held = "holds" if ratio <= MOST_SLOWER else "MISSED"
        print(
            f"{what}: {middle[64][k]:.2f} s with 64 levels, {middle[10_000][k]:.2f} s with 10,000: "
            f"{ratio:.2f} times ({held})"
        )
    for levels, (frame, y) in tables.items():
        tracemalloc.start()
        rds.RDeepSenseRegressor(epochs=1, random_state=0, **SETTINGS).fit(frame, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        (category,) = models[levels].fitted_.inputs.encoding.categories
        size = category.vectors.nbytes / 1e3
        print(f"{levels:>6} levels: {size:,.0f} kB of vectors; peak of numpy {peak / 1e6:,.0f} MB")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=3)
    seeds = arguments.parse_args().seeds
    for levels, rows in ((4, 2_000), (12, 2_000), (40, 5_000), (200, 10_000)):
        quality(levels, rows, seeds)
    cost()


if __name__ == "__main__":
    main()
