"""A fitted head with its calibration: what fine-tuning compares networks by."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense.calibration import Isotonic, Scale
from rdeepsense.deploy.folded.layers import DenseLayer
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.heads import Params


class CalibratedHead:
    """Distributions in the network's own units, calibrated, and how to leave and enter those."""

    def __init__(self, fitted: Fitted) -> None:
        self.head = copy.deepcopy(fitted.network.head).cpu().float().requires_grad_(False)
        self.scale, self.shift = np.ones(self.head.columns), np.zeros(self.head.columns)
        self.factor = 1.0
        target = fitted.target_scaler
        if target is not None:
            self.scale[: self.head.outputs] = target.scale
            self.shift[: self.head.outputs] = target.shift
            if isinstance(fitted.calibration, Scale | Isotonic):
                self.factor = float(fitted.calibration.factor)

    def unscaled(self, dense: list[DenseLayer]) -> list[DenseLayer]:
        """Take the target's scale out of the last layer."""
        last = dense[-1]
        weight, bias = last.weight / self.scale[:, None], (last.bias - self.shift) / self.scale
        return [*dense[:-1], DenseLayer(weight, bias)]

    def rescaled(self, dense: list[DenseLayer]) -> list[DenseLayer]:
        """Put the target's scale into the last layer again."""
        last = dense[-1]
        weight, bias = last.weight * self.scale[:, None], last.bias * self.scale + self.shift
        return [*dense[:-1], DenseLayer(weight, bias)]

    def labels(self, y: NDArray[Any]) -> Tensor:
        """Scale targets as the network's own are; the numbers of classes stay."""
        if self.head.is_classifier:
            return torch.from_numpy(np.asarray(y)).long()
        y, outputs = y.reshape(len(y), -1), self.head.outputs
        return torch.from_numpy((y - self.shift[:outputs]) / self.scale[:outputs]).float()

    def divergence(self, wanted: Params, found: Params) -> Tensor:
        """Compute KL(P || Q); of heavy tails that of Gaussians with their width."""
        first, other = (next(iter(params)) for params in (wanted, found))  # locations, or logits
        if self.head.is_classifier:
            p, q = first.log_softmax(-1), other.log_softmax(-1)
            kl: Tensor = (p.exp() * (p - q)).sum(-1)
        else:
            ratio = wanted.spread() / found.spread()
            apart = (first - other) ** 2 / (self.factor**2 * found.spread())
            kl = 0.5 * (ratio - 1 - ratio.log() + apart)
        return kl.mean()

    def nll(self, found: Params, y: Tensor) -> Tensor:
        """Compute the NLL up to a constant: y counts as m + (y - m) / factor before calibration."""
        if not self.head.is_classifier:
            location = next(iter(found))
            y = location + (y - location) / self.factor
        return found.nll(y).mean()
