"""Are intervals honest for a group that was never trained on? Real drift, users and records.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/new_groups.py TASK [--seeds 5]

TASK is one of:

    gas     UCI 270, batches 1 to 6 -> 8 and 9: the 128 columns as arcsinh(x / median |x|), the gas
            as one-hot; Student-t, two layers of 64; a group is a batch
    hapt    UCI HAPT, 24 users -> 6 that were never trained on, drawn anew for each seed
    bpest   blood pressure (mean of a window) from 250 samples of PPG; 300 records -> 100 others of
            other blocks of 50 neighbouring records; a group is a block

Each is fitted without groups (validation rows drawn at random) and with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from adapters import bpest, columns, data_folder, hapt
from numpy.typing import NDArray

import rdeepsense as rds

Rows = NDArray[Any]
Parts = tuple[Rows, Rows, Rows, Rows, Rows]  # X, y, groups; X and y of new groups
RECORDS = (300, 100)


def gas(folder: Path, seed: int) -> Parts:
    """The rows of batches 1 to 6 and of 8 and 9."""
    table = columns(folder / "gassen" / "uci270_drift.parquet")
    names = sorted(name for name in table if name[0] == "s" and name[1:3].isdigit())
    values = np.stack([table[name] for name in names], axis=1).astype(float)
    batch, train = table["batch"].astype(int), table["batch"] <= 6
    values = np.arcsinh(values / np.median(np.abs(values[train]), axis=0))
    X = np.hstack([values, np.eye(6)[table["gas"].astype(int) - 1]])
    y = table["ppm"].astype(float)
    return X[train], y[train], batch[train], X[~train], y[~train]


def users(folder: Path, seed: int) -> Parts:
    """Windows of 24 users and of 6 others."""
    task = hapt(folder)
    assert task.groups is not None
    order = np.random.default_rng(seed).permutation(np.unique(task.groups))
    new = np.isin(task.groups, order[:6])
    return task.X[~new], task.y[~new], task.groups[~new], task.X[new], task.y[new]


def records(folder: Path, seed: int) -> Parts:
    """Windows of some records and of others; a patient's records may be neighbours.

    So whole blocks of neighbouring records are new, and a block is a group.
    """
    task = bpest(folder)
    assert task.groups is not None
    record = columns(folder / "bpest" / "windows.parquet")["record"].astype(int)
    rng = np.random.default_rng(seed)
    blocks = rng.permutation(np.unique(task.groups))
    new = np.isin(task.groups, blocks[: len(blocks) // 4])
    some = [
        np.isin(record, rng.permutation(np.unique(record[part]))[:count])
        for part, count in zip((~new, new), RECORDS, strict=True)
    ]
    y = task.y.mean(1).astype(float)
    train, test = some
    return task.X[train], y[train], task.groups[train], task.X[test], y[test]


TASKS = {"gas": gas, "hapt": users, "bpest": records}


def fitted(task: str, X: Rows, y: Rows, groups: Rows | None, seed: int, **more: Any) -> Any:
    """Fit as this task is fitted."""
    if task == "hapt":
        kind, own = rds.RDeepSenseClassifier, {"effort": "quick"}
    else:
        kind = rds.RDeepSenseRegressor
        own = {"hidden": (64, 64), "likelihood": "student", "drop_prob": 0.05, "alpha": 0.0}
    model = kind(random_state=seed, verbose=False, **{**own, **more})
    return model.fit(X, y, groups=groups)


def figures(model: Any, X: Rows, y: Rows) -> dict[str, float]:
    """The figures of new groups, and what was said of them beforehand."""
    found, said = model.evaluate(X, y), model.validation_scores_
    names = ("mae", "nll", "coverage_90", "sharpness", "accuracy", "ece")
    shown = {name: found[name] for name in names if name in found}
    return shown | {f"said {name}": said[name] for name in shown if name in said}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    folder, rows = data_folder(), []
    for seed in range(arguments.seeds):
        X, y, groups, X_new, y_new = TASKS[arguments.task](folder, seed)
        for given in (None, groups):
            how = "random validation" if given is None else "groups"
            model = fitted(arguments.task, X, y, given, seed)
            rows.append((how, figures(model, X_new, y_new)))
            cells = "  ".join(f"{k} {v:.3f}" for k, v in rows[-1][1].items())
            print(f"seed {seed}, {how}: {cells}", flush=True)
    for how in ("random validation", "groups"):
        own = [found for name, found in rows if name == how]
        cells = "  ".join(f"{k} {np.mean([one[k] for one in own]):.3f}" for k in own[0])
        print(f"mean, {how}: {cells}")


if __name__ == "__main__":
    main()
