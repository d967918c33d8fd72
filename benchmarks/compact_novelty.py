"""What is a novelty of at most 8 kB worth beside the full one? Real gas and activity data.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/compact_novelty.py [--splits 3]

Tasks, faults, splits and the threshold (5 % of healthy validation rows) are those of `faults.py`;
no network is needed. `full` is `uncertainty.novelty` fitted on the training rows, `compact` what an
export makes of it, `of rows` the compact one of 256 validation rows alone, as an export fits it
where `fit_novelty` was never called; those rows then set no threshold. The activity data are raw
windows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from adapters import data_folder, gassen, hapt
from faults import FIRST_SPLIT, SHARES, Rows, mean_of, noisy, raw_windows, seen, show
from numpy.typing import NDArray

from rdeepsense.paper.tasks.faults import FAULTS, Sensors, damaged, inject
from rdeepsense.paper.tasks.task import Task
from rdeepsense.uncertainty.novelty import (
    Marginals,
    Novelty,
    Units,
    described,
    drawn_columns,
    fit_compact,
)

KEPT = 256


def measure(task: Task, split: int, raw: Rows | None) -> dict[str, Any]:
    """For each novelty and fault the share flagged and the AUROC; bytes of the compact one."""
    parts = task.split(task.split_by, SHARES, split)
    X = (task.X if raw is None else raw).astype(np.float32)
    train, known, healthy = X[parts.train], X[parts.validation], X[parts.test]
    axes = tuple(range(train.ndim - 1))
    shift, scale = train.mean(axes, np.float64), train.std(axes, dtype=np.float64)
    units = Units.of(shift, scale, raw is not None)

    def scaled(rows: NDArray[Any]) -> Rows:
        found: Rows = ((rows - shift) / scale).astype(np.float32)
        return found

    full = Novelty.fit(scaled(train[:: -(-len(train) // 10_000)]), scaled(known))
    columns = len(units.shift)
    compact = fit_compact(drawn_columns(full), Marginals.of_novelty(full, columns), units)
    order = np.random.default_rng(split).permutation(len(known))
    few, others = described(scaled(known[order[:KEPT]])), known[order[KEPT:]]
    of_rows = fit_compact(few, Marginals.of_rows(few), units)
    if raw is None:
        broken = dict(damaged(task.name, healthy, train, split))
    else:
        sensors = Sensors.of(train, 3)
        broken = {fault: inject(fault, healthy, sensors, split) for fault in FAULTS}
        broken["stuck, noisy"] = noisy(broken["stuck"], sensors, split)
    print(f"split {split}: {compact.bytes:,} and {of_rows.bytes:,} bytes", flush=True)
    return {
        "full": seen(lambda rows: full.surprise(scaled(rows)), known, healthy, broken),
        "compact": seen(compact.surprise, known, healthy, broken),
        "of rows": seen(of_rows.surprise, others, healthy, broken),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    splits = range(FIRST_SPLIT, FIRST_SPLIT + parser.parse_args().splits)
    folder = data_folder()
    for task, raw in ((gassen(folder), None), (hapt(folder), raw_windows(folder))):
        found = [measure(task, split, raw) for split in splits]
        show(f"{task.name} ({task.source}), mean of {len(splits)} splits", mean_of(found))


if __name__ == "__main__":
    main()
