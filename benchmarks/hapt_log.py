"""UCI HAPT from its raw log, by the command line alone: users that were never trained on.

    python benchmarks/hapt_log.py --data DIR [--splits 0 1 2 3 4] [--device cuda] [--out FILE]

reads DIR/har/hapt.parquet, which has no clock, and writes it with t = sample / 50 in each segment.
A split is `default_rng(s).permutation(users)`: 24 users are given to `rdeepsense fit`, with its
defaults but --test-fraction 0, and 6 to `rdeepsense evaluate --json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RATE, TEST = 50.0, 6
WORDS = np.array(["walking", "upstairs", "downstairs", "sitting", "standing", "lying"])
SENSORS = ("accelerometer=ax,ay,az", "gyroscope=gx,gy,gz")
G, RADIANS = 9.81 / 720, 0.000305433  # of a unit of the file, in m/s^2 and rad/s
COLUMNS = ("accuracy", "ece", "nll", "accuracy_of_surest_90", "seconds")


def raw_log(folder: Path) -> dict[str, Any]:
    """Return the log with a clock, in physical units, one recording for each segment."""
    table = pq.read_table(folder / "har" / "hapt.parquet").to_pydict()
    found = {name: np.array(values) for name, values in table.items()}
    segment = found["segment"]
    heads = np.flatnonzero(np.r_[True, np.diff(segment) != 0])
    place = np.arange(len(segment)) - np.repeat(heads, np.diff(np.r_[heads, len(segment)]))
    scaled = {name: (found[name] * G).astype(np.float32) for name in ("ax", "ay", "az")}
    scaled |= {name: (found[name] * RADIANS).astype(np.float32) for name in ("gx", "gy", "gz")}
    return {
        "t": place / RATE,
        **scaled,
        "user": found["user"],
        "recording": segment,
        "activity": WORDS[found["label"]],
    }


def written(log: dict[str, Any], users: Any, path: Path) -> Path:
    """Write the log of some users."""
    own = np.isin(log["user"], users)
    pq.write_table(pa.table({name: values[own] for name, values in log.items()}), path)
    return path


def rdeepsense(*arguments: object) -> None:
    """Run the command line; it says what it does on stderr where it fails."""
    subprocess.run([sys.executable, "-m", "rdeepsense", *map(str, arguments)], check=True)


def measure(split: int, log: dict[str, Any], folder: Path, given: argparse.Namespace) -> Any:
    """Fit on the users of a split, and evaluate on the others."""
    order = np.random.default_rng(split).permutation(np.unique(log["user"]))
    train = written(log, order[TEST:], folder / f"train{split}.parquet")
    test = written(log, order[:TEST], folder / f"test{split}.parquet")
    model, figures = folder / f"model{split}.safetensors", folder / f"figures{split}.json"
    begin = time.perf_counter()
    sensors = [part for sensor in SENSORS for part in ("--sensor", sensor)]
    rdeepsense(
        "fit", train, "--target", "activity", "--time", "t", *sensors, "--window", given.window,
        "--hop", given.hop, "--groups", "user", "--by", "recording", "--test-fraction", 0,
        "--device", given.device, "-o", model, "--overwrite", *given.more,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    rdeepsense("evaluate", model, test, "--json", figures, "--overwrite")
    found = json.loads(figures.read_text())
    return {"split": split, **{n: found[n] for n in COLUMNS[:-1]}, "seconds": seconds}


def line(row: dict[str, Any]) -> str:
    return f"{row['split']!s:>6}" + "".join(f"{row[name]:>23.4f}" for name in COLUMNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with har/hapt.parquet")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--window", default="5s")
    parser.add_argument("--hop", default="1s")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    parser.add_argument("more", nargs="*", help="after --: further options of fit")
    given = parser.parse_args()
    log = raw_log(given.data)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for split in given.splits:
            rows.append(measure(split, log, Path(folder), given))
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1))
    print(f"{'split':>6}" + "".join(f"{name:>23}" for name in COLUMNS))
    mean = {name: float(np.mean([row[name] for row in rows])) for name in COLUMNS}
    print("\n".join(line(row) for row in [*rows, {"split": "mean", **mean}]))


if __name__ == "__main__":
    main()
