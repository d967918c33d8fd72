"""Weights and biases out of a torch network that is fully connected with ReLU.

An embedding of the inputs may stand before the layers.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.embedding import FASTEST, Embedding
from rdeepsense.errors import InputError
from rdeepsense.networks.periodic import PeriodicEmbedding

WeightBias = tuple[Floats, Floats]
FOLDABLE = (nn.Linear, nn.ReLU, nn.Dropout, nn.Identity)


def is_dense(body: nn.Module) -> bool:
    """Tell whether a network is a Sequential of dense layers, which `dense_layers` takes."""
    modules = without_embedding(flat(body))
    several = len(modules) == len(flat(body)) or sum(isinstance(m, nn.Linear) for m in modules) > 1
    return several and all(isinstance(module, FOLDABLE) for module in modules)


def flat(module: nn.Module) -> list[nn.Module]:
    """List the modules of nested Sequentials in the order of the pass."""
    # The exact type: a subclass may have a forward of its own.
    if type(module) is nn.Sequential:
        return [inner for part in module for inner in flat(part)]
    return [module]


def without_embedding(modules: list[nn.Module]) -> list[nn.Module]:
    """Leave out an embedding that stands before all layers."""
    return modules[1:] if modules and type(modules[0]) is PeriodicEmbedding else modules


def embedding_of(modules: list[nn.Module]) -> Embedding | None:
    """Copy the numbers of the embedding before all layers, if there is one."""
    found = modules[0]
    if type(found) is not PeriodicEmbedding:
        return None
    frequency, weight, bias = (
        value.detach().cpu().double().numpy().copy()
        for value in (found.frequency, found.weight, found.bias)
    )
    if not all(np.isfinite(values).all() for values in (weight, bias)):
        raise InputError("the embedding has weights that are not finite")
    if not np.abs(frequency).max() <= FASTEST:
        raise InputError(
            f"the embedding has frequencies of up to {np.abs(frequency).max():g} periods per "
            f"standard deviation; accepted: {FASTEST:g}"
        )
    return Embedding(frequency, weight.reshape(bias.size, -1), bias)


def dense_layers(modules: list[nn.Module]) -> list[WeightBias]:
    """Copy W and b of each layer; layers with no ReLU between them are multiplied out."""
    layers: list[WeightBias] = []
    rectified = True
    for module in modules:
        if isinstance(module, nn.Linear):
            weight, bias = weight_bias(module)
            if rectified:
                layers.append((weight, bias))
            else:
                before, offset = layers[-1]
                layers[-1] = (weight @ before, weight @ offset + bias)
            rectified = False
        elif isinstance(module, nn.ReLU):
            if not layers:
                raise InputError("the network begins with a ReLU, which cannot be folded")
            rectified = True
        elif not isinstance(module, FOLDABLE):
            raise InputError(
                f"a network with {type(module).__name__} cannot be folded; accepted: nn.Sequential "
                "of Linear, ReLU, Dropout and Identity"
            )
    for weight, bias in layers:
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise InputError("the network has weights that are not finite")
    return layers


def weight_bias(linear: nn.Linear) -> WeightBias:
    """Copy W and b in float64; b is 0 where the layer has none."""
    weight = linear.weight.detach().cpu().double().numpy().copy()
    bias: Tensor | None = linear.bias
    if bias is None:
        return weight, np.zeros(len(weight))
    return weight, bias.detach().cpu().double().numpy().copy()


def before_last(modules: list[nn.Module]) -> list[nn.Module]:
    """List what makes the numbers that the last Linear layer reads."""
    return modules[: max(k for k, module in enumerate(modules) if isinstance(module, nn.Linear))]
