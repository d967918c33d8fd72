"""Gas sensors that drift: a model of batches 1 to 6 in the stream of batches 8 and 9.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/drift_gas.py [--seeds 5] [--out FILE]

The frozen model, a tracked quantile on the frozen model, adaptation alone, and both, as
`model.live` has them; a label for every row and for every tenth. Rows come batch by batch, in
random order within a batch. What a live model learns by is chosen by replaying each training batch
as a stream of a model that was trained without it. The grid that it is chosen from, and the
stretches of the experts, were settled with batches 8 and 9 in view.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from adapters import columns, data_folder
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.adaptation.choose_rates import choose_rates
from rdeepsense.adaptation.rates import Rates
from rdeepsense.adaptation.trackers import Multiplicative
from rdeepsense.files import write_whole
from rdeepsense.live.row_pass import RowPass

TRAINED, LATER = (1, 2, 3, 4, 5, 6), (8, 9)
COVERAGE, ETA = 0.9, 0.05
Row = dict[str, Any]
Array = NDArray[Any]


class Gas:
    """The table, whose inputs are scaled by the medians of the batches that are trained on."""

    def __init__(self, folder: Path) -> None:
        table = columns(folder / "gassen" / "uci270_drift.parquet")
        names = sorted(name for name in table if name[0] == "s" and name[1:3].isdigit())
        self.values = np.stack([table[name] for name in names], 1).astype(np.float64)
        self.gas = np.eye(6)[table["gas"].astype(int) - 1]
        self.batch, self.y = table["batch"], table["ppm"].astype(np.float64)

    def fit(self, batches: tuple[int, ...], seed: int) -> tuple[rds.RDeepSenseRegressor, Array]:
        """A model of some batches, and the inputs of all rows as it takes them."""
        own = np.isin(self.batch, batches)
        medians = np.median(np.abs(self.values[own]), 0)
        X = np.hstack([np.arcsinh(self.values / medians), self.gas])
        model = rds.RDeepSenseRegressor(
            effort="quick",
            likelihood="student",
            hidden=(64, 64),
            random_state=seed,
            device="cpu",
            verbose=False,
        )
        return model.fit(X[own], self.y[own], groups=self.batch[own]), X

    def stream(self, batches: tuple[int, ...], seed: int) -> Array:
        """Row numbers, batch by batch, shuffled within each."""
        rng = np.random.default_rng(seed)
        return np.concatenate([rng.permutation(np.flatnonzero(self.batch == b)) for b in batches])


def rates(gas: Gas, seed: int) -> Rates:
    """Replay each training batch with a model of the others."""
    streams = []
    for left in TRAINED:
        model, X = gas.fit(tuple(b for b in TRAINED if b != left), seed)
        rows = gas.stream((left,), seed)
        streams.append(RowPass.of(model.fitted_, Rates()).stream(X[rows], gas.y[rows]))
    return choose_rates(streams, COVERAGE)


def tracked(model: rds.RDeepSenseRegressor, X: Array, y: Array, every: int) -> dict[str, Row]:
    """The frozen model, and a tracked quantile on it."""
    dist = model.predict_dist(X)
    low, high = dist.interval(COVERAGE)
    middle, state = dist.quantile(0.5), Multiplicative(1 - COVERAGE, ETA)
    q = np.empty(len(y))
    for row in range(len(y)):
        q[row] = state.q
        if row % every == 0:
            half = (middle[row] - low[row], high[row] - middle[row])
            state = state.after(
                not middle[row] - q[row] * half[0] <= y[row] <= middle[row] + q[row] * half[1]
            )
    nll = -dist.log_prob(y)
    ends = middle - q * (middle - low), middle + q * (high - middle)
    return {
        "frozen": judged(middle, low, high, y, nll),
        "tracker": judged(middle, *ends, y, nll),
    }


def lived(live: rds.Live, X: Array, y: Array, every: int) -> dict[str, Row]:
    """Adaptation alone, and with the tracked quantile."""
    found, alarm = [], None
    for row, (x, truth) in enumerate(zip(X, y, strict=True)):
        said = live.predict(x)
        own = said.distribution
        found.append(
            (own.quantile(0.5), *own.interval(COVERAGE), *said.interval, -own.log_prob(truth))
        )
        if row % every == 0:
            live.observe(truth, said.ticket)
        if alarm is None and live.drifting:
            alarm = row + 1
    middle, low, high, lower, upper, nll = np.array(found, np.float64).T
    both = judged(middle, lower, upper, y, nll) | {"rows to alarm": alarm}
    return {"adapted": judged(middle, low, high, y, nll), "both": both}


def judged(middle: Array, low: Array, high: Array, y: Array, nll: Array) -> Row:
    return {
        "MAE": float(np.abs(middle - y).mean()),
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float((high - low).mean()),
        "NLL": float(nll.mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a file for the figures as JSON")
    given = parser.parse_args()
    gas, results = Gas(data_folder()), []
    for seed in range(given.seeds):
        chosen = rates(gas, seed)
        model, X = gas.fit(TRAINED, seed)
        known = np.isin(gas.batch, TRAINED)
        rows = gas.stream(LATER, seed)
        print(f"seed {seed}: {chosen}", flush=True)
        for every in (1, 10):
            parts = tracked(model, X[rows], gas.y[rows], every)
            parts |= lived(model.live(COVERAGE, rates=chosen), X[rows], gas.y[rows], every)
            results += [
                {"seed": seed, "every": every, "way": way, **row} for way, row in parts.items()
            ]
        watching = model.fit_novelty(X[known]).live(labels="none")
        rang = next((k + 1 for k, x in enumerate(X[rows]) if watching.predict(x).status & 32), None)
        results.append({"seed": seed, "every": None, "way": "no label", "rows to alarm": rang})
    for every in (1, 10):
        print(f"a label for every {every} row(s), mean of {given.seeds} seeds")
        for way in ("frozen", "tracker", "adapted", "both"):
            own = [r for r in results if r["every"] == every and r["way"] == way]
            figures = ("MAE", "coverage", "width", "NLL")
            text = "  ".join(f"{name} {np.mean([r[name] for r in own]):7.3f}" for name in figures)
            print(f"  {way:8} {text}")
    for every in (1, 10, None):
        rang = [r["rows to alarm"] for r in results if r["every"] == every and "rows to alarm" in r]
        print(f"rows to alarm, a label for every {every}: {rang}")
    if given.out:
        write_whole(given.out, json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
