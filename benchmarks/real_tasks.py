"""The automatic single pass on the real data of the paper's four tasks, with the paper's network.

    RDEEPSENSE_DATA=... python benchmarks/real_tasks.py [--task bpest ...] [--likelihood auto]
        [--hidden auto] [--json FILE]

Splits have seed 0 (HAPT: seeds 0 to 4, 21/3/6 users); the test rows are seen by no choice. Wants a
GPU: the grid is 24 networks of three layers of 500.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adapters
import numpy as np
import torch

from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor, metrics
from rdeepsense.cli.widths import widths_of
from rdeepsense.experiments.tasks.task import Split, Task
from rdeepsense.files import write_whole

Part = tuple[str, Task, Split]


def bpest(folder: Path) -> Iterator[Part]:
    task = adapters.bpest(folder)
    yield "random windows", task, task.split("rows")
    yield "unseen records", task, task.split("groups")


def nycommute(folder: Path) -> Iterator[Part]:
    task = adapters.nycommute(folder)
    yield "no trip removed", task, task.split()
    task = adapters.nycommute(folder, drop_corrupted=True)
    yield "filtered", task, task.split()


def gassen(folder: Path) -> Iterator[Part]:
    task = adapters.gassen(folder)
    yield "random rows", task, task.split()
    early = task.groups <= 6
    within = np.random.default_rng(0).permutation(np.flatnonzero(early))
    held = len(within) // 20
    drift = Split(within[held:], within[:held], np.flatnonzero(~early), "batches 1-6 to 8-9")
    yield "drift", task, drift


def hapt(folder: Path) -> Iterator[Part]:
    task = adapters.hapt(folder)
    for seed in range(5):
        yield f"users, split {seed}", task, task.split(shares=(21, 3, 6), seed=seed)


TASKS: dict[str, Callable[[Path], Iterator[Part]]] = {
    "bpest": bpest, "nycommute": nycommute, "gassen": gassen, "hapt": hapt
}  # fmt: skip


def measure(task: Task, split: Split, likelihood: str, hidden: Any) -> dict[str, Any]:
    """Fit on the training rows, choose on the validation rows, judge on the test rows."""
    options: dict[str, Any] = {"hidden": hidden, "alpha": "auto", "drop_prob": "auto"}
    if task.classes:
        model: Any = RDeepSenseClassifier(**options, random_state=0)
    else:
        model = RDeepSenseRegressor(**options, likelihood=likelihood, random_state=0)
    begin = time.perf_counter()
    held = (task.X[split.validation], task.y[split.validation])
    model.fit(task.X[split.train], task.y[split.train], validation=held)
    seconds = time.perf_counter() - begin
    dist, y = model.predict_dist(task.X[split.test]), task.y[split.test]
    figures = metrics.evaluate(dist, y)
    if not task.classes:
        figures["mae_se"] = _standard_error(np.abs(dist.mean - y), task, split)
        figures["mae_of_median"] = float(np.mean(np.abs(dist.quantile(0.5) - y)))
    chosen = model.fitted_.networks.candidate
    return {
        "likelihood": likelihood,
        "network": str(model.fitted_.networks.architecture),
        "chosen": f"{chosen.likelihood}, alpha {chosen.alpha}, drop {chosen.drop_prob}",
        "calibration": type(model.fitted_.calibration).__name__,
        "seconds": seconds,
        "test_rows": len(y),
        **figures,
        "selection": model.selection_,
    }


def _standard_error(errors: Any, task: Task, split: Split) -> float:
    """Over rows; over groups where the split is by groups."""
    per_row = errors.reshape(len(errors), -1).mean(1)
    if "never" in split.how:
        groups = task.groups[split.test]
        sums = np.array([(per_row[groups == g] - per_row.mean()).sum() for g in np.unique(groups)])
        return float(np.sqrt((sums**2).sum()) / len(per_row))
    return float(per_row.std(ddof=1) / np.sqrt(len(per_row)))


def line(row: dict[str, Any]) -> str:
    if "accuracy" in row:
        figures = f"accuracy {row['accuracy']:.4f}, NLL {row['nll']:.3f}, ECE {row['ece']:.3f}"
    else:
        figures = (
            f"MAE {row['mae']:.3f} +- {row['mae_se']:.3f} (of the median "
            f"{row['mae_of_median']:.3f}), NLL {row['nll']:.3f}, deviation area "
            f"{row['deviation_area']:.4f} (floor {row['deviation_floor']:.4f})"
        )
    return (
        f"{row['task']:9s} {row['part']:16s} test {row['test_rows']:6d}: {figures}; "
        f"{row['network']}, {row['chosen']}, {row['calibration']}, {row['seconds']:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--likelihood", nargs="+", default=["auto"])
    parser.add_argument("--hidden", default="500,500,500", help="widths, or auto")
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    folder = adapters.data_folder()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    print(f"{device or 'CPU'}, torch {torch.__version__}", flush=True)
    results = []
    for name in arguments.task:
        for part, task, split in TASKS[name](folder):
            for likelihood in ("auto",) if task.classes else arguments.likelihood:
                row = {"task": name, "part": part, "device": device}
                row |= measure(task, split, likelihood, widths_of(arguments.hidden))
                results.append(row)
                print(line(row), flush=True)
                if arguments.json:
                    write_whole(arguments.json, json.dumps(results, indent=1))
    accuracies = [row["accuracy"] for row in results if "accuracy" in row]
    if len(accuracies) > 1:
        error = np.std(accuracies, ddof=1) / np.sqrt(len(accuracies))
        print(f"hapt      mean accuracy {np.mean(accuracies):.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
