"""Folded models made by hand, and predictions as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.deploy.folded.model import (
    DenseLayer,
    Facts,
    Folded,
    Layers,
    MeanStd,
    Output,
    Outputs,
    Runner,
)
from rdeepsense.link import Column, Link, LocationWidth, Softmax, add, softplus, sqrt


def hand_made(
    head: str,
    centre: NDArray[Any],
    layers: Sequence[DenseLayer],
    floor: float = 1e-4,
    spread: ArrayLike = 1.0,
    shift: ArrayLike = 0.0,
) -> Folded:
    """A folded model of inputs with scale 1, gaussian, student or categorical."""
    width = add(softplus(Column(1)), floor)
    links: dict[str, Link] = {
        "gaussian": LocationWidth(Column(0), sqrt(width)),
        "student": LocationWidth(Column(0), width),
        "categorical": Softmax(),
    }
    link = links[head]
    outputs = len(layers[-1].bias) // link.columns
    classes = np.arange(outputs) if head == "categorical" else None
    numbers = (None, None)
    if classes is None:
        numbers = tuple(np.broadcast_to(v, outputs).astype(float) for v in (spread, shift))
    return Folded(
        Facts(len(centre), outputs, head, classes=classes),
        Layers(centre, np.ones(len(centre)), tuple(layers)),
        Output(link, *numbers),
    )


def with_facts(folded: Folded, **changes: Any) -> Folded:
    return replace(folded, facts=replace(folded.facts, **changes))


def with_layers(folded: Folded, *dense: DenseLayer) -> Folded:
    return replace(folded, layers=replace(folded.layers, dense=tuple(dense)))


def array(found: Outputs) -> NDArray[Any]:
    """(2, rows, outputs) with mean and std, or (rows, classes)."""
    return found.stacked() if isinstance(found, MeanStd) else found.probs


def forward(runner: Runner, X: Any) -> NDArray[Any]:
    return array(runner.run(X))


def finished(folded: Folded, raw: NDArray[Any]) -> NDArray[Any]:
    return array(folded.output.finish(raw))
