"""Training on a CPU against Lightning with a DataLoader, and scikit-learn beside them.

    python benchmarks/training.py [--threads 1 2] [--quick] [--out FILE] [--plot FILE]
    RDEEPSENSE_DATA=... python benchmarks/training.py --quality [--device cuda] [--out FILE]

Samples a second, in interleaved rounds of one run: of each way the best round counts, and the
ratios of the single rounds are given beside it. Ours is the whole loop of `fit` (shuffling, gather,
step, and validation four times on 1 row for 32), Lightning only the time between an epoch's start
and its end, without validation. scikit-learn's network is a point estimate. The arithmetic is that
of the matrix products, its peak one large square product in the same rounds. Rows are simulated.

--quality asks whether speed costs accuracy, see `training_quality.py`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import torch
import training_quality
from training_cases import (
    TASKS,
    WEIGHT_DECAY,
    Case,
    Stamps,
    flops,
    machine,
    matmul_peak,
)
from training_peers import lightning_seconds, sklearn_seconds
from training_report import plot, verdict, write

from rdeepsense.training import Rows, stack, train

ROWS, EVALUATIONS = 32_768, 4
VALIDATED = 32  # one validation row for so many training rows
SMALL = (50,)
# A case, the epochs of one round, and the aims: ratio to Lightning, share of the matmul peak.
CASES: list[tuple[Case, int, float, float | None]] = [
    (Case("500-500-500, batch 1,024", 16, 1, ROWS, 1_024), 1, 1.4, 0.55),
    (Case("500-500-500, batch 128", 16, 1, ROWS, 128), 1, 1.8, None),
    (Case("one 50, batch 128", 16, 1, ROWS, 128, SMALL), 3, 4.0, None),
    (Case("20 times 50, batch 32", 16, 1, ROWS, 32, SMALL, alphas=(0.5,) * 20), 1, 15.0, None),
]


def our_seconds(case: Case, rows: Rows, held: Rows, epochs: int) -> float:
    """From the first step to the last evaluation of `train`."""
    bank = stack([case.network(member) for member in range(case.members)])
    stamps, steps = Stamps("cpu"), epochs * case.steps_per_epoch
    schedule = case.schedule(epochs, evaluate_every=-(-steps // EVALUATIONS))
    decay = [WEIGHT_DECAY] * case.members
    train(bank, case.rule(), decay, rows, held, schedule, progress=stamps)
    return stamps.times[-1] - stamps.times[0]


def measure(case: Case, epochs: int, threads: int, rounds: int, peers: int = 2) -> dict[str, Any]:
    """Samples a second of each way, its best round; a bank counts each network's samples."""
    rows, held = case.draw(case.rows), case.draw(case.rows // VALIDATED, seed=1)
    samples = epochs * case.rows
    ways = {
        "ours": lambda: case.members * samples / our_seconds(case, rows, held, epochs),
        "Lightning": lambda: samples / lightning_seconds(case, rows, epochs),
        "scikit-learn": lambda: samples / sklearn_seconds(case, rows, epochs, threads),
    }
    ways = dict(list(ways.items())[: 1 + peers])
    taken: dict[str, list[float]] = {way: [] for way in ways}
    peaks = []
    for number in range(rounds + 1):
        peaks.append(matmul_peak("cpu"))
        for way, speed in ways.items():
            value = speed()
            if number:  # the first round warms up
                taken[way].append(value)
    best = {way: max(values) for way, values in taken.items()}
    ratios = [a / b for a, b in zip(taken["ours"], taken["Lightning"], strict=True)]
    return {
        "case": case.name,
        "threads": threads,
        "members": case.members,
        "samples_per_second": best,
        "rounds": taken,
        "ratio": best["ours"] / best["Lightning"],
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "matmul_peak": max(peaks),
        "share_of_peak": best["ours"] * flops(case) / max(peaks),
    }


def tell(row: dict[str, Any], note: str) -> None:
    speeds = row["samples_per_second"]
    point = f"{speeds['scikit-learn']:11,.0f}" if "scikit-learn" in speeds else f"{'-':>11}"
    print(
        f"{row['case']:26} {speeds['ours']:11,.0f} {speeds['Lightning']:11,.0f} {point} "
        f"{row['ratio']:6.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f}) "
        f"{row['share_of_peak']:5.0%}  {note}",
        flush=True,
    )


def run(threads: int, rounds: int, scale: float, found: dict[str, Any]) -> None:
    """The four networks on 16 inputs."""
    for case, epochs, aim, aim_share in CASES:
        row = measure(case.scaled(scale), epochs, threads, rounds)
        single = threads == 1  # what is aimed at is aimed at on one thread
        row |= {"aim": aim if single else None, "aim_share": aim_share if single else None}
        tell(row, verdict(row["ratio"], "at least", row["aim"]))
        if row["aim_share"]:
            words = verdict(row["share_of_peak"], "at least", row["aim_share"])
            print(f"{'':26} share of {row['matmul_peak'] / 1e9:.0f} GFLOP/s: {words}")
        label = f"{row['case']}, {threads} thread{'s' * (threads > 1)}"
        found["bars"].append({"label": label, "value": row["ratio"], "aim": row["aim"]})
        found["results"].append(row)


def run_tasks(threads: int, rounds: int, scale: float, found: dict[str, Any]) -> None:
    """The paper's network on the shapes of its tasks; the epochs are computed, not run."""
    print("\nthe paper's network at batch 1,024; seconds per epoch computed from samples a second")
    for task in TASKS:
        part = replace(task, rows=ROWS // 2)
        row = measure(part.scaled(scale), 1, threads, rounds, peers=1)
        epoch = {way: task.rows / speed for way, speed in row["samples_per_second"].items()}
        row["seconds_per_epoch_computed"] = epoch
        row["rows_of_the_task"] = task.rows
        ours, other = epoch["ours"], epoch["Lightning"]
        tell(row, f"{task.rows:,} rows: {ours:,.1f} s an epoch, Lightning {other:,.1f}")
        label = f"{task.name}, {threads} thread{'s' * (threads > 1)}"
        found["bars"].append({"label": label, "value": row["ratio"], "aim": None})
        found["results"].append(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows-scale", type=float, default=1.0, help="fewer rows, to try it out")
    parser.add_argument("--quick", action="store_true", help="leave out the paper's tasks")
    parser.add_argument("--out", help="also write the figures to this JSON file")
    parser.add_argument("--plot", help="also draw them, as this name with .png and .svg")
    parser.add_argument("--quality", action="store_true", help="accuracy instead of speed")
    training_quality.add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.quality:
        training_quality.run(arguments)
        return
    found: dict[str, Any] = {
        "title": "Training on a CPU, samples a second",
        "peer": "Lightning with a DataLoader",
        "machine": machine("cpu"),
        "bars": [],
        "results": [],
    }
    print(found["machine"])
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        print(f"\n{threads} thread{'s' * (threads > 1)}, samples a second")
        print(f"{'case':26} {'ours':>11} {'Lightning':>11} {'sklearn':>11} {'ratio':>6} "
              "(rounds)       peak")  # fmt: skip
        run(threads, arguments.rounds, arguments.rows_scale, found)
        if not arguments.quick:
            run_tasks(threads, min(3, arguments.rounds), arguments.rows_scale, found)
        write(arguments.out, found)
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
