"""Quantisation-aware fine-tuning, for models whose bytes alone predict too much worse.

Float weights are trained through the rounding that the device does: forward the eight-bit network
Q, backward as if nothing had been rounded (the straight-through estimator). The aim is the network
as it was fitted, P; labels weigh little:

    KL(P || Q) + 0.1 NLL(Q, y)

The KL is the NLL that rounding costs where P is right, and a Q that cannot follow the mean of P
learns to say so in its variance. There are few rows, so the KL is also taken between two of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense.calibration import Isotonic, Scale
from rdeepsense.deploy.folded.model import Dense, Folded
from rdeepsense.deploy.networks import standardised
from rdeepsense.deploy.quality import quality
from rdeepsense.deploy.quantise import (
    BYTE,
    ORDER_ROWS,
    WEIGHT,
    Int8Network,
    best_units,
    integers,
    quantise,
    scaled,
    together,
)
from rdeepsense.errors import InputError
from rdeepsense.progress import Progress, Silent

STEPS = 2_000
LEARNING_RATE = 1e-3  # falls to 0 as half a cosine
SETTLED = 0.75  # of the steps: from then on only biases move
LABELS = 0.1
ROWS, BETWEEN = 128, 128  # of a batch


def check_dtype(dtype: str) -> None:
    """Refuse to fine-tune what is not rounded to bytes."""
    if dtype != "int8":
        raise InputError(f"--fine-tune is for --dtype int8; {dtype} is exported as it was trained")


def improved(
    estimator: Any,
    folded: Folded,
    rows: tuple[NDArray[Any], NDArray[Any]],
    most: float,
    progress: Progress | None = None,
) -> tuple[Int8Network, dict[str, Any]]:
    """The network as it rounds if its NLL is within the bound, else a fine-tuned one and its story.

    Even rows are learnt from, odd rows judge.
    """
    X, y = rows
    if len(y) < 2:
        raise InputError("--fine-tune needs two labelled rows or more; give --data")
    network = quantise(folded, X[::2], standardised(folded))
    without = quality(estimator, folded, network, X[1::2], y[1::2])["nll_change"]
    if without <= most:
        return network, {}
    tuned = fine_tuned(estimator, folded, X[::2], y[::2], progress or Silent())
    made = {"rows": len(y[::2]), "steps": STEPS, "nll_change_without": without}
    return tuned, {"fine_tuned": made}


def fine_tuned(
    estimator: Any, folded: Folded, X: NDArray[Any], y: NDArray[Any], progress: Progress
) -> Int8Network:
    """The int8 network of these labelled rows."""
    centre, per_scale, dense = ready = standardised(folded)
    units = best_units(folded, X, ready)
    task = Task(estimator, folded)
    layers = task.unscaled(dense)
    z = torch.from_numpy(scaled(X, ready)).float()
    student = Rounded(layers, units)
    _train(student, _plain(layers), task, z, task.labels(y), progress)
    tuned = task.rescaled(student.layers())
    network = integers(X, (centre, per_scale, tuned), units, corrected=False)
    return together(network, X[:ORDER_ROWS])


class Rounded(nn.Module):
    """The eight-bit network in floats: the same rounding, with a gradient."""

    def __init__(self, layers: list[Dense], units: list[NDArray[np.float64]]) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.from_numpy(d.weight).float() for d in layers])
        self.biases = nn.ParameterList([torch.from_numpy(d.bias).float() for d in layers])
        self.units = [torch.from_numpy(unit).float() for unit in units]

    def forward(self, z: Tensor) -> Tensor:
        """Standardised inputs to the columns of the last layer."""
        for k in range(len(self.units)):
            z = self.hidden(k, z)
        return self.last(z)

    def hidden(self, k: int, h: Tensor) -> Tensor:
        """Layer k in its units: whole multiples of a step, 255 of which are the largest."""
        active = (self._sums(k, h) / self.units[k]).relu()
        step = active.detach().amax(1, keepdim=True).clamp_min(1e-30) / BYTE
        return _round(active / step) * step

    def last(self, h: Tensor) -> Tensor:
        return self._sums(len(self.units), h)

    def _sums(self, k: int, h: Tensor) -> Tensor:
        """W h + b, h in units."""
        weight = self.weights[k] * (self.units[k - 1] if k else 1.0)
        sums: Tensor = h @ _whole(weight).T + self.biases[k]
        return sums

    def layers(self) -> list[Dense]:
        return [
            Dense(w.detach().double().numpy(), b.detach().double().numpy())
            for w, b in zip(self.weights, self.biases, strict=True)
        ]


class Task:
    """Distributions in the network's own units, calibrated, and how to leave and enter those."""

    def __init__(self, estimator: Any, folded: Folded) -> None:
        self.head = copy.deepcopy(estimator.network_.head).cpu().float().requires_grad_(False)
        self.is_classifier = folded.is_classifier
        columns = len(folded.layers[-1].bias)
        self.scale, self.shift = np.ones(columns), np.zeros(columns)
        self.factor = 1.0
        if not folded.is_classifier:
            target, calibration = estimator.fitted_.target_scaler, estimator.fitted_.calibration
            self.scale[: folded.outputs], self.shift[: folded.outputs] = target.scale, target.shift
            if isinstance(calibration, Scale | Isotonic):
                self.factor = float(calibration.factor)

    def unscaled(self, dense: list[Dense]) -> list[Dense]:
        last = dense[-1]
        weight, bias = last.weight / self.scale[:, None], (last.bias - self.shift) / self.scale
        return [*dense[:-1], Dense(weight, bias)]

    def rescaled(self, dense: list[Dense]) -> list[Dense]:
        last = dense[-1]
        weight, bias = last.weight * self.scale[:, None], last.bias * self.scale + self.shift
        return [*dense[:-1], Dense(weight, bias)]

    def labels(self, y: NDArray[Any]) -> Tensor:
        if self.is_classifier:
            return torch.from_numpy(np.asarray(y)).long()
        y, outputs = y.reshape(len(y), -1), self.head.outputs
        return torch.from_numpy((y - self.shift[:outputs]) / self.scale[:outputs]).float()

    def divergence(self, wanted: Any, found: Any) -> Tensor:
        """KL(P || Q); of heavy tails that of Gaussians with their width."""
        if self.is_classifier:
            p, q = wanted.logits.log_softmax(-1), found.logits.log_softmax(-1)
            kl: Tensor = (p.exp() * (p - q)).sum(-1)
        else:
            ratio = wanted.spread() / found.spread()
            apart = (wanted[0] - found[0]) ** 2 / (self.factor**2 * found.spread())
            kl = 0.5 * (ratio - 1 - ratio.log() + apart)
        return kl.mean()

    def nll(self, found: Any, y: Tensor) -> Tensor:
        """Up to a constant: that of y is that of m + (y - m) / factor before calibration."""
        if not self.is_classifier:
            y = found[0] + (y - found[0]) / self.factor
        loss: Tensor = found.nll(y).mean()
        return loss


def _train(
    student: Rounded, teacher: nn.Module, task: Task, z: Tensor, y: Tensor, progress: Progress
) -> None:
    weights, biases = list(student.weights), list(student.biases)
    optimiser = torch.optim.Adam([{"params": weights}, {"params": biases}], lr=LEARNING_RATE)
    # Weights near a half jump until the end; the last part settles the biases on where they stay.
    ends = (SETTLED * STEPS, STEPS)
    falls: list[Callable[[int], float]] = [partial(_half_cosine, end) for end in ends]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, falls)
    generator = torch.Generator().manual_seed(0)

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
                wanted = task.head(teacher(batch))
            raw = student(batch)
            divergence = task.divergence(wanted, task.head(raw))
            loss = divergence + LABELS * task.nll(task.head(raw[:ROWS]), y[labelled])
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


def _plain(layers: list[Dense]) -> nn.Sequential:
    """The float network."""
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
