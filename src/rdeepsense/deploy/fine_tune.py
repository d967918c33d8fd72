"""Fine-tuning of a quantized network, and the choice of what an export stores."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense._progress import Progress, Silent
from rdeepsense.calibration import Isotonic, Scale
from rdeepsense.deploy.folded.model import DenseLayer, Folded, Runner
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quality import FineTuning, Quality, check_change, quality
from rdeepsense.deploy.quantise import (
    BYTE,
    ORDER_ROWS,
    WEIGHT,
    FloatNetwork,
    Int8Network,
    NetworkRunner,
    best_units,
    integers,
    prepare,
    quantise,
    reach_of,
    scaled,
    standardised,
    together,
)
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.heads import Params

# --------------------------------------------------------------------------------------------------
# The int8 network in floats: rounding of the device, with a gradient
# --------------------------------------------------------------------------------------------------


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


def without_dropout(layers: list[DenseLayer]) -> nn.Sequential:
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


# --------------------------------------------------------------------------------------------------
# A fitted head with its calibration, to compare networks in fine-tuning
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Quantization-aware fine-tuning
#
# Float weights are trained through the rounding that the device does: forward the eight-bit network
# Q, backward as if nothing had been rounded (the straight-through estimator). The aim is the
# network as it was fitted, P; labels weigh little:
#
#     KL(P || Q) + 0.1 NLL(Q, y)
#
# The KL is the NLL that rounding costs where P is right, and a Q that cannot follow the mean of P
# learns to say so in its variance. There are few rows, so the KL is also taken between two of them.
# --------------------------------------------------------------------------------------------------

STEPS = 2_000
LEARNING_RATE = 1e-3  # falls to 0 as half a cosine
SETTLED = 0.75  # of the steps: from then on only biases move
LABELS = 0.1
ROWS, BETWEEN = 128, 128  # of a batch


def quantise_or_tune(
    fitted: Fitted,
    folded: Folded,
    rows: tuple[NDArray[Any], NDArray[Any]],
    most: float,
    progress: Progress | None = None,
) -> tuple[Int8Network, FineTuning | None]:
    """Round the network; fine-tune it where its NLL is then not within the bound.

    Even rows are learnt from, odd rows judge.
    """
    X, y = rows
    if len(y) < 2:
        raise InputError("fine_tune=True needs two labelled rows or more; give rows=(X, y)")
    network = quantise(folded, X[::2])
    without = quality(NetworkRunner(folded, network), fitted, X[1::2], y[1::2]).nll_change
    if without <= most:
        return network, None
    tuned = fine_tuned(fitted, folded, X[::2], y[::2], progress or Silent())
    return tuned, FineTuning(len(y[::2]), STEPS, without)


def fine_tuned(
    fitted: Fitted, folded: Folded, X: NDArray[Any], y: NDArray[Any], progress: Progress
) -> Int8Network:
    """Train the int8 network on these labelled rows."""
    ready = standardised(folded.layers)
    units = best_units(folded, X, ready)
    head = CalibratedHead(fitted)
    layers = head.unscaled(ready.dense)
    z = torch.from_numpy(scaled(X, ready)).float()
    student = Rounded(layers, units)
    _train(student, without_dropout(layers), head, z, head.labels(y), progress)
    tuned = head.rescaled(student.layers())
    reach = reach_of(folded, X, ready)
    network = integers(X, ready._replace(dense=tuned), units, reach, corrected=False)
    return together(network, X[:ORDER_ROWS])


def _train(
    student: Rounded,
    teacher: nn.Module,
    calibrated: CalibratedHead,
    z: Tensor,
    y: Tensor,
    progress: Progress,
) -> None:
    weights, biases = list(student.weights), list(student.biases)
    optimiser = torch.optim.Adam([{"params": weights}, {"params": biases}], lr=LEARNING_RATE)
    # Weights near a half jump until the end; the last part settles the biases on where they stay.
    ends = (SETTLED * STEPS, STEPS)
    falls: list[Callable[[int], float]] = [partial(_half_cosine, end) for end in ends]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, falls)
    generator = torch.Generator().manual_seed(0)
    head = calibrated.head

    def rows(count: int) -> Tensor:
        return torch.randint(len(z), (count,), generator=generator)

    progress.start("fine-tuning int8", STEPS, 0)
    try:
        for step in range(STEPS):
            labelled = rows(ROWS)
            share = torch.rand(BETWEEN, 1, generator=generator)
            between = torch.lerp(z[rows(BETWEEN)], z[rows(BETWEEN)], share)
            batch = torch.cat([z[labelled], between])
            with torch.no_grad():
                wanted = head(teacher(batch))
            raw = student(batch)
            divergence = calibrated.divergence(wanted, head(raw))
            loss = divergence + LABELS * calibrated.nll(head(raw[:ROWS]), y[labelled])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if step % 50 == 49:
                progress.update(step + 1, f"KL {float(divergence.detach()):.4f}")
    finally:
        progress.close()


def _half_cosine(end: float, step: int) -> float:
    """From 1 at the first step to 0 at the end and after it."""
    return 0.5 * (1 + math.cos(math.pi * min(step / end, 1.0)))


# --------------------------------------------------------------------------------------------------
# Choice of the network that an export stores, on labeled rows
# --------------------------------------------------------------------------------------------------


def stored_network(
    fitted: Fitted,
    folded: Folded,
    rows: LabelledRows,
    options: Options,
    progress: Progress | None,
) -> tuple[FloatNetwork | Int8Network, FineTuning | None]:
    """Round the network, with `fine_tune` so that it stays within the bound."""
    if options.fine_tune:
        both, most = (rows.X, rows.y), options.max_nll_change
        return quantise_or_tune(fitted, folded, both, most, progress)
    return prepare(folded, options.dtype, rows.calibrating(options.dtype)), None


def judge(
    runner: Runner,
    fitted: Fitted,
    rows: LabelledRows,
    options: Options,
    tuned: FineTuning | None = None,
) -> Quality | None:
    """Measure what rounding changed and refuse too much of it; None where there are no rows."""
    X, y = rows.judging(options.dtype)
    if not len(y):
        return None
    found = quality(runner, fitted, X, y)
    check_change(found, options.max_nll_change, options.dtype, options.fine_tune)
    return replace(found, rows_from=rows.origin, fine_tuned=tuned)
