"""Fits of few rows: shrinkage of the last layer, chosen on out-of-fold predictions.

A network memorizes few rows, and the spread that it predicts is then that of the rows it memorized.
So a fit of few rows is cross-validated, whatever the effort, and what the last layer learned is
shrunk: with a in [0, 1] for the location (or the logits) and b in [0, 1] for the rest,

    location <- a location + (1 - a) center,      column <- b column + (1 - b) start

`center` is the mean or median of the targets (for classes the log of `class_frequencies`), `start`
what the head begins with: one constant spread. Numbers that the head itself learned, as the degrees
of freedom of a Student-t, are shrunk by b, too. At a = b = 0 the model is a constant, at a = b = 1
it is the network as trained. Both are chosen by the calibrated NLL of the out-of-fold predictions,
with a prior for 0 that fades as rows become more.

The shrunk layer is a linear layer again, so model files and exports need not know of it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense import calibration
from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.passes import Forward, prepared
from rdeepsense.fitting.trainer import Trainer
from rdeepsense.heads import Head, Scaling

LOCATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WIDTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
LOGITS = tuple(k / 10 for k in range(11))
# The prior: nats of the sum over n rows that a = 1, and b = 1, must gain; b also ONE_ROW / n.
PRICE_OF_LOCATION, PRICE_OF_LOGITS, PRICE_OF_WIDTH, ONE_ROW = 0.5, 3.0, 2.0, 60.0
# Of the degrees of freedom of a scale: a heavy-tailed likelihood learns from a row two thirds of
# what a Gaussian one does, and the step, a and b are chosen on the same rows.
SHARE, CHOICES, LEAST_FREEDOM = 2 / 3, 3.0, 3.0
MORE_ROWS = 2.0  # of all classes alike, so that none has a probability of 0


@dataclass(frozen=True)
class Shrinkage:
    """How much of the location (or the logits), and of the rest, is kept."""

    location: float
    width: float

    def to_json(self) -> dict[str, float]:
        return {"location": self.location, "width": self.width}

    def final(
        self, trainer: Trainer, network: StochasticNetwork, scaler: Scaler | None
    ) -> StochasticNetwork:
        """Shrink a network that was trained on all rows."""
        center = _center(trainer, trainer.rows.rows, scaler, network.head.scaling)
        return self.of(network, center)

    def of(self, network: StochasticNetwork, center: Floats) -> StochasticNetwork:
        """Return a shrunk copy of a network."""
        shrunk = copy.deepcopy(network)
        layer = shrunk.body.get_submodule(shrunk.output)
        assert isinstance(layer, nn.Linear)
        kept, start = self._columns(shrunk.head, center)
        with torch.no_grad():
            layer.weight.mul_(kept[:, None].to(layer.weight))
            layer.bias.copy_(kept * layer.bias.double() + (1 - kept) * start)
            self._shrink_head(shrunk.head)
        return shrunk

    def predict(self, head: Head, raw: Tensor, center: Floats) -> AnyDistribution:
        """Predict as a shrunk network, from the last layer's numbers of the trained one."""
        kept, start = self._columns(head, center)
        shrunk = copy.deepcopy(head)
        with torch.no_grad():
            self._shrink_head(shrunk)
            found: AnyDistribution = shrunk(kept * raw + (1 - kept) * start).numpy()
        return found

    def _columns(self, head: Head, center: Floats) -> tuple[Tensor, Tensor]:
        """Return how much is kept of each column of the last layer, and what it is shrunk to."""
        rest = head.columns - head.outputs
        kept = [self.location] * head.outputs + [self.width] * rest
        start = np.r_[center, np.repeat(head.start, head.outputs)]
        return torch.tensor(kept, dtype=torch.float64), torch.from_numpy(start)

    def _shrink_head(self, head: Head) -> None:
        fresh = dict(type(head)(head.outputs).named_parameters())
        for name, parameter in head.named_parameters():
            parameter.lerp_(fresh[name].to(parameter), 1 - self.width)


def shrunk_folds(
    trainer: Trainer,
    networks: Sequence[StochasticNetwork],
    fold: Integers,
    scaler: Scaler | None,
) -> tuple[Shrinkage, list[StochasticNetwork]]:
    """Choose how much to shrink; returns it and the shrunk networks, one of each fold."""
    part, scaling = trainer.rows.rows, networks[0].head.scaling
    order = [np.flatnonzero(fold == f) for f in range(len(networks))]
    centers = [_center(trainer, part[fold != f], scaler, scaling) for f in range(len(networks))]
    raw = [
        _raw(trainer, network, trainer.rows.X[part.index[own]])
        for network, own in zip(networks, order, strict=True)
    ]
    heads = [copy.deepcopy(network.head).cpu().double() for network in networks]
    joined: Part = part[np.concatenate(order)]
    y, weight = trainer.rows.y[joined.index], joined.relative_weight
    rows, free = part.independent, freedom(part)

    def loss(shrinkage: Shrinkage) -> float:
        parts = [shrinkage.predict(*own) for own in zip(heads, raw, centers, strict=True)]
        dist = trainer.target.in_units(concatenate(parts), scaler)
        of_width = PRICE_OF_WIDTH + ONE_ROW / rows
        price = shrinkage.location * PRICE_OF_LOCATION + shrinkage.width * of_width
        if dist.is_categorical:
            price = shrinkage.location * PRICE_OF_LOGITS
        return price + rows * _nll(dist, y, weight, free)

    chosen = min(_options(trainer.target.is_classes), key=loss)
    return chosen, [chosen.of(*pair) for pair in zip(networks, centers, strict=True)]


def freedom(part: Part) -> float:
    """Return the degrees of freedom of a scale that is found on held-out rows.

    Rows of one group are alike, so K groups have K - 1 of them at most.
    """
    rows = part.weight.sum() ** 2 / (part.weight**2).sum() if part.mixed else part.independent
    found = SHARE * rows - CHOICES
    if part.mixed:
        found = min(found, part.blocks - 1)
    return max(float(found), LEAST_FREEDOM)


def class_frequencies(share: Floats, rows: float) -> Floats:
    """Return frequencies of classes, moved towards equal ones as far as chance explains them.

    As James and Stein do: with K classes and chi^2 = n K sum (share - 1 / K)^2, whose mean is K - 1
    where all classes are equally frequent, 1 - (K - 1) / chi^2 of the difference is kept.
    """
    classes = len(share)
    away = share - 1 / classes
    chance = (classes - 1) / max(rows * classes * float((away**2).sum()), classes - 1)
    counts = rows * (1 / classes + (1 - chance) * away) + MORE_ROWS / classes
    found: Floats = counts / counts.sum()
    return found


def _options(is_classes: bool) -> list[Shrinkage]:
    if is_classes:
        return [Shrinkage(a, a) for a in LOGITS]
    return [Shrinkage(a, b) for a, b in product(LOCATIONS, WIDTHS)]


def _nll(dist: AnyDistribution, y: NDArray[Any], weight: Floats | None, free: float) -> float:
    """Return the NLL, for numbers after the scale of least NLL."""
    if not dist.is_categorical:
        dist = calibration.Scale.fit(dist, y, weight, freedom=free).apply(dist)
    return calibration.weighted_nll(dist, y, weight)


def _center(trainer: Trainer, part: Part, scaler: Scaler | None, scaling: Scaling | None) -> Floats:
    """Return what the location is shrunk to, on the scale that the network sees."""
    y = trainer.rows.y
    if scaler is None:
        counts = np.bincount(y[part.index], part.weight, trainer.target.outputs)
        return np.log(class_frequencies(counts / counts.sum(), part.independent))
    own = trainer.target.scaler(y, part, scaling)
    assert own is not None
    center: Floats = (own.shift - scaler.shift) / scaler.scale
    return center


def _raw(trainer: Trainer, network: StochasticNetwork, X: NDArray[Any]) -> Tensor:
    """Return the last layer's numbers."""
    forward = Forward(trainer.input_scaler, trainer.spec.device, trainer.rows.seed)
    ready, dtype = prepared(network, forward.device)
    with torch.no_grad(), ready.drawing(forward.seed, forward.device):
        found: Tensor = ready.body(forward.scaler.transform(X, dtype).to(forward.device))
    return found.cpu().double()
