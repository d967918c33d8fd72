"""A bank of small networks against the same networks one after the other, through the same loop.

    python benchmarks/bank.py [--members 20] [--batch 32 64 128] [--json FILE]

One thread, networks with one hidden layer of 50 units on 16 inputs. Both ways are timed in
alternating rounds of one run, and the ratio of each round's pair is what counts: a loaded machine
slows both.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Sequence

import torch

from rdeepsense._files import write_whole
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, stack, train

INPUTS, HIDDEN, ROWS, VALIDATION_ROWS = 16, 50, 4_096, 512


def networks(members: int) -> list[StochasticNetwork]:
    """Networks with seeds and drop probabilities of their own."""
    made = []
    for member in range(members):
        torch.manual_seed(member)
        made.append(convert(dense(INPUTS, (HIDDEN,), 1), drop_prob=0.05 + 0.01 * (member % 5)))
    return made


def seconds_for(group: Sequence[StochasticNetwork], rows: Rows, held: Rows, batch: int) -> float:
    """Seconds per step of one run of the loop over a bank of these networks."""
    schedule = Schedule(
        steps=400, batch_size=batch, learning_rate=5e-3, evaluate_every=100, patience=99, seed=0
    )
    bank = stack(group)
    alphas, decay = [0.5] * len(group), [1e-2] * len(group)
    start = time.perf_counter()
    train(bank, ScoringRule(alphas), decay, rows, held, schedule)
    return (time.perf_counter() - start) / schedule.steps


def measure(members: int, batch: int, rounds: int) -> dict[str, float]:
    """Milliseconds per step both ways, and the median ratio over the rounds."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS + VALIDATION_ROWS, INPUTS, generator=generator)
    y = x[:, :1].sin() + 0.1 * torch.randn(len(x), 1, generator=generator)
    rows, held = Rows(x[:ROWS], y[:ROWS]), Rows(x[ROWS:], y[ROWS:])
    group = networks(members)
    seconds_for(group, rows, held, batch)  # warm up
    pairs = []
    for _ in range(rounds):
        together = seconds_for(group, rows, held, batch)
        in_turn = sum(seconds_for([network], rows, held, batch) for network in group)
        pairs.append((together, in_turn))
    return {
        "members": members,
        "batch": batch,
        "bank_ms": 1e3 * statistics.median(t for t, _ in pairs),
        "in_turn_ms": 1e3 * statistics.median(t for _, t in pairs),
        "ratio": statistics.median(b / a for a, b in pairs),
        "ratio_min": min(b / a for a, b in pairs),
        "ratio_max": max(b / a for a, b in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the figures to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    machine = f"{platform.machine()}, {platform.system()}, torch {torch.__version__}, one thread"
    print(f"bank of {arguments.members} networks {INPUTS}-{HIDDEN}-2 ({machine})")
    print(f"{'batch':>6} {'bank':>12} {'in turn':>12} {'ratio':>7}  (rounds: min to max)")
    results = []
    for batch in arguments.batch:
        row = measure(arguments.members, batch, arguments.rounds)
        results.append(row)
        print(
            f"{batch:6d} {row['bank_ms']:9.3f} ms {row['in_turn_ms']:9.3f} ms "
            f"{row['ratio']:6.1f}x  ({row['ratio_min']:.1f} to {row['ratio_max']:.1f})"
        )
    if arguments.json:
        write_whole(arguments.json, json.dumps({"machine": machine, "results": results}, indent=1))


if __name__ == "__main__":
    main()
