"""Decisions of a stream beside those of its windows alone, on UCI HAPT: users never trained on.

    python benchmarks/stream_decisions.py --data DIR [--splits 0 1 2 3 4] [--epochs 10] [--out FILE]

reads DIR/har/hapt.parquet. Its segments, of one activity each, are laid one after the other for
each user, so that activities change within a recording. A split is
`default_rng(s).permutation(users)`: 24 users are fitted on, whose left-out folds choose the
smoothing, and 6 are played as streams. `running` is the way of the exported C that computes an
interval once, without going back to the window's begin: a factor is fitted on 3 of the 6, judged on
the other 3, whose windows are `given`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from hapt_log import RATE, TEST, raw_log

import rdeepsense as rds
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.c.streams import decided_quality, running_quality
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.deploy.options import LabelledRows

SENSORS = {"accelerometer": ["ax", "ay", "az"], "gyroscope": ["gx", "gy", "gz"]}
WINDOW, HOP = 4.8, 0.96


def cut(log: dict[str, Any], users: Any) -> rds.Windows:
    """Return the windows of some users, each a recording without gaps."""
    own = np.isin(log["user"], users)
    table = {name: values[own] for name, values in log.items()}
    heads = np.flatnonzero(np.r_[True, np.diff(table["user"]) != 0])
    counts = np.diff(np.r_[heads, len(table["user"])])
    table["t"] = (np.arange(len(table["user"])) - np.repeat(heads, counts)) / RATE
    return rds.windows(table, "t", SENSORS, WINDOW, HOP, rate=RATE, by="user", label="activity")


def measure(split: int, log: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """Fit on the users of a split, and play the others."""
    order = np.random.default_rng(split).permutation(np.unique(log["user"]))
    train, test = cut(log, order[TEST:]), cut(log, order[:TEST])
    network = rds.networks.DeepSense(
        interval=12, filters=given.filters, hidden=given.hidden, rotation_std=0.15
    )
    model = rds.RDeepSenseClassifier(
        network=network, drop_prob=0.1, epochs=given.epochs, random_state=0, verbose=False,
        effort="quick", device=given.device,
    ).fit(train, train.y, groups=train.groups["user"])  # fmt: skip
    fitted = model.fitted_
    folded = fold_graph(fitted)
    rows = LabelledRows.of(fitted, (test, test.y))
    # Given, so that nothing is fitted on these users.
    _, found = decided_quality(folded, folded.facts, rows, fitted.smoothing)
    running = running_quality(folded, as_stored(folded, "float32"), fitted, rows)
    assert found is not None
    assert running is not None
    return {
        "split": split,
        "smoothing": asdict(fitted.smoothing),
        **asdict(found),
        "running": asdict(running),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with har/hapt.parquet")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--filters", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    given = parser.parse_args()
    log, rows = raw_log(given.data), []
    for split in given.splits:
        rows.append(measure(split, log, given))
        print(json.dumps(rows[-1]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
