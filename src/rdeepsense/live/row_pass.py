"""The network pass of a live model: a row's distribution, and what its last layer reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.adaptation.information import basis, of_last_layer
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.epistemic.laplace import features
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import CPU, Fitted
from rdeepsense.fitting.last_hidden import hidden_size
from rdeepsense.fitting.passes import prepared


@dataclass(frozen=True)
class RowPass:
    """A network that is ready to run, and B with psi = B^T phi."""

    fitted: Fitted
    network: StochasticNetwork
    dtype: torch.dtype
    turned: Floats  # (hidden + 1, directions)

    @classmethod
    def of(cls, fitted: Fitted, rates: Rates) -> Self:
        """Prepare a fitted model; refuse one that has no single pass or no Laplace part."""
        if not fitted.takes_one_pass or fitted.epistemic is None:
            raise InputError(
                f"a {fitted.method} cannot be live: it needs one pass and a last layer whose "
                "information was kept; accepted: RDeepSenseRegressor, RDeepSenseClassifier"
            )
        network, dtype = prepared(fitted.network, CPU)
        information = of_last_layer(fitted.epistemic.laplace.root, hidden_size(network))
        turned = basis(information, fitted.training.rows, rates.rows, rates.between)
        return cls(fitted, network, dtype, turned)

    def __call__(self, X: NDArray[Any]) -> tuple[AnyDistribution, Floats]:
        """Return the calibrated distribution of checked rows, and psi (rows, directions)."""
        x = self.fitted.reader.transform(X, self.dtype)
        with torch.no_grad(), self.network.drawing(0, CPU):
            params, seen = features(self.network, x)
        numbers = seen.numpy()
        hidden = len(self.turned) - 1
        phi: Floats = np.concatenate([numbers[:, :hidden], numbers[:, -1:]], 1)
        dist: AnyDistribution = params.numpy()
        return self.fitted.finished(dist, X), phi @ self.turned

    def digest(self) -> str:
        """Return SHA-256 of the trained numbers: states belong to one model."""
        found = hashlib.sha256(self.fitted.digest().encode())
        if self.fitted.correction is not None:
            for array in self.fitted.correction.arrays().values():
                found.update(np.ascontiguousarray(array, "<f8").tobytes())
        return found.hexdigest()
