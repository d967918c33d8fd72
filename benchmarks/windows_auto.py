"""The automatic choice for raw windows beside a DeepSense network given by hand, on UCI HAPT.

    python benchmarks/windows_auto.py [--data DIR] [--splits 0 1 2] [--device cuda]
        [--max-seconds 300] [--out FILE]

reads har/hapt.parquet in DIR, or in the folder of the environment variable RDEEPSENSE_DATA. Windows
and splits are those of `hapt_deepsense.py`: 21 users to train on, 3 to choose on, 6 to judge by.
"fixed" is that program's network with its defaults; "auto" is told nothing but the windows, and
chooses network, rotation, alpha and dropout. --max-seconds bounds the search, not the training that
is under way by then. Wants a GPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from adapters import data_folder
from hapt_deepsense import LENGTH, TRAIN, VALIDATION, windows

from rdeepsense import RDeepSenseClassifier, metrics
from rdeepsense._files import write_whole
from rdeepsense.networks import DeepSense

HOP = 60  # samples from one window to train on to the next
FIXED: dict[str, Any] = {
    "network": DeepSense(sensors=(3, 3), interval=12, rotation_std=0.15),
    "drop_prob": 0.1,
    "epochs": 30,
    "batch_size": 128,
}
AUTO: dict[str, Any] = {"hidden": "auto", "drop_prob": "auto", "alpha": "auto"}
METHODS = ["fixed", "auto"]
METRICS = ("accuracy", "nll", "seconds")


def measure(split: int, options: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit on the training users, choose on the validation users, judge on the others."""
    X, y, users = windows(arguments.data, HOP)
    order = np.random.default_rng(split).permutation(np.unique(users))
    train = np.isin(users, order[:TRAIN])
    held = np.isin(users, order[TRAIN : TRAIN + VALIDATION])
    common = {"device": arguments.device, "random_state": 0, "verbose": arguments.verbose}
    model = RDeepSenseClassifier(**options, **common, max_seconds=arguments.max_seconds)
    begin = time.perf_counter()
    model.fit(X[train], y[train], validation=(X[held], y[held]))
    seconds = time.perf_counter() - begin
    X, y, users = windows(arguments.data, LENGTH)
    test = np.isin(users, order[TRAIN + VALIDATION :])
    figures = metrics.evaluate(model.predict_dist(X[test]), y[test])
    chosen = model.fitted_.networks
    return {
        "split": split,
        **{name: float(value) for name, value in figures.items()},
        "seconds": seconds,
        "training_rows": int(train.sum()),
        "test_rows": int(test.sum()),
        "validation_nll": model.validation_scores_["nll"],
        "chosen": f"{chosen.architecture}, alpha {chosen.candidate.alpha}, "
        f"drop {chosen.candidate.drop_prob}",
        "selection": model.selection_,
    }


def line(method: str, split: object, row: dict[str, Any]) -> str:
    figures = f"{row['accuracy']:>10.4f}{row['nll']:>10.4f}{row['seconds']:>10.0f}"
    return f"{method:<8}{split!s:>6}{figures}   {row.get('chosen', '')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with har/hapt.parquet")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--max-seconds", type=float, help="of one search")
    parser.add_argument("--verbose", action="store_true", help="show the progress at a terminal")
    parser.add_argument("--out", help="also write the figures to this JSON file")
    arguments = parser.parse_args()
    arguments.data = arguments.data or data_folder()
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    print(f"{machine or 'CPU'}, torch {torch.__version__}", flush=True)
    print(f"{'method':<8}{'split':>6}" + "".join(f"{name:>10}" for name in METRICS))
    rows: dict[str, list[dict[str, Any]]] = {method: [] for method in arguments.methods}
    for split in arguments.splits:
        for method in arguments.methods:
            row = measure(split, FIXED if method == "fixed" else AUTO, arguments)
            rows[method].append(row)
            print(line(method, split, row), flush=True)
            if arguments.out:
                content = {"machine": machine, "arguments": vars(arguments), "methods": rows}
                write_whole(arguments.out, json.dumps(content, indent=1, default=str))
    for method, own in rows.items():
        mean = {name: float(np.mean([row[name] for row in own])) for name in METRICS}
        print(line(method, "mean", mean))


if __name__ == "__main__":
    main()
