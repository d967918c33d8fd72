"""A trained Gaussian process and its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import Categorical, Gaussian, concatenate
from rdeepsense.fitting.gp_models import GP, ExactGP, SparseGP

CHUNK = 1_024  # rows predicted at a time: with 3,000 training rows, 25 MB of covariances
LATENT_DRAWS = 64
MODELS: dict[str, type[GP]] = {"exact": ExactGP, "variational": SparseGP}


@dataclass(frozen=True)
class Process:
    """A Gaussian process; of classes the softmax of one latent function for each.

    The probabilities of classes are the mean of the softmax over fixed draws of the latent values,
    the same for every row, so that predictions repeat.
    """

    gp: GP
    method: str  # "exact" or "variational"
    classes: int | None  # None for a regression

    def predict(
        self, X: NDArray[Any], scaler: Scaler, device: torch.device, chunk: int = CHUNK
    ) -> Gaussian | Categorical:
        """Predict on the scale that the process was trained on."""
        model, parts = self.gp.to(device), []
        with torch.no_grad():
            for start in range(0, len(X), chunk):
                x = scaler.transform(X[start : start + chunk], torch.float64)
                mean, var = (t.cpu() for t in model.predict(x.to(device)))
                parts.append(self._distribution(mean, var))
        joined: Gaussian | Categorical = concatenate(parts)
        return joined

    def _distribution(self, mean: torch.Tensor, var: torch.Tensor) -> Gaussian | Categorical:
        if self.classes is None:
            return Gaussian(mean.numpy(), var.sqrt().expand_as(mean).numpy())
        half = np.random.default_rng(0).standard_normal((LATENT_DRAWS // 2, 1, self.classes))
        draws = torch.from_numpy(np.concatenate([half, -half]))  # pairs have the right mean
        return Categorical((mean + var.sqrt() * draws).softmax(-1).mean(0).numpy())
