"""Corrections of the last layer from labels, for numbers and for classes, and their priors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax, softmax

from rdeepsense.adaptation.last_layer import Correction
from rdeepsense.arrays import Booleans, Floats, Integers

# --------------------------------------------------------------------------------------------------
# Held-out groups as seen by networks that were trained without them
#
# A group is a person, a sensor, a batch. Replaying its rows in their order, each with the label
# that came with it, is how everything that learns after training is chosen: the network, and its
# information, are those of a training without the group, so no label is seen before its turn.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupStream:
    """The rows of one group with numbers as targets, in their order.

    `phi` (rows, features) is what the last layer reads, and a 1; `error` (rows, outputs) the
    target less the median, and `variance` the predicted one, both in units of the target's scale.
    `information` is sum_n w_n phi_n phi_n^T over the `rows` rows that were trained on.
    """

    phi: Floats
    error: Floats
    variance: Floats
    information: Floats
    rows: float


@dataclass(frozen=True)
class ClassStream:
    """The rows of one group with classes as targets, in their order.

    `phi` (rows, features) is what the last layer reads, and a 1; `logits` (rows, classes) are
    calibrated, and `y` holds the numbers of the true classes. `information` is
    sum_n w_n phi_n phi_n^T over the `rows` rows that were trained on.
    """

    phi: Floats
    logits: Floats
    y: Integers
    information: Floats
    rows: float


# --------------------------------------------------------------------------------------------------
# Likelihood of held-out groups under a prior
#
# Along one direction of the outputs, the errors c of a group's rows are together
#
#     c ~ N(0, Phi A Phi^T / rows + between 1 1^T + within diag(v)),     A = information^-1
#
# which is also the product of the densities of each row after those before it: the prequential
# likelihood, at the cost of one Cholesky factor a group.
# --------------------------------------------------------------------------------------------------

ROWS = (3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e6)  # the last one is next to no weights
MOST_GROUPS, MOST_ROWS = 200, 32  # of one group, spread over its stream
LEAST, MOST = 1e-6, 1e4  # of between and within, times their means
NEGLIGIBLE = 1e-5  # of the predicted variance: no offset at all


class Fit(NamedTuple):
    """The best variances for some `rows`, and their log likelihood."""

    between: float
    within: float
    likelihood: float


@dataclass(frozen=True)
class Offsets:
    """Errors of groups along one direction, filled up to equally many rows.

    `kernel` (groups, n, n) is Phi A Phi^T, `error` and `variance` are (groups, n), and `there`
    tells rows from filling.
    """

    kernel: Floats
    error: Floats
    variance: Floats
    there: Floats

    @classmethod
    def of(cls, streams: Sequence[GroupStream], along: Floats) -> Offsets:
        """Take rows spread over each stream."""
        longest = min(MOST_ROWS, max(len(stream.error) for stream in streams))
        shape = (len(streams), longest)
        kernel, there = np.zeros((*shape, longest)), np.zeros(shape)
        error, variance = np.zeros(shape), np.ones(shape)
        for k, stream in enumerate(streams):
            some = spread(len(stream.error), longest)
            phi, n = stream.phi[some], len(some)
            information = stream.information / stream.rows
            kernel[k, :n, :n] = phi @ np.linalg.solve(information, phi.T)
            error[k, :n] = stream.error[some] @ along
            variance[k, :n] = stream.variance[some] @ along**2
            there[k, :n] = 1
        return cls(kernel, error, variance, there)

    def likelihood(self, rows: float, between: float, within: float) -> float:
        """Return the log likelihood of all groups, without its constant."""
        both = self.there[:, :, None] * self.there[:, None, :]
        matrix = self.kernel / rows + between * both
        own = np.where(self.there > 0, within * self.variance, 1.0)
        size = matrix.shape[1]
        matrix[:, np.arange(size), np.arange(size)] += own
        lower = np.linalg.cholesky(matrix)
        left = np.linalg.solve(lower, self.error[:, :, None])[:, :, 0]
        logs = np.log(np.diagonal(lower, axis1=1, axis2=2))
        return float(-0.5 * np.sum(left**2) - logs.sum())

    def fitted(self, rows: float) -> Fit:
        """Find the variances of greatest likelihood, from their analysis of variance on."""
        count = np.maximum(self.there.sum(1), 1)
        mean = self.error.sum(1) / count
        left = (self.error - mean[:, None]) * self.there
        unit = float((self.variance * self.there).sum() / self.there.sum())
        within = float((left**2).sum() / max((count - 1).sum(), 1)) / unit
        between = float(np.mean(mean**2) - within * unit * np.mean(1 / count)) / unit
        low, high = np.log(LEAST), np.log(MOST)
        start = np.log(np.clip([between, within], 10 * LEAST, MOST / 10))

        def loss(logs: Floats) -> float:
            ratio, noise = np.exp(logs)
            found = self.likelihood(rows, float(ratio) * unit, float(noise))
            return -found / float(self.there.sum())

        best = minimize(loss, start, method="L-BFGS-B", bounds=[(low, high)] * 2)
        ratio, noise = (float(value) for value in np.exp(best.x))
        likelihood = -float(best.fun) * self.there.sum()
        return Fit(0.0 if ratio < NEGLIGIBLE else ratio * unit, noise, likelihood)


def spread(count: int, most: int) -> Integers:
    """Return numbers of rows, in order and evenly over all of them."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(int)


# --------------------------------------------------------------------------------------------------
# The prior: how far a new group may differ from the training groups
#
# A group's errors, e = y - median in units of the target's scale, lie along a few directions b_j of
# the outputs (a common offset, say). Along each of them, c_j = b_j^T e is
#
#     c_j(x) = phi(x)^T w_j + noise,     w_j ~ N(0, C0_j),     noise ~ N(0, within_j v_j(x))
#     C0_j = (rows * information of a training row)^-1 + between_j on the element of the bias
#
# with v_j = sum_o b_oj^2 var_o(x) the predicted variance. Labels take away what w_j leaves open:
# with C_j the covariance after them, the predicted variance of output o is multiplied by
#
#     1 - sum_j shares_oj (1 - phi^T C_j phi / phi^T C0_j phi)
#
# so that it is the model's own before the first label, and only shrinks. 1 - sum_j shares_oj is the
# part of the variance that no label takes away.
# --------------------------------------------------------------------------------------------------

MOST_DIRECTIONS = 8
EXPLAINED = 0.95  # of the variance between groups, by the directions that are kept
DEFAULT_ROWS, DEFAULT_BETWEEN = 200.0, 0.25
FEWEST_GROUPS = 2


@dataclass(frozen=True)
class Prior:
    """What was chosen: numbers for each of the directions, (outputs, directions), orthonormal.

    `groups` is how many groups it was chosen from; 0 for the defaults.
    """

    rows: float
    between: Floats
    within: Floats
    directions: Floats
    shares: Floats
    groups: int = 0

    @classmethod
    def default(cls, outputs: int, variance: float) -> Prior:
        """Return what is assumed where there were no groups to leave out.

        The weights are as open as 200 training rows leave them, an offset has a quarter of the
        predicted variance (`variance` is a typical one), noise is all of it: where nothing differs
        a first label then costs 0.02 nats a row, and 20 labels have moved five sixths of the way
        to an offset. The variance stays, because nothing tells how much of it a label takes away.
        More than 8 outputs have one offset in common.
        """
        few = outputs <= MOST_DIRECTIONS
        directions = np.eye(outputs) if few else np.full((outputs, 1), outputs**-0.5)
        count = directions.shape[1]
        between = np.full(count, DEFAULT_BETWEEN * variance * (1 if few else outputs))
        shares = np.zeros((outputs, count))
        return cls(DEFAULT_ROWS, between, np.ones(count), directions, shares)

    @classmethod
    def choose(cls, streams: Sequence[GroupStream]) -> Prior:
        """Choose by the likelihood of groups that were left out, each row after those before it.

        The directions are those in which the groups' mean errors differ, after Henderson's
        (analysis of variance) estimate of their covariance; `between` and `within` are those of
        greatest likelihood, for each of a few values of `rows`. Fewer than two groups tell
        nothing: the defaults are returned. `replay.chosen` finds the shares after this.
        """
        outputs = streams[0].error.shape[1] if streams else 1
        usable = [stream for stream in streams if len(stream.error) > 1]
        if len(usable) < FEWEST_GROUPS:
            return cls.default(outputs, _typical(streams))
        directions = _directions(usable)
        usable = [usable[k] for k in spread(len(usable), MOST_GROUPS)]
        offsets = [Offsets.of(usable, along) for along in directions.T]
        found = {rows: [one.fitted(rows) for one in offsets] for rows in ROWS}
        rows = max(ROWS, key=lambda rows: sum(fit.likelihood for fit in found[rows]))
        between = np.array([fit.between for fit in found[rows]])
        within = np.array([fit.within for fit in found[rows]])
        return cls(rows, between, within, directions, np.zeros_like(directions), len(streams))

    def covariances(self, information: Floats) -> Floats:
        """Return C0 of each direction, for the information of one training row on average."""
        plain = np.linalg.inv(self.rows * information)
        found = np.repeat(((plain + plain.T) / 2)[None], len(self.between), 0)
        found[:, -1, -1] += self.between
        return found

    def along(self, error: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return c (rows, directions), and the variance of its noise, within v."""
        return error @ self.directions, (variance @ self.directions**2) * self.within


def _typical(streams: Sequence[GroupStream]) -> float:
    """Return the mean predicted variance; that of the target's scale without rows."""
    return float(np.mean([stream.variance.mean() for stream in streams])) if streams else 1.0


def _directions(streams: Sequence[GroupStream]) -> Floats:
    """Return the leading eigenvectors of B = mean_g m_g m_g^T - mean_g W / n_g."""
    outputs = streams[0].error.shape[1]
    if outputs == 1:
        return np.ones((1, 1))
    means = np.stack([stream.error.mean(0) for stream in streams])
    left = [stream.error - mean for stream, mean in zip(streams, means, strict=True)]
    rows = np.array([len(stream.error) for stream in streams])
    within = sum(one.T @ one for one in left) / (rows - 1).sum()
    between = means.T @ means / len(means) - within * np.mean(1 / rows)
    values, vectors = np.linalg.eigh(between)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    wanted = np.searchsorted(np.cumsum(values), EXPLAINED * values.sum()) + 1
    kept = vectors[:, : min(int(wanted), MOST_DIRECTIONS, outputs)]
    signs = np.where(kept.sum(0) < 0, -1.0, 1.0)
    found: Floats = kept * signs
    return found


# --------------------------------------------------------------------------------------------------
# Correction of a regression for one group, in closed form
#
# Along each direction of the prior the weights are those of `last_layer.Correction`. However absurd
# the labels are, k of them shift a row by at most
#
#     |b_j^T shift(x)| <= FARTHEST sqrt(k phi^T (C0_j - C_j) phi)
#
# along a direction: each label shifts by at most FARTHEST times the root of what it takes off
# phi^T C phi, and k roots of numbers are at most sqrt(k) times the root of their sum. What was open
# at first, phi^T C0_j phi, is chosen from groups that were left out. The variance never grows, and
# keeps 5 % at least.
# --------------------------------------------------------------------------------------------------

MOST_SHARE = 0.95  # of a variance, which labels may take away


@dataclass(frozen=True)
class AdaptedNumbers:
    """Weights (features, directions), and covariances (directions, features, features).

    `start` holds the covariances before the first label.
    """

    prior: Prior
    weights: Floats
    covariance: Floats
    start: Floats

    @classmethod
    def none(cls, prior: Prior, information: Floats) -> AdaptedNumbers:
        """Return the state before any label, for the information of one training row."""
        start = prior.covariances(information)
        return cls(prior, np.zeros((start.shape[1], len(start))), start, start)

    def observed(self, phi: Floats, error: Floats, variance: Floats) -> AdaptedNumbers:
        """Take in labels: rows (rows, features), and their errors and variances (rows, outputs)."""
        along, noise = self.prior.along(error, variance)
        weights, covariance = self.weights.copy(), self.covariance.copy()
        for j in range(len(covariance)):
            state = Correction(weights[:, j : j + 1], covariance[j])
            for row, value, own in zip(phi, along[:, j], noise[:, j], strict=True):
                state = state.observed(row, np.array([value]), float(own))
            weights[:, j], covariance[j] = state.weights[:, 0], state.covariance
        return replace(self, weights=weights, covariance=covariance)

    def shift(self, phi: Floats) -> Floats:
        """Return what is added to the median of rows, (rows, outputs), in units of the scale."""
        found: Floats = phi @ self.weights @ self.prior.directions.T
        return found

    def learnt(self, phi: Floats) -> Floats:
        """Return 1 - phi^T C phi / phi^T C0 phi of rows, (rows, directions)."""
        before, after = (
            np.stack([((phi @ one) * phi).sum(1) for one in matrices], 1)
            for matrices in (self.start, self.covariance)
        )
        found: Floats = 1 - np.clip(after / np.maximum(before, np.finfo(float).tiny), 0.0, 1.0)
        return found

    def kept(self, phi: Floats) -> Floats:
        """Return what the variance of rows is multiplied by, (rows, outputs)."""
        taken = self.learnt(phi) @ self.prior.shares.T
        found: Floats = 1 - np.minimum(taken, MOST_SHARE)
        return found


# --------------------------------------------------------------------------------------------------
# Correction of a classification for one group: MAP of the last layer
#
# With logits z(x) of the trained, calibrated model, a change D (features, classes) of the last
# layer's weights and the prior N(mean, C) for each of its columns, the most probable D minimises
#
#     L(D) = sum_n -log softmax(z_n + D^T phi_n)[y_n] + 1/2 tr((D - mean)^T C^-1 (D - mean))
#
# which is convex. C0 = (rows * information of a training row)^-1: as if the trained weights had
# been learnt from so many rows; `rows` is chosen by leaving groups out.
#
# However absurd the labels are, k of them change a logit of row x by at most sum_n |phi(x)^T C
# phi_n|: where L is least, D - mean = C sum_n phi_n (1[y_n] - p_n)^T, and no entry of the last
# factor is greater than 1. The likelihood of the labelled rows never falls.
#
# Further labels go on from N(D, C_k), C_k^-1 = C^-1 + sum_n mean_k p_nk (1 - p_nk) phi_n phi_n^T,
# Laplace's approximation with one matrix for all classes, as in `uncertainty.laplace`.
# --------------------------------------------------------------------------------------------------

CLASS_ROWS = (10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e6)
CLASS_DEFAULT_ROWS = 200.0
LABELS = (1, 3)  # of each class, that groups are adapted with when `rows` is chosen
CLASS_FEWEST_GROUPS, CLASS_MOST_GROUPS = 2, 50
NEAR = 1e-9  # distance from the optimum, in standard deviations of the prior: `most_probable`
STEPS, NEWTON_STEPS, SHORTEST = 1_000, 200, 2.0**-40


@dataclass(frozen=True)
class ClassPrior:
    """How many training rows the trained weights are worth; from how many groups that is known."""

    rows: float = CLASS_DEFAULT_ROWS
    groups: int = 0

    @classmethod
    def choose(cls, streams: Sequence[ClassStream]) -> ClassPrior:
        """Choose by the likelihood of groups that were left out, after a few of their labels.

        A group is adapted with its first row of each class, then with its first three, and judged
        on the rows that follow. Fewer than two groups tell nothing: the default is returned.
        """
        usable = [s for s in streams if not first_of_each(s.y, max(LABELS)).all()]
        if len(usable) < CLASS_FEWEST_GROUPS:
            return cls()
        some = [usable[k] for k in spread(len(usable), CLASS_MOST_GROUPS)]
        likelihood = {rows: sum(_replayed(s, rows) for s in some) for rows in CLASS_ROWS}
        return cls(max(CLASS_ROWS, key=lambda rows: likelihood[rows]), len(usable))

    def covariance(self, information: Floats) -> Floats:
        """Return C0, for the information of one training row on average."""
        plain = np.linalg.inv(self.rows * information)
        found: Floats = (plain + plain.T) / 2
        return found


@dataclass(frozen=True)
class AdaptedClasses:
    """The change of the last layer's weights (features, classes), and its covariance."""

    prior: ClassPrior
    weights: Floats
    covariance: Floats

    @classmethod
    def none(cls, prior: ClassPrior, information: Floats, classes: int) -> AdaptedClasses:
        """Return the state before any label, for the information of one training row."""
        start = prior.covariance(information)
        return cls(prior, np.zeros((len(start), classes)), start)

    def observed(self, phi: Floats, logits: Floats, y: Integers) -> AdaptedClasses:
        """Take in labels: rows (rows, features), their first logits and numbers of classes."""
        weights = most_probable(phi, logits, y, self.weights, self.covariance)
        probs = softmax(logits + phi @ weights, axis=1)
        # Woodbury's formula: few rows, and no inverse of a large matrix.
        own = np.sqrt((probs * (1 - probs)).mean(1))[:, None] * phi
        along = self.covariance @ own.T
        inner = np.eye(len(own)) + own @ along
        covariance = self.covariance - along @ np.linalg.solve(inner, along.T)
        return replace(self, weights=weights, covariance=(covariance + covariance.T) / 2)

    def shift(self, phi: Floats) -> Floats:
        """Return what is added to the logits of rows, (rows, classes)."""
        found: Floats = phi @ self.weights
        return found


def most_probable(
    phi: Floats, logits: Floats, y: Integers, mean: Floats, covariance: Floats
) -> Floats:
    """Return the D of least L(D), to within `tolerance(Phi, logits, C)`.

    D - mean = C Phi^T A for some A (rows, classes); with C = R R^T and the rows of Phi R = U Q^T,
    Q orthonormal, D - mean = R Q V^T, and L's second part is |V|^2 / 2: few numbers, however
    wide the layer is.

    L-BFGS stops where L no longer falls in float64, which gives about half of the digits of V.
    Newton's method starts there and stops at a gradient no longer than the tolerance. L is
    strongly convex in V with constant 1, so V then lies within the tolerance of the optimum, and
    a logit x^T D within the tolerance times sqrt(x^T C x), its standard deviation under the prior.
    Newton's method may fail under a prior that lets logits move by thousands. Then L-BFGS's
    result is returned, whose L is no greater than that of the mean.
    """
    root = np.linalg.cholesky(covariance)
    q, upper = np.linalg.qr((phi @ root).T)
    rows, before = upper.T, logits + phi @ mean  # (rows, rank)
    truth = np.eye(logits.shape[1])[y]
    shape = (q.shape[1], logits.shape[1])

    def loss(flat: Floats) -> tuple[float, Floats]:
        change = flat.reshape(shape)
        logs = log_softmax(before + rows @ change, axis=1)
        gradient = rows.T @ (np.exp(logs) - truth) + change
        return float(-(logs * truth).sum() + 0.5 * (flat @ flat)), gradient.ravel()

    def newton_step(flat: Floats, gradient: Floats) -> Floats:
        probs = softmax(before + rows @ flat.reshape(shape), axis=1)

        def curved(direction: Floats) -> Floats:
            along = probs * (rows @ direction.reshape(shape))
            along -= probs * along.sum(1, keepdims=True)
            product: Floats = (rows.T @ along).ravel() + direction.ravel()
            return product

        hessian = LinearOperator((flat.size, flat.size), matvec=curved, dtype=float)
        step: Floats = cg(hessian, -gradient, rtol=min(0.1, float(np.linalg.norm(gradient))))[0]
        return step

    options = {"maxiter": STEPS, "ftol": 0.0, "gtol": NEAR}
    start = np.zeros(q.shape[1] * logits.shape[1])
    rough: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    best = _root(lambda flat: loss(flat)[1], newton_step, rough, tolerance(phi, before, covariance))
    found: Floats = mean + root @ (q @ (rough if best is None else best).reshape(shape))
    return found


def tolerance(phi: Floats, logits: Floats, covariance: Floats) -> float:
    """Return how near `most_probable` comes: NEAR, or what rounding to float64 leaves of it.

    The gradient is a sum over rows of the features, scaled by the prior, times the differences of
    probabilities and labels. A logit of size z gives a probability an error of z times epsilon.
    """
    size = np.sqrt(np.einsum("nf,fg,ng->n", phi, covariance, phi)).sum()
    return max(NEAR, float(np.finfo(float).eps * size * (10 + np.abs(logits).max(initial=0))))


def _root(
    gradient: Callable[[Floats], Floats],
    newton_step: Callable[[Floats, Floats], Floats],
    start: Floats,
    goal: float,
) -> Floats | None:
    """Return where the gradient is no longer than `goal`; None where the steps do not get there.

    A step is halved until the gradient becomes shorter: Newton's direction shortens it, and unlike
    the loss it is exact near the optimum.
    """
    here, slope = start, gradient(start)
    for _ in range(NEWTON_STEPS):
        length = float(np.linalg.norm(slope))
        if length <= goal:
            return here
        step, part = newton_step(here, slope), 1.0
        while not np.linalg.norm(left := gradient(here + part * step)) < (1 - 1e-4 * part) * length:
            part /= 2
            if part < SHORTEST:
                return None
        here, slope = here + part * step, left
    return None


def first_of_each(y: Integers, count: int) -> Booleans:
    """Tell which rows are among the first `count` of their class."""
    found = np.zeros(len(y), bool)
    for label in np.unique(y):
        found[np.flatnonzero(y == label)[:count]] = True
    return found


def _replayed(stream: ClassStream, rows: float) -> float:
    """Return the mean log likelihood of the later rows, summed over numbers of labels."""
    prior, rest = ClassPrior(rows), ~first_of_each(stream.y, max(LABELS))
    none = AdaptedClasses.none(prior, stream.information / stream.rows, stream.logits.shape[1])
    total = 0.0
    for count in LABELS:
        some = first_of_each(stream.y, count)
        state = none.observed(stream.phi[some], stream.logits[some], stream.y[some])
        logs = log_softmax(stream.logits[rest] + state.shift(stream.phi[rest]), axis=1)
        total += float(logs[np.arange(len(logs)), stream.y[rest]].mean())
    return total
