"""Does the fast path cost accuracy? Test NLL of `train` against a plain eager loop.

Networks as RDeepSenseRegressor makes them (two layers of 64, dropout 0.05, alpha 0.5, the default
schedule), on published UCI splits. Seed k is split k, its own validation fifth, its own initial
weights and order of rows, the same for both paths; masks differ. The plain path is torch's own
AdamW, `functional.dropout` inside the converted network, and nothing fused. No calibration, so the
figure is the network's alone.

With --reference a plain path that was trained before (the --out of another run, of another machine
even) is compared with, which saves a GPU minutes of kernel-by-kernel steps.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training_cases import ALPHA, CLIP, WEIGHT_DECAY, machine
from training_report import write

from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.networks import dense
from rdeepsense.paper import uci
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, stack, train
from rdeepsense.training.schedule import EVERY, REACH

SETS = ("boston", "concrete", "energy")
HIDDEN, DROP_PROB, LEARNING_RATE, VALIDATION = (64, 64), 0.05, 5e-3, 0.2


@dataclass(frozen=True)
class Problem:
    """One split, standardised by its training rows."""

    rows: Rows
    held: Rows
    test: Rows
    log_scale: float  # of the target: what an NLL in its units has in addition
    schedule: Schedule
    network: StochasticNetwork


def problem(data: uci.DataSet, seed: int, device: str) -> Problem:
    free, test = np.flatnonzero(~data.test[seed]), np.flatnonzero(data.test[seed])
    free = np.random.default_rng(seed).permutation(free)
    held, kept = np.split(free, [round(VALIDATION * len(free))])
    x_mean, x_std = data.x[kept].mean(0), data.x[kept].std(0)
    y_mean, y_std = data.y[kept].mean(), data.y[kept].std()
    x = torch.from_numpy((data.x - x_mean) / np.where(x_std > 0, x_std, 1.0)).float()
    y = torch.from_numpy((data.y - y_mean) / y_std).float()[:, None]
    parts = [Rows(x[index].to(device), y[index].to(device)) for index in (kept, held, test)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = convert(dense(x.shape[1], HIDDEN, 1), drop_prob=DROP_PROB)
    schedule = Schedule.of(len(kept), len(held), LEARNING_RATE, seed)
    return Problem(*parts, math.log(y_std), schedule, network)


def plain(given: Problem) -> StochasticNetwork:
    """A loop as anybody would write it; the average of weights with the best NLL is kept."""
    rows, schedule, device = given.rows, given.schedule, given.rows.x.device
    network, rule = copy.deepcopy(given.network).to(device), ScoringRule(ALPHA)
    weights = [p for p in network.parameters() if p.ndim > 1]
    biases = [p for p in network.parameters() if p.ndim == 1]
    groups = [{"params": weights, "weight_decay": WEIGHT_DECAY}, {"params": biases}]
    optimiser = torch.optim.AdamW(groups, lr=schedule.learning_rate, weight_decay=0.0)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=schedule.steps)
    generator = torch.Generator(device)
    per_epoch = len(rows) // schedule.batch_size
    average = copy.deepcopy(network)
    best, kept, stale = math.inf, average, 0
    for step in range(schedule.steps):
        if step % per_epoch == 0:
            generator.manual_seed(schedule.seed * 1_000_003 + step // per_epoch)
            order = torch.randperm(len(rows), generator=generator, device=device)
        start = step % per_epoch * schedule.batch_size
        batch = order[start : start + schedule.batch_size]
        optimiser.zero_grad()
        rule(network.train()(rows.x[batch]), rows.y[batch]).backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimiser.step()
        rates.step()
        judged = (step + 1) % schedule.evaluate_every == 0 or step + 1 == schedule.steps
        if judged or (step + 1) % EVERY == 0:
            share = min(1.0, EVERY / min(REACH * schedule.steps, (step + 1) / 5))
            for mean, value in zip(average.parameters(), network.parameters(), strict=True):
                mean.data.lerp_(value.data, share)
        if judged:
            nll = mean_nll(average, given.held)
            stale = 0 if nll < best else stale + 1
            if nll < best:
                best, kept = nll, copy.deepcopy(average)
            if stale >= schedule.patience:
                break
    return kept


def fast(given: Problem, mode: str | None) -> StochasticNetwork:
    bank, rule = stack([given.network]), ScoringRule([ALPHA])
    train(bank, rule, [WEIGHT_DECAY], given.rows, given.held, given.schedule, mode=mode)
    return bank.networks()[0].to(given.rows.x.device)


def mean_nll(network: StochasticNetwork, rows: Rows) -> float:
    """Of the single deterministic pass."""
    with torch.no_grad():
        return float(network.eval()(rows.x).nll(rows.y).double().mean())


def compare(path: Path, arguments: argparse.Namespace, reference: dict[str, Any]) -> dict[str, Any]:
    """Test NLLs in the target's units, seed by seed, for the plain path and each mode."""
    data, device = uci.load(path), arguments.device
    modes = arguments.modes if device == "cuda" else ["fast"]
    nll: dict[str, list[float]] = {"plain": reference.get(data.name, [])[: arguments.seeds]}
    seconds = dict.fromkeys(["plain", *modes], 0.0)
    ways = modes if len(nll["plain"]) == arguments.seeds else ["plain", *modes]
    nll |= {way: [] for way in ways}
    for seed in range(arguments.seeds):
        given = problem(data, seed, device)
        for way in ways:
            begin = time.perf_counter()
            torch.manual_seed(seed)
            mode = way if device == "cuda" else None
            network = plain(given) if way == "plain" else fast(given, mode)
            seconds[way] += time.perf_counter() - begin
            nll[way].append(mean_nll(network, given.test) + given.log_scale)
    return {"set": data.name, "seeds": arguments.seeds, "nll": nll, "seconds": seconds}


def tell(row: dict[str, Any]) -> None:
    base = np.array(row["nll"]["plain"])
    spread = base.std(ddof=1) / math.sqrt(len(base))
    row["summary"] = {"plain": {"mean": base.mean(), "standard_error": spread}}
    for way in (way for way in row["nll"] if way != "plain"):
        off = np.array(row["nll"][way]) - base
        paired = float(off.std(ddof=1) / math.sqrt(len(off)))
        figures = {
            "difference": float(off.mean()),
            "paired_standard_error": paired,
            "within_paired": bool(abs(off.mean()) <= paired),
            "within": bool(abs(off.mean()) <= spread),
        }
        row["summary"][way] = figures
        print(
            f"{row['set']:18} {way:9} plain {base.mean():7.4f} ± {spread:.4f}, {way} minus plain "
            f"{off.mean():+.4f} ± {paired:.4f} paired; within one standard error of the NLL: "
            f"{'yes' if figures['within'] else 'NO'}, of the paired difference: "
            f"{'yes' if figures['within_paired'] else 'no'}",
            flush=True,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --quality")
    group.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    group.add_argument("--data", help="the folder of the UCI sets; default $RDEEPSENSE_DATA/uci")
    group.add_argument("--seeds", type=int, default=10)
    group.add_argument("--modes", nargs="+", default=["captured", "compiled"], help="on a GPU")
    group.add_argument("--reference", help="the --out of a run whose plain path to compare with")


def run(arguments: argparse.Namespace) -> None:
    folder = arguments.data
    if folder is None:
        if "RDEEPSENSE_DATA" not in os.environ:
            raise SystemExit("set RDEEPSENSE_DATA, or give --data, the folder of the UCI sets")
        folder = Path(os.environ["RDEEPSENSE_DATA"]) / "uci"
    torch.set_num_threads(1)
    reference = {}
    if arguments.reference:
        stored = json.loads(Path(arguments.reference).read_text())["results"]
        reference = {row["set"]: row["nll"]["plain"] for row in stored}
    found: dict[str, Any] = {"machine": machine(arguments.device), "results": []}
    print(f"{found['machine']}; test NLL over {arguments.seeds} seeds, ± standard error")
    for path in uci.find(Path(folder), list(SETS)):
        row = compare(path, arguments, reference)
        tell(row)
        found["results"].append(row)
        write(arguments.out, found)
