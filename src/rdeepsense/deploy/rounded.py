"""The eight-bit network in floats: the rounding of the device, with a gradient."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense.deploy.folded.layers import DenseLayer
from rdeepsense.deploy.quantise import BYTE, WEIGHT


class Rounded(nn.Module):
    """DenseLayer layers whose weights and activations are rounded as `quantise` does."""

    def __init__(self, layers: list[DenseLayer], units: list[NDArray[np.float64]]) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.from_numpy(d.weight).float() for d in layers])
        self.biases = nn.ParameterList([torch.from_numpy(d.bias).float() for d in layers])
        self.units = [torch.from_numpy(unit).float() for unit in units]

    def forward(self, z: Tensor) -> Tensor:
        """Compute the columns of the last layer from standardised inputs."""
        for k in range(len(self.units)):
            z = self.hidden(k, z)
        return self.last(z)

    def hidden(self, k: int, h: Tensor) -> Tensor:
        """Compute layer k in its units: whole multiples of a step, 255 of which are the largest."""
        active = (self._sums(k, h) / self.units[k]).relu()
        step = active.detach().amax(1, keepdim=True).clamp_min(1e-30) / BYTE
        return _round(active / step) * step

    def last(self, h: Tensor) -> Tensor:
        """Compute the last layer, which is not rounded again."""
        return self._sums(len(self.units), h)

    def _sums(self, k: int, h: Tensor) -> Tensor:
        """W h + b, h in units."""
        weight = self.weights[k] * (self.units[k - 1] if k else 1.0)
        sums: Tensor = h @ _whole(weight).T + self.biases[k]
        return sums

    def layers(self) -> list[DenseLayer]:
        """Copy the weights as they are before rounding."""
        return [
            DenseLayer(w.detach().double().numpy(), b.detach().double().numpy())
            for w, b in zip(self.weights, self.biases, strict=True)
        ]


def plain(layers: list[DenseLayer]) -> nn.Sequential:
    """Build the float network of these layers."""
    modules: list[nn.Module] = []
    for layer in layers:
        outputs, inputs = layer.weight.shape
        linear = nn.utils.skip_init(nn.Linear, inputs, outputs)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(layer.weight))
            linear.bias.copy_(torch.from_numpy(layer.bias))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def _whole(weight: Tensor) -> Tensor:
    """Whole multiples of the scale of each row."""
    scale = weight.detach().abs().amax(1, keepdim=True).clamp_min(1e-30) / WEIGHT
    return _round(weight / scale) * scale


def _round(x: Tensor) -> Tensor:
    """Rounded, with the gradient of x."""
    return x + (x.round() - x).detach()
