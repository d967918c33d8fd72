"""What an estimator adds to its single pass: how little it knows about a row.

The variance head is trained on residuals around a MASKED mean, so it learns the noise of the data
and the variance of the masks together. The noise alone is what is left without the masks':

    noise = max(head - masks, head / 20),     total = noise + epistemic

`masks` is found by the delta method. With epistemic "delta" it is also what is added, so that the
total is the head's own variance wherever that is the larger one. With "laplace" one number per
output stands for noise / head, its mean over rows that were not trained on: predictions then need
one pass and one matrix. Each of the two has a calibration of its own, fitted to the total.
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
from rdeepsense.data import checks
from rdeepsense.data.rows import Data
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian, StudentT, concatenate
from rdeepsense.epistemic import METHODS, Laplace, by_delta, by_laplace, by_moments, by_sampling
from rdeepsense.epistemic.classes import probit
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import Judged
from rdeepsense.fitting import store as model_io
from rdeepsense.fitting.passes import choose_device, prepared
from rdeepsense.heads import Params

Floats = NDArray[np.float64]
TOTALS = ("delta", "laplace")
CHUNK = 1_024  # rows at a time: a backward pass keeps every layer's numbers
SAMPLES = 100
LEAST_NOISE = 0.05  # of the head's variance
MOST_ROWS, MOST_VALUES = 4_096, 100_000  # for the calibrations: a backward pass per output
MOST_TRAINED = 100_000  # rows for the last layer's matrix, which stand for all of them


@dataclass(frozen=True)
class Epistemic:
    """What `fit` keeps: the last layer's matrix, noise / head, and a calibration for each total."""

    laplace: Laplace
    noise_share: Floats
    calibrations: dict[str, calibration.Calibration | None]

    @classmethod
    def fit(cls, estimator: Any, data: Data, judged: Judged) -> Epistemic:
        """One pass over the rows that the network was trained on, and the calibrations."""
        on_all_rows = estimator.training_["rows"] == len(data.rows)  # after cross-validation
        trained = data.rows if on_all_rows else data.train
        device = choose_device(estimator.device)
        network, dtype = prepared(estimator.network_, device)

        total = trained.weight.sum()
        if len(trained) > MOST_TRAINED:
            rng = np.random.default_rng(data.seed)
            trained = trained[np.sort(rng.permutation(len(trained))[:MOST_TRAINED])]
        stands_for = total / trained.weight.sum()

        def batches() -> Iterator[tuple[Tensor, Tensor]]:
            for start in range(0, len(trained), CHUNK):
                part = trained[np.arange(start, min(start + CHUNK, len(trained)))]
                x = estimator.input_scaler_.gather(data.X, part.index, dtype)
                yield x.to(device), torch.from_numpy(part.weight * stands_for).to(device)

        fitted = cls(Laplace.fit(network, batches()), np.ones(estimator._outputs()), {})
        return fitted._calibrated(estimator, judged)

    def _calibrated(self, estimator: Any, judged: Judged) -> Epistemic:
        """With the share of the noise and a calibration for each total."""
        most = max(1, min(MOST_ROWS, MOST_VALUES // estimator._outputs()))
        some = np.random.default_rng(0).permutation(len(judged.y))[:most]
        X, y, said = judged.X[some], judged.y[some], judged.dist[some]
        weight = None if judged.weight is None else judged.weight[some]
        kind, fitted, share = estimator._calibration_kind(), {}, self.noise_share
        try:
            dist, masks = self.passes(estimator, X, "delta")
        except InputError:  # it has nothing to find, and says so again when it is asked for
            methods: tuple[str, ...] = ("laplace",)
        else:
            methods = TOTALS
            if not dist.is_categorical:
                share = np.average(_noise(dist.var, masks) / dist.var, 0, weight)
        found = Epistemic(self.laplace, share, {})
        for method in methods:
            variance = masks if method == "delta" else found.passes(estimator, X, method)[1]
            total = found.total(said, estimator._variance_in_units(variance), method)
            fitted[method] = None if kind is None else calibration.fit(kind, total, y, weight)
        return Epistemic(self.laplace, share, fitted)

    def passes(
        self, estimator: Any, X: NDArray[Any], method: str
    ) -> tuple[AnyDistribution, Floats]:
        """The single pass and the epistemic variance (rows, outputs), on the network's scale."""
        checks.check_choice("method", method, METHODS)
        device = choose_device(estimator.device)
        network, dtype = prepared(estimator.network_, device)
        dists, variances = [], []
        for start in range(0, len(X), CHUNK):
            x = estimator.input_scaler_.transform(X[start : start + CHUNK], dtype).to(device)
            params: Params
            if method == "laplace":
                params, variance = by_laplace(network, x, self.laplace)
            elif method == "sample":
                params, variance = by_sampling(network, x, SAMPLES, estimator.training_["seed"])
            else:
                params, variance = (by_delta if method == "delta" else by_moments)(network, x)
            dists.append(params.numpy())
            variances.append(variance.cpu().double().numpy())
        return concatenate(dists), np.concatenate(variances)

    def total(self, dist: AnyDistribution, variance: Floats, method: str) -> AnyDistribution:
        """The distribution with its epistemic part, both in the target's units, uncalibrated."""
        if isinstance(dist, Categorical):
            return probit(dist, variance)
        assert isinstance(dist, Gaussian | StudentT)
        if method == "delta":
            noise = _noise(dist.var, variance)
        else:
            noise = dist.var * (self.noise_share if dist.var.ndim > 1 else self.noise_share[0])
        return dist.widened(np.sqrt((noise + variance) / dist.var))

    def describe(self, header: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Add it to what a model file holds."""
        header["epistemic"] = {"prior": self.laplace.prior, "calibrations": {}}
        tensors["epistemic.root"], tensors["epistemic.ratio"] = (
            self.laplace.root,
            self.laplace.ratio,
        )
        tensors["epistemic.noise_share"] = self.noise_share
        for method, fitted in self.calibrations.items():
            kind = None if fitted is None else model_io.name_of(fitted)
            header["epistemic"]["calibrations"][method] = kind
            if fitted is not None:
                tensors |= {f"epistemic.{method}.{k}": v for k, v in fitted.arrays().items()}

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Any]) -> Epistemic | None:
        """What a file holds; files of the first versions hold nothing of it."""
        if "epistemic" not in header:
            return None
        kept = header["epistemic"]
        fitted = Laplace(tensors["epistemic.root"], tensors["epistemic.ratio"], kept["prior"])
        calibrations = {
            method: None
            if kind is None
            else calibration.KINDS[kind](
                **model_io.under(f"epistemic.{method}.", tensors, scalars=True)
            )
            for method, kind in kept["calibrations"].items()
        }
        return cls(fitted, tensors["epistemic.noise_share"], calibrations)


def _noise(head: Floats, masks: Floats) -> Floats:
    """The variance head without the variance of the masks that it was trained under."""
    return np.maximum(head - masks, LEAST_NOISE * head)
