"""DeepSense on UCI HAPT: activities of users that were never trained on, in one pass.

    python benchmarks/hapt_deepsense.py --data DIR [--splits 0 1 2 3 4] [--device cuda] [--out FILE]

reads DIR/har/hapt.parquet. Raw windows of 240 samples of accelerometer and gyroscope at 50 Hz go
in. Splits are `default_rng(s).permutation(users)`, 21 users to train on, 3 to choose the step and
the temperature on, 6 to judge by; windows to train and choose on overlap, those to judge by do not.
Training windows are turned at random (--turn, radians): 0.15 was chosen among 0, 0.15 and 0.3 by
the negative log-likelihood of the validation users.
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
from adapters import hapt_recordings
from numpy.typing import NDArray

from rdeepsense import RDeepSenseClassifier, metrics
from rdeepsense._files import write_whole
from rdeepsense.networks import DeepSense

LENGTH, TRAIN, VALIDATION = 240, 21, 3
REFUSED = 0.1
COLUMNS = ("split", "accuracy", "ece", "nll", "accuracy_of_90", "seconds")


def windows(folder: Path, hop: int) -> tuple[NDArray[Any], ...]:
    """Windows (rows, 240, 6) every `hop` samples, none over two recordings; labels; users."""
    signal, recordings, table = hapt_recordings(folder)
    starts = np.concatenate([part[: max(0, len(part) - LENGTH + 1) : hop] for part in recordings])
    found = np.stack([signal[start : start + LENGTH] for start in starts])
    return found, table["label"][starts], table["user"][starts]


def measure(split: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit on the training users, choose on the validation users, judge on the others."""
    X, y, users = windows(arguments.data, arguments.hop)
    order = np.random.default_rng(split).permutation(np.unique(users))
    train = np.isin(users, order[:TRAIN])
    held = np.isin(users, order[TRAIN : TRAIN + VALIDATION])
    model = RDeepSenseClassifier(
        network=DeepSense(
            sensors=(3, 3),
            interval=12,
            hidden=arguments.hidden,
            layers=arguments.layers,
            rotation_std=arguments.turn,
        ),
        drop_prob=arguments.drop_prob,
        epochs=arguments.epochs,
        batch_size=arguments.batch_size,
        device=arguments.device,
        random_state=0,
        verbose=False,
        effort="quick",
    )
    begin = time.perf_counter()
    model.fit(X[train], y[train], validation=(X[held], y[held]))
    seconds = time.perf_counter() - begin
    X, y, users = windows(arguments.data, LENGTH)
    test = np.isin(users, order[TRAIN + VALIDATION :])
    dist, truth = model.predict_dist(X[test]), y[test]
    right, sure = dist.mode == truth, dist.mean.max(1)
    kept = np.argsort(-sure, kind="stable")[: round((1 - REFUSED) * len(sure))]
    return {
        "split": split,
        **{name: float(value) for name, value in metrics.evaluate(dist, truth).items()},
        "accuracy_of_90": float(right[kept].mean()),
        "seconds": seconds,
        "training_rows": int(train.sum()),
        "test_rows": int(test.sum()),
        "steps": model.training_["steps"],
        "best_step": model.training_["best_step"],
        "temperature": model.fitted_.calibration.factor,
    }


def line(row: dict[str, Any]) -> str:
    cells = (f"{row[name]:>14.4f}" for name in COLUMNS[1:-1])
    return f"{row['split']!s:>6}{''.join(cells)}{row['seconds']:>10.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with har/hapt.parquet")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--hop", type=int, default=60, help="samples from window to window")
    parser.add_argument("--hidden", type=int, default=DeepSense.hidden)
    parser.add_argument("--layers", type=int, default=DeepSense.layers)
    parser.add_argument("--turn", type=float, default=0.15, help="random turn, in radians")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--drop-prob", type=float, default=0.1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", help="also write the figures to this JSON file")
    arguments = parser.parse_args()
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    print(f"{machine or 'CPU'}, torch {torch.__version__}, {arguments.epochs} epochs", flush=True)
    print(f"{COLUMNS[0]:>6}{''.join(f'{name:>14}' for name in COLUMNS[1:-1])}{COLUMNS[-1]:>10}")
    rows = []
    for split in arguments.splits:
        rows.append(measure(split, arguments))
        print(line(rows[-1]), flush=True)
        if arguments.out:
            content = {"machine": machine, "arguments": vars(arguments), "splits": rows}
            write_whole(arguments.out, json.dumps(content, indent=1, default=str))
    mean = {name: float(np.mean([row[name] for row in rows])) for name in COLUMNS[1:]}
    print(line({"split": "mean", **mean}))


if __name__ == "__main__":
    main()
