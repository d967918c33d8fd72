"""A stream without drift: what a live model costs beside the frozen one, and its false alarms.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/live_uci.py [--splits 20] [--out FILE]

Test rows of six UCI sets in random order, a label for every row, the defaults of `model.live`:
negative log likelihood of live less frozen, paired by split, coverage of both, and streams that
were called drifting. Then 200 streams of 1,000 simulated rows each, 10 for each of 20 models: how
many rang a false alarm, by labels and by inputs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from adapters import data_folder
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense._files import write_whole
from rdeepsense.adaptation.rates import Rates
from rdeepsense.datasets import simulate
from rdeepsense.live.live import alarms
from rdeepsense.live.state import FALSE_ALARMS, RowPass, Settings
from rdeepsense.live.targets import Numbers
from rdeepsense.paper import uci

COVERAGE = 0.9
MODELS, STREAMS, ROWS = 20, 10, 1_000
Row = dict[str, Any]
Array = NDArray[Any]


def fitted(X: Array, y: Array, seed: int) -> rds.RDeepSenseRegressor:
    model = rds.RDeepSenseRegressor(effort="quick", random_state=seed, device="cpu", verbose=False)
    return model.fit(X, y)


def paired(model: rds.RDeepSenseRegressor, X: Array, y: Array, rates: Rates | None = None) -> Row:
    """Live beside frozen on the same rows."""
    dist, live = model.predict_dist(X), model.live(COVERAGE, rates=rates)
    low, high = dist.interval(COVERAGE)
    nll, held = [], []
    for x, truth in zip(X, y, strict=True):
        said = live.predict(x)
        nll.append(-float(said.distribution.log_prob(truth)))
        held.append(said.interval[0] <= truth <= said.interval[1])
        live.observe(truth)
    return {
        "rows": len(y),
        "difference": float(np.mean(nll) + dist.log_prob(y).mean()),
        "frozen coverage": float(np.mean((low <= y) & (y <= high))),
        "live coverage": float(np.mean(held)),
        "alarm": live.drifting,
    }


def false_alarms(seed: int) -> Row:
    """Streams of rows like those of one model's training that rang."""
    task = simulate(3_000, seed)
    model = fitted(task.X, task.y, seed).fit_novelty(task.X)
    own = model.fitted_
    settings = Settings(COVERAGE, Rates(), "some", FALSE_ALARMS, 1)
    target = Numbers.of(own, COVERAGE, settings.rates)
    found = {"labels": 0, "inputs": 0}
    for stream in range(STREAMS):
        rows = simulate(ROWS, 1_000_000 + STREAMS * seed + stream)
        scores = {
            "labels": target.scores(model.predict_dist(rows.X), rows.y[:, None]),
            "inputs": own.novelty.surprise(own.scaled(rows.X)),
        }
        for name, test in alarms(RowPass.of(own, settings.rates), target, settings).items():
            for score in scores[name]:
                test = test.after(float(score), stream)
            found[name] += test.rings(FALSE_ALARMS / 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path, help="a file for the figures as JSON")
    given = parser.parse_args()
    results: list[Row] = []
    for path in uci.find(data_folder() / "uci"):
        data = uci.load(path)
        for split in range(given.splits):
            test = data.test[split]
            model = fitted(data.x[~test], data.y[~test], split)
            order = np.random.default_rng(split).permutation(np.flatnonzero(test))
            found = paired(model, data.x[order], data.y[order])
            results.append({"set": path.stem, "split": split, **found})
        own = [row for row in results if row["set"] == path.stem]
        means = {k: np.mean([r[k] for r in own]) for k in own[0] if k not in ("set", "split")}
        print(f"{path.stem:18}", "  ".join(f"{k} {v:.3f}" for k, v in means.items()), flush=True)
    counts = [false_alarms(seed) for seed in range(MODELS)]
    totals = {name: sum(one[name] for one in counts) for name in counts[0]}
    print(f"false alarms in {MODELS * STREAMS} streams of {ROWS} rows: {totals}")
    if given.out:
        write_whole(given.out, json.dumps({"sets": results, "alarms": counts}, indent=1))


if __name__ == "__main__":
    main()
