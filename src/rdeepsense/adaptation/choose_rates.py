"""Choosing the rates of a live model: groups that were left out, replayed as streams.

Each group is a stream of rows that its network never saw. Of all settings on the grid the one of
greatest mean log likelihood wins, each prediction made before its label, a label for every row and
for every tenth counting the same, groups counting the same. The quantile's step is the one whose
intervals then have the least interval score (Gneiting & Raftery 2007). The likelihood is that of a
Student-t with 4 degrees of freedom: one row far out must not choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import gammaln
from scipy.stats import t as student

from rdeepsense.adaptation.evidence import spread
from rdeepsense.adaptation.information import basis
from rdeepsense.adaptation.rates import Filters, Rates, experts
from rdeepsense.adaptation.streams import GroupStream
from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.progress import Progress, Silent

ROWS = (10.0, 30.0, 100.0, 300.0)
WITHIN = (0.2, 0.5, 0.8)
# Within a left-out group little changes, so that it speaks for remembering: a filter that forgets
# more slowly than the last of these would not follow a stream that changes again.
KEEP = ((0.98,), (0.99,), (0.997,))
BETWEEN = (0.0, 0.1, 1.0)
ETA = (0.02, 0.05, 0.1, 0.2)
EVERY = (1, 10)  # rows for one label
MOST_ROWS, MOST_GROUPS = 200, 8  # of a group, and of groups: one setting takes a second
DF = 4.0
FARTHEST = 1e6  # standard deviations, so that likelihoods stay numbers
_WIDTH = np.sqrt((DF - 2) / DF)  # of a Student-t whose standard deviation is 1
_PEAK = gammaln((DF + 1) / 2) - gammaln(DF / 2) - np.log(np.pi * DF) / 2


@dataclass(frozen=True)
class Told:
    """What a live model said of a stream, row by row: its errors and spreads, before each label."""

    error: Floats
    std: Floats
    logs: Floats


def choose_rates(
    streams: Sequence[GroupStream],
    coverage: float = 0.9,
    start: Rates | None = None,
    progress: Progress | None = None,
) -> Rates:
    """Return the best rates for streams like these; `start`, or the defaults, without any."""
    best = Rates() if start is None else start
    if not streams:
        return best
    streams = [streams[k] for k in spread(len(streams), MOST_GROUPS)]
    if len({stream.phi.shape[1] for stream in streams}) != 1:
        raise InputError("streams differ in their number of features")
    grid = [
        replace(best, rows=rows, within=within, between=between, keep=keep)
        for rows, within, between, keep in product(ROWS, WITHIN, BETWEEN, KEEP)
    ]
    # One coordinate after the other, twice: the whole grid would take ten times as long.
    scores: dict[Rates, float] = {}

    def score(rates: Rates) -> float:
        if rates not in scores:
            told = [replay(stream, rates, every) for stream in streams for every in EVERY]
            scores[rates] = float(np.mean([one.logs.mean() for one in told]))
        return scores[rates]

    best = replace(best, rows=30.0, within=0.5, between=0.1, keep=KEEP[-1])
    lines = {"rows": ROWS, "between": BETWEEN, "keep": KEEP, "within": WITHIN}
    with closing(progress or Silent()) as shown:
        shown.start("replaying groups that were left out", 2 * sum(map(len, lines.values())), 0)
        done = 0
        for name in [*lines, *lines]:
            line = [r for r in grid if replace(r, **{name: getattr(best, name)}) == best]
            best = max(line, key=score)
            done += len(line)
            shown.update(done, f"log likelihood {scores[best]:.3f}")
    told = [(replay(s, best, every), every) for s in streams for every in EVERY]
    costs = [np.mean([interval_score(*one, coverage, eta) for one in told]) for eta in ETA]
    return replace(best, eta=ETA[int(np.argmin(costs))])


def replay(stream: GroupStream, rates: Rates, every: int = 1, most: int = MOST_ROWS) -> Told:
    """Predict each row of a stream, then take in the label of each `every`-th one."""
    turned = basis(stream.information, stream.rows, rates.rows, rates.between)
    count = min(len(stream.phi), most)
    psi, variance = stream.phi[:count] @ turned, stream.variance[:count]
    state = Filters.start(psi.shape[1], variance.shape[1], rates)
    errors, stds = np.empty_like(variance), np.empty_like(variance)
    for row in range(count):
        outlook = state.outlook(psi[row], rates)
        shift, factor = state.matched(outlook, variance[row])
        errors[row] = stream.error[row] - shift
        stds[row] = factor * np.sqrt(variance[row])
        if row % every == 0:
            moved, stretched = experts(outlook)
            spread = stretched * np.sqrt(variance[row])
            logs = _logs(stream.error[row] - moved, spread).sum(-1)
            noise = rates.within * float(variance[row].mean())
            state = state.observed(psi[row], stream.error[row], noise, logs, rates)
    return Told(errors, stds, _logs(errors, stds).mean(1))


def interval_score(told: Told, every: int, coverage: float, eta: float) -> float:
    """Return the mean of width + 2 / alpha x what lies outside, in units of the mean spread."""
    alpha = 1 - coverage
    reach = float(student.ppf(1 - alpha / 2, DF)) * _WIDTH
    log_q = np.zeros(told.error.shape[1])
    total = np.zeros_like(log_q)
    for row, (error, std) in enumerate(zip(np.abs(told.error), told.std, strict=True)):
        half = reach * std * np.exp(log_q)
        total += 2 * half + 2 / alpha * np.maximum(error - half, 0.0)
        if row % every == 0:
            log_q += eta * ((error > half) - alpha)
    return float(np.mean(total / told.std.mean(0)) / len(told.error))


def _logs(error: Floats, std: Floats) -> Floats:
    z = np.clip(error / (std * _WIDTH), -FARTHEST, FARTHEST)
    found: Floats = _PEAK - (DF + 1) / 2 * np.log1p(z * z / DF) - np.log(std * _WIDTH)
    return found
