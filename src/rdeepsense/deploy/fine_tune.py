"""Quantisation-aware fine-tuning, for models whose bytes alone predict too much worse.

Float weights are trained through the rounding that the device does: forward the eight-bit network
Q, backward as if nothing had been rounded (the straight-through estimator). The aim is the network
as it was fitted, P; labels weigh little:

    KL(P || Q) + 0.1 NLL(Q, y)

The KL is the NLL that rounding costs where P is right, and a Q that cannot follow the mean of P
learns to say so in its variance. There are few rows, so the KL is also taken between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense._progress import Progress, Silent
from rdeepsense.deploy.calibrated_head import CalibratedHead
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import NetworkRunner, standardised
from rdeepsense.deploy.quality import FineTuning, quality
from rdeepsense.deploy.quantise import (
    ORDER_ROWS,
    Int8Network,
    best_units,
    integers,
    quantise,
    reach_of,
    scaled,
    together,
)
from rdeepsense.deploy.rounded import Rounded, plain
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

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
    _train(student, plain(layers), head, z, head.labels(y), progress)
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
