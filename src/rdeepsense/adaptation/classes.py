"""A model's classes, corrected for one group by a few of its labels: MAP of the last layer.

With logits z(x) of the trained, calibrated model, a change D (features, classes) of the last
layer's weights and the prior N(mean, C) for each of its columns, the most probable D minimises

    L(D) = sum_n -log softmax(z_n + D^T phi_n)[y_n] + 1/2 tr((D - mean)^T C^-1 (D - mean))

which is convex. C0 = (rows * information of a training row)^-1: as if the trained weights had been
learnt from so many rows; `rows` is chosen by leaving groups out.

However absurd the labels are, k of them change a logit of row x by at most
sum_n |phi(x)^T C phi_n|: where L is least, D - mean = C sum_n phi_n (1[y_n] - p_n)^T, and no entry
of the last factor is greater than 1. The likelihood of the labelled rows never falls.

Further labels go on from N(D, C_k), C_k^-1 = C^-1 + sum_n mean_k p_nk (1 - p_nk) phi_n phi_n^T,
Laplace's approximation with one matrix for all classes, as in `epistemic.laplace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax, softmax

from rdeepsense.adaptation.evidence import spread
from rdeepsense.adaptation.streams import ClassStream
from rdeepsense.arrays import Booleans, Floats, Integers

ROWS = (10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e6)
DEFAULT_ROWS = 200.0
LABELS = (1, 3)  # of each class, that groups are adapted with when `rows` is chosen
FEWEST_GROUPS, MOST_GROUPS = 2, 50
NEAR = 1e-9  # distance from the optimum, in standard deviations of the prior: `most_probable`
STEPS, NEWTON_STEPS, SHORTEST = 1_000, 200, 2.0**-40


@dataclass(frozen=True)
class ClassPrior:
    """How many training rows the trained weights are worth; from how many groups that is known."""

    rows: float = DEFAULT_ROWS
    groups: int = 0

    @classmethod
    def choose(cls, streams: Sequence[ClassStream]) -> ClassPrior:
        """Choose by the likelihood of groups that were left out, after a few of their labels.

        A group is adapted with its first row of each class, then with its first three, and judged
        on the rows that follow. Fewer than two groups tell nothing: the default is returned.
        """
        usable = [s for s in streams if not first_of_each(s.y, max(LABELS)).all()]
        if len(usable) < FEWEST_GROUPS:
            return cls()
        some = [usable[k] for k in spread(len(usable), MOST_GROUPS)]
        likelihood = {rows: sum(_replayed(s, rows) for s in some) for rows in ROWS}
        return cls(max(ROWS, key=lambda rows: likelihood[rows]), len(usable))

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
