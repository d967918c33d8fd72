"""The epistemic part of a single pass: how little the model knows about a row.

The variance head is trained on residuals around a MASKED mean, so it learns the noise of the data
and the variance of the masks together. The noise alone is what is left without the masks':

    noise = max(head - masks, head / 20),     total = noise + epistemic

`masks` is found by the delta method. With epistemic "delta" it is also what is added, so that the
total is the head's own variance wherever that is the larger one. With "laplace" one number per
output stands for noise / head, its mean over rows that were not trained on: predictions then need
one pass and one matrix. Each of the two has its own calibration, fitted to the total.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense import calibration
from rdeepsense.arrays import Floats, Integers
from rdeepsense.calibration import Calibration
from rdeepsense.data.checks import check_choice
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical, LocationScale, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.fitting.passes import Forward, prepared
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import HeldOutPredictions, LeftOut
from rdeepsense.heads import Params
from rdeepsense.uncertainty import METHODS, Laplace, by_delta, by_laplace, by_moments, by_sampling
from rdeepsense.uncertainty.laplace import probit

TOTALS = ("delta", "laplace")
CHUNK = 1_024  # rows at a time: a backward pass keeps every layer's numbers
SAMPLES = 100
LEAST_NOISE = 0.05  # of the head's variance
MOST_ROWS, MOST_VALUES = 4_096, 100_000  # for the calibrations: a backward pass per output
MOST_TRAINED = 100_000  # rows for the last layer's matrix, which stand for all of them


@dataclass(frozen=True)
class EpistemicPart:
    """The last layer's matrix, noise / head, and a calibration for each total."""

    laplace: Laplace
    noise_share: Floats
    calibrations: dict[str, Calibration | None]

    @classmethod
    def fit(
        cls,
        network: StochasticNetwork,
        forward: Forward,
        X: NDArray[Any],
        trained_on: Part,
        held_out: HeldOutPredictions,
        target: Target,
        target_scaler: Scaler | None,
        kind: str | None,
        left_out: LeftOut | None = None,
    ) -> EpistemicPart:
        """Pass once over the rows that the network was trained on, and fit the calibrations.

        `kind` is the kind of calibration, None for none. Where groups were left out, each held-out
        row is judged by the network that did not see its group, and by that network's matrix.
        """
        laplace = laplace_of(network, forward, X, trained_on)
        most = max(1, min(MOST_ROWS, MOST_VALUES // target.outputs))
        some = np.random.default_rng(0).permutation(len(held_out.y))[:most]
        judges = [(network, laplace, some)]
        if left_out is not None:
            judges = list(_judges(left_out, X, some))
            some = np.concatenate([own for _, _, own in judges])
        y, said = held_out.y[some], held_out.dist[some]
        weight = None if held_out.weight is None else held_out.weight[some]
        share = np.ones(target.outputs)

        def passes(method: str) -> tuple[AnyDistribution, Floats]:
            found = [
                cls(matrix, share, {}).passes(judge, forward, held_out.X[own], method)
                for judge, matrix, own in judges
            ]
            return concatenate([d for d, _ in found]), np.concatenate([v for _, v in found])

        variances = {}
        try:
            dist, variances["delta"] = passes("delta")
        except InputError:  # it has nothing to find, and says so again when it is asked for
            pass
        else:
            if not isinstance(dist, Categorical):
                share = np.average(_noise(dist.var, variances["delta"]) / dist.var, 0, weight)
        variances["laplace"] = passes("laplace")[1]
        found = cls(laplace, share, {})
        fitted: dict[str, Calibration | None] = {}
        for method, variance in variances.items():
            total = found.total(said, target.variance_in_units(variance, target_scaler), method)
            fitted[method] = (
                None
                if kind is None
                else calibration.fit(kind, total, y, weight, freedom=held_out.freedom)
            )
        return cls(laplace, share, fitted)

    def passes(
        self, network: StochasticNetwork, forward: Forward, X: NDArray[Any], method: str
    ) -> tuple[AnyDistribution, Floats]:
        """Return the single pass and the epistemic variance, on the network's own scale."""
        check_choice("method", method, METHODS)
        network, dtype = prepared(network, forward.device)
        dists, variances = [], []
        for start in range(0, len(X), CHUNK):
            x = forward.scaler.transform(X[start : start + CHUNK], dtype).to(forward.device)
            params: Params
            if method == "laplace":
                params, variance = by_laplace(network, x, self.laplace)
            elif method == "sample":
                params, variance = by_sampling(network, x, SAMPLES, forward.seed)
            else:
                params, variance = (by_delta if method == "delta" else by_moments)(network, x)
            dists.append(params.numpy())
            variances.append(variance.cpu().double().numpy())
        return concatenate(dists), np.concatenate(variances)

    def total(self, dist: AnyDistribution, variance: Floats, method: str) -> AnyDistribution:
        """Return the distribution with its epistemic part, both in units, uncalibrated."""
        if isinstance(dist, Categorical):
            return probit(dist, variance)
        assert isinstance(dist, LocationScale)
        if method == "delta":
            noise = _noise(dist.var, variance)
        else:
            noise = dist.var * (self.noise_share if dist.var.ndim > 1 else self.noise_share[0])
        return dist.widened(np.sqrt((noise + variance) / dist.var))

    def calibration_of(self, method: str) -> Calibration | None:
        """Return the calibration of a method's total; the ways to the masks share that of delta."""
        return self.calibrations.get(method if method in TOTALS else "delta")


def laplace_of(
    network: StochasticNetwork, forward: Forward, X: NDArray[Any], trained_on: Part
) -> Laplace:
    """Fit the last layer's matrix of any network to the rows that it was trained on."""
    network, dtype = prepared(network, forward.device)
    total, part = trained_on.weight.sum(), trained_on
    if len(part) > MOST_TRAINED:
        rng = np.random.default_rng(forward.seed)
        part = part[np.sort(rng.permutation(len(part))[:MOST_TRAINED])]
    stands_for = total / part.weight.sum()

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(part), CHUNK):
            some = part[np.arange(start, min(start + CHUNK, len(part)))]
            x = forward.scaler.gather(X, some.index, dtype)
            weight = torch.from_numpy(some.weight * stands_for)
            yield x.to(forward.device), weight.to(forward.device)

    return Laplace.fit(network, batches())


def _judges(
    left_out: LeftOut, X: NDArray[Any], some: Integers
) -> Iterator[tuple[StochasticNetwork, Laplace, Integers]]:
    """Return each network that left groups out, its matrix, and which of some rows were hidden."""
    begin = 0
    for fold in left_out.folds:
        own = some[(some >= begin) & (some < begin + len(fold.y))]
        begin += len(fold.y)
        if len(own):
            matrix = laplace_of(fold.network, left_out.forward, X, fold.trained_on)
            yield fold.network, matrix, own


def _noise(head: Floats, masks: Floats) -> Floats:
    """Return the variance head without the variance of the masks that it was trained under."""
    return np.maximum(head - masks, LEAST_NOISE * head)
