"""What a budget costs: the best network within 16, 64 and 256 kB of flash, on three UCI tables.

    RDEEPSENSE_DATA=... python benchmarks/budget.py [--splits 0 1] [--drop-prob 0.01]

Network and drop probability (unless it is given) are chosen within `Budget(flash=...)`, with a
Student-t head. It prints the calibrated NLL on the rows that validate and on the test rows, both of
the exported form, as means over the splits; and of each split the network, and what the exported C
needs of flash, tables and code as the compiler at hand makes it, beside what was counted before
training.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import rdeepsense as rds
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.options import LabelledRows
from rdeepsense.deploy.quality import quality
from rdeepsense.deploy.quantise import NetworkRunner, prepare
from rdeepsense.paper.uci import find, load

AUTO: dict[str, Any] = {"hidden": "auto", "alpha": 0.5, "likelihood": "student"}
AUTO |= {"random_state": 0, "verbose": False}


def figures(model: Any, budget: rds.Budget, X: Any, y: Any) -> dict[str, float]:
    """Export a model and judge that form on test rows."""
    with tempfile.TemporaryDirectory() as folder:
        report: Any = rds.export(
            model, f"{folder}/c", to="c99", dtype=budget.dtype, max_nll_change=np.inf
        )
    fitted = model.fitted_
    folded, rows = fold_fitted(fitted), LabelledRows.of(fitted).calibrating(budget.dtype)
    runner = NetworkRunner(folded, prepare(folded, budget.dtype, rows))
    found = quality(runner, fitted, X, y)
    return {
        "validation": model.validation_scores_["nll"],
        "test": found.after["nll"],
        "change": found.nll_change,
        "flash": report.bytes.tables_in_flash + (report.bytes.code_in_flash or 0),
        "counted": model.training_["budget"]["need"]["flash"],
        "multiply_adds": report.multiply_adds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, nargs="+", default=[0], help="their numbers")
    parser.add_argument("--sets", nargs="+", default=["concrete", "energy", "yacht"])
    parser.add_argument("--flash", nargs="+", default=["16 kB", "64 kB", "256 kB"])
    parser.add_argument("--drop-prob", default="auto", help="a number makes it three times faster")
    arguments = parser.parse_args()
    drop = arguments.drop_prob
    settings = {**AUTO, "drop_prob": drop if drop == "auto" else float(drop)}
    data = os.environ.get("RDEEPSENSE_DATA")
    if data is None:
        sys.exit("RDEEPSENSE_DATA is not set: the folder that holds uci/")
    means = []
    for path in find(Path(data) / "uci", arguments.sets):
        table = load(path)
        for flash in arguments.flash:
            budget, all_found = rds.Budget(flash=flash, dtype="int8"), []
            for split in arguments.splits:
                test = table.test[split]
                began = time.perf_counter()
                model = rds.RDeepSenseRegressor(budget=budget, **settings)
                model.fit(table.x[~test], table.y[~test])
                found = figures(model, budget, table.x[test], table.y[test])
                all_found.append(found)
                print(
                    f"{table.name:9s} {flash:>7s} split {split}: "
                    + " ".join(f"{name} {value:.6g}" for name, value in found.items())
                    + f" {time.perf_counter() - began:.0f} s {model.fitted_.networks.architecture}",
                    flush=True,
                )
            mean = {k: float(np.mean([one[k] for one in all_found])) for k in all_found[0]}
            most = max(one["flash"] for one in all_found)
            means.append((table.name, flash, mean, most, len(all_found)))
    print(f"\n{'table':9s} {'budget':>7s} {'validation':>10s} {'test':>8s} {'flash at most':>14s}")
    for name, flash, mean, most, _ in means:
        print(
            f"{name:9s} {flash:>7s} {mean['validation']:10.3f} {mean['test']:8.3f} "
            f"{most / 1024:11.1f} kB"
        )


if __name__ == "__main__":
    main()
