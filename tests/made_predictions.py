"""Predictions that are good, too wide, too narrow, useless or drifting on purpose."""

from __future__ import annotations

import numpy as np

from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.reporting.subject import Subject

KINDS = ("good", "too wide", "too narrow", "useless", "drifting")


def numbers(kind: str, rows: int = 1000, seed: int = 0, memory: float = 0.0) -> Subject:
    """y = 2 x + e, with e of `memory` from row to row; drift is a shift in the last third."""
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=(2, rows))
    for row in range(1, rows if memory else 0):
        e[row] = memory * e[row - 1] + np.sqrt(1 - memory**2) * e[row]
    mean, std = 2 * x, np.ones(rows)
    std *= {"too wide": 2.0, "too narrow": 0.4}.get(kind, 1.0)
    if kind == "useless":
        mean, std = np.zeros(rows), np.full(rows, np.sqrt(5))
    if kind == "drifting":
        e += np.where(np.arange(rows) >= 2 * rows // 3, 3.0, 0.0)
    return Subject("y", "m", Gaussian(mean, std), 2 * x + e, time=np.arange(rows))


def classes(kind: str, rows: int = 1000, seed: int = 0) -> Subject:
    """Three classes, drawn from the probabilities that a good model states."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.5, 0.5, 0.5], size=rows)
    truth = np.array([rng.choice(3, p=row) for row in probs])
    stated = probs ** {"too narrow": 3.0, "too wide": 0.4}.get(kind, 1.0)
    if kind == "useless":
        stated = np.ones_like(probs)
    if kind == "drifting":
        late = np.arange(rows) >= 2 * rows // 3
        truth[late] = rng.integers(0, 3, int(late.sum()))
    stated = stated / stated.sum(1, keepdims=True)
    labels = np.array(["run", "sit", "walk"])
    return Subject("act", "", Categorical(stated, labels), labels[truth], time=np.arange(rows))
