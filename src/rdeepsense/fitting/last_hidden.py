"""What the last layer of a network reads, and what its training rows tell about the last layer.

phi is the last hidden layer's numbers and a 1. Laplace's matrix also has the inputs, whose rows and
columns are left out of the information. Where phi has more than 128 numbers they are projected on
the 64 directions that the training rows tell most about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.adaptation.choose import leading, of_last_layer, projecting
from rdeepsense.arrays import Floats
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.passes import Forward, prepared
from rdeepsense.uncertainty import Laplace, features

CHUNK = 1_024


@dataclass(frozen=True)
class LastHidden:
    """The information of all training rows about phi, projected where there is a projection."""

    information: Floats
    projection: Floats | None

    @classmethod
    def of(cls, network: StochasticNetwork, laplace: Laplace) -> LastHidden:
        """Take the information out of the Laplace part."""
        whole = of_last_layer(laplace.root, hidden_size(network))
        axes = leading(whole)
        if axes is None:
            return cls(whole, None)
        onto = projecting(axes)
        return cls(onto.T @ whole @ onto, axes)


def hidden_size(network: StochasticNetwork) -> int:
    """Return how many numbers the last layer reads."""
    layer = network.body.get_submodule(network.output)
    assert isinstance(layer, torch.nn.Linear)
    return layer.in_features


def last_hidden(
    network: StochasticNetwork, forward: Forward, X: NDArray[Any], projection: Floats | None
) -> Floats:
    """Return phi of rows, (rows, features), the 1 last."""
    hidden = hidden_size(network)
    network, dtype = prepared(network, forward.device)
    parts = []
    with torch.no_grad(), network.drawing(forward.seed, forward.device):
        for start in range(0, len(X), CHUNK):
            x = forward.scaler.transform(X[start : start + CHUNK], dtype).to(forward.device)
            parts.append(features(network, x)[1][:, :hidden].cpu().double().numpy())
    phi = np.concatenate(parts)
    phi = phi if projection is None else phi @ projection
    return np.column_stack([phi, np.ones(len(phi))])
