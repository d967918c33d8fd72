"""The prior of a correction, from what the training rows say about the last layer.

H = sum_n w_n phi_n phi_n^T over N training rows (the curvature that the Laplace approximation is
made of), weighed down to `rows` rows, is the precision of the prior:

    C0 = (H rows / N)^-1 + between on the bias,     C0 = B B^T,     psi = B^T phi

In the coordinates psi the prior is the identity, so a covariance of a filter lies between 0 and 1
in every direction, and single precision holds it. Beyond 128 features only the 64 directions with
most information are kept, and the 1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from rdeepsense.arrays import Floats, Singles
from rdeepsense.errors import InputError

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
