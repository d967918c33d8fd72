"""The automatic single pass on the real data of the paper's four tasks.

    RDEEPSENSE_DATA=... python benchmarks/real_tasks.py [--task bpest ...] [--splits 0 1 2]
        [--hidden auto 500,500,500] [--json FILE]

"auto" chooses the network too, "500,500,500" is the paper's; head, alpha and dropout are chosen in
both, and where both are asked for the difference of each part is printed, split by split. Test rows
are seen by no choice; of HAPT they are those of 6 users, with 21 to train on and 3 to choose on.
Wants a GPU: the grid of the paper's network is 24 networks of three layers of 500.
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
from rdeepsense._files import write_whole
from rdeepsense.cli.options import widths_of
from rdeepsense.paper.tasks.task import Split, Task

Part = tuple[str, Task, Split]


def bpest(folder: Path, seed: int) -> Iterator[Part]:
    task = adapters.bpest(folder)
    yield "random windows", task, task.split("rows", seed=seed)
    yield "unseen records", task, task.split("groups", seed=seed)


def nycommute(folder: Path, seed: int) -> Iterator[Part]:
    task = adapters.nycommute(folder)
    yield "no trip removed", task, task.split(seed=seed)
    task = adapters.nycommute(folder, drop_corrupted=True)
    yield "filtered", task, task.split(seed=seed)


def gassen(folder: Path, seed: int) -> Iterator[Part]:
    task = adapters.gassen(folder)
    yield "random rows", task, task.split(seed=seed)
    early = task.groups <= 6
    within = np.random.default_rng(seed).permutation(np.flatnonzero(early))
    held = len(within) // 20
    drift = Split(within[held:], within[:held], np.flatnonzero(~early), "batches 1-6 to 8-9")
    yield "drift", task, drift


def hapt(folder: Path, seed: int) -> Iterator[Part]:
    task = adapters.hapt(folder)
    yield "unseen users", task, task.split(shares=(21, 3, 6), seed=seed)


TASKS: dict[str, Callable[[Path, int], Iterator[Part]]] = {
    "bpest": bpest, "nycommute": nycommute, "gassen": gassen, "hapt": hapt
}  # fmt: skip


def measure(task: Task, split: Split, hidden: str) -> dict[str, Any]:
    """Fit on the training rows, choose on the validation rows, judge on the test rows."""
    kind = RDeepSenseClassifier if task.classes else RDeepSenseRegressor
    model = kind(hidden=widths_of(hidden), random_state=0)
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
        f"{row['task']:9s} {row['part']:16s} split {row['split']} {row['hidden']:12s} "
        f"test {row['test_rows']:6d}: {figures}; {row['network']}, {row['chosen']}, "
        f"{row['calibration']}, {row['seconds']:.0f} s"
    )


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Return for each part the means over its splits, and the first choice less the others."""
    for task, part in dict.fromkeys((row["task"], row["part"]) for row in rows):
        own = [row for row in rows if (row["task"], row["part"]) == (task, part)]
        by: dict[str, dict[int, dict[str, Any]]] = {}
        for row in own:
            by.setdefault(row["hidden"], {})[row["split"]] = row
        names = (
            ("accuracy", "nll", "ece") if "accuracy" in own[0] else ("mae", "nll", "mae_of_median")
        )
        for hidden, splits in by.items():
            means = ", ".join(f"{n} {np.mean([r[n] for r in splits.values()]):.4f}" for n in names)
            yield f"{task:9s} {part:16s} {hidden:12s} mean of {len(splits)}: {means}"
        first, *others = by
        for other in others:
            both = sorted(by[first].keys() & by[other].keys())
            if len(both) < 2:
                continue
            pairs = {n: [by[first][k][n] - by[other][k][n] for k in both] for n in names}
            told = ", ".join(
                f"{n} {np.mean(d):+.4f} +- {np.std(d, ddof=1) / np.sqrt(len(d)):.4f}"
                for n, d in pairs.items()
            )
            yield f"{task:9s} {part:16s} {first} less {other}, {len(both)} splits: {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--hidden", nargs="+", default=["auto", "500,500,500"])
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    folder = adapters.data_folder()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    print(f"{device or 'CPU'}, torch {torch.__version__}", flush=True)
    results: list[dict[str, Any]] = []
    for name in arguments.task:
        for seed in arguments.splits:
            for part, task, split in TASKS[name](folder, seed):
                for hidden in arguments.hidden:
                    row = {"task": name, "part": part, "split": seed, "hidden": hidden}
                    row |= {"device": device, **measure(task, split, hidden)}
                    results.append(row)
                    print(line(row), flush=True)
                    if arguments.json:
                        write_whole(arguments.json, json.dumps(results, indent=1))
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
