"""Choice of priors and rates by replaying the rows of groups left out of training."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln
from scipy.stats import t as student

from rdeepsense._progress import Progress, Silent
from rdeepsense.adaptation.corrections import MOST_GROUPS as PRIOR_GROUPS
from rdeepsense.adaptation.corrections import MOST_SHARE, AdaptedNumbers, GroupStream, Prior, spread
from rdeepsense.adaptation.rates import Filters, Rates, experts
from rdeepsense.arrays import Floats, Singles
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# The prior of a correction, from training rows
#
# H = sum_n w_n phi_n phi_n^T over N training rows (the curvature that the Laplace approximation is
# made of), weighed down to `rows` rows, is the precision of the prior:
#
#     C0 = (H rows / N)^-1 + between on the bias,     C0 = B B^T,     psi = B^T phi
#
# In the coordinates psi the prior is the identity, so a covariance of a filter lies between 0 and 1
# in every direction, and single precision holds it. Beyond 128 features only the 64 directions with
# most information are kept, and the 1.
# --------------------------------------------------------------------------------------------------

MOST_FEATURES, KEPT = 128, 64


def of_last_layer(root: Singles, hidden: int) -> Floats:
    """Return H over the last hidden layer's numbers and the 1, from the Laplace part's root.

    root root^T is the inverse of a matrix that has the inputs between the two: its rows and columns
    for them are left out, as if they had never been read.
    """
    whole = np.asarray(root, np.float64)  # L^-T, so that L L^T is the matrix
    kept = np.r_[:hidden, len(whole) - 1]
    lower = solve_triangular(whole, np.eye(len(whole))[:, kept]).T
    found: Floats = lower @ lower.T
    return found


def leading(information: Floats) -> Floats | None:
    """Return the directions (features - 1, 64) of most information; None where few are enough."""
    if len(information) - 1 <= MOST_FEATURES:
        return None
    vectors = np.linalg.eigh(information[:-1, :-1])[1]
    return np.ascontiguousarray(vectors[:, : -KEPT - 1 : -1])


def projecting(axes: Floats) -> Floats:
    """Return the matrix that projects phi on these directions and keeps the 1."""
    hidden, kept = axes.shape
    onto = np.zeros((hidden + 1, kept + 1))
    onto[:-1, :-1], onto[-1, -1] = axes, 1.0
    return onto


def basis(information: Floats, total: float, rows: float, between: float = 0.0) -> Floats:
    """Return B (features, directions) with B B^T = C0; psi = phi @ B."""
    if not rows > 0 or not between >= 0 or not total > 0:
        raise InputError(
            f"rows = {rows!r}, between = {between!r}, total = {total!r}; accepted: rows and total "
            "greater than 0, between at least 0"
        )
    axes = leading(information)
    onto = np.eye(len(information)) if axes is None else projecting(axes)
    covariance = np.linalg.inv(onto.T @ information @ onto * (rows / total))
    covariance = (covariance + covariance.T) / 2
    covariance[-1, -1] += between
    found: Floats = onto @ np.linalg.cholesky(covariance)
    return found


# --------------------------------------------------------------------------------------------------
# Choice of the prior for regression
#
# The shares are not taken from the prior's own variances: errors have heavier tails than a
# Gaussian, and a label helps less than it should. Groups that were left out are adapted with their
# first 1, 2 and 5 rows, and the rows after these keep a part of their squared errors,
#
#     kept_o = sum e_ok^2 / var_o / sum e_o^2 / var_o
#
# which is what their variance must keep.
# --------------------------------------------------------------------------------------------------

LABELS = (1, 2, 5)


def choose_prior(streams: Sequence[GroupStream]) -> Prior:
    """Choose a prior on groups that were left out."""
    prior = Prior.choose(streams)
    if not prior.groups:
        return prior
    return replace(prior, shares=_shares(prior, streams))


def _shares(prior: Prior, streams: Sequence[GroupStream]) -> Floats:
    """Share out 1 - kept among the directions, by b_oj^2 times how much each varies."""
    outputs, most = len(prior.directions), max(LABELS)
    before, after = np.zeros(outputs), np.zeros((len(LABELS), outputs))
    learnt, rows = np.zeros((len(LABELS), len(prior.between))), 0
    long = [stream for stream in streams if len(stream.error) > most]
    for stream in (long[k] for k in spread(len(long), PRIOR_GROUPS)):
        none = AdaptedNumbers.none(prior, stream.information / stream.rows)
        rest = stream.phi[most:]
        before += (stream.error[most:] ** 2 / stream.variance[most:]).sum(0)
        rows += len(rest)
        for k, labels in enumerate(LABELS):
            first = (part[:labels] for part in (stream.phi, stream.error, stream.variance))
            state = none.observed(*first)
            left = stream.error[most:] - state.shift(rest)
            after[k] += (left**2 / stream.variance[most:]).sum(0)
            learnt[k] += state.learnt(rest).sum(0)
    if not rows:
        return np.zeros_like(prior.directions)
    taken = np.clip(1 - after / np.maximum(before, np.finfo(float).tiny), 0.0, MOST_SHARE)
    learnt /= rows
    weight = prior.directions**2 * (prior.between + 1e-12)
    weight /= np.maximum(weight.sum(1, keepdims=True), np.finfo(float).tiny)
    expected = learnt @ weight.T  # (labels, outputs): what shares of 1 in all would take away
    factor = (taken * expected).sum(0) / np.maximum((expected**2).sum(0), np.finfo(float).tiny)
    found: Floats = weight * np.clip(factor, 0.0, MOST_SHARE)[:, None]
    return found


# --------------------------------------------------------------------------------------------------
# Choice of the rates of a live model, by replay of held-out groups
#
# Each group is a stream of rows that its network never saw. Of all settings on the grid the one of
# greatest mean log likelihood wins, each prediction made before its label, a label for every row
# and for every tenth counting the same, groups counting the same. The quantile's step is the one
# whose intervals then have the least interval score (Gneiting & Raftery 2007). The likelihood is
# that of a Student-t with 4 degrees of freedom: one row far out must not choose.
# --------------------------------------------------------------------------------------------------

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
class Outcome:
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


def replay(stream: GroupStream, rates: Rates, every: int = 1, most: int = MOST_ROWS) -> Outcome:
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
    return Outcome(errors, stds, _logs(errors, stds).mean(1))


def interval_score(told: Outcome, every: int, coverage: float, eta: float) -> float:
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
