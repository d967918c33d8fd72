"""Cross-validation inside one bank: weights of 0 and 1 hide from a network what it is judged on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.candidates import FOLDS
from rdeepsense.fitting.trainer import HeldOutPredictions, Trainer
from rdeepsense.training import Rows


def fold_weights(
    rows: Rows, fold: NDArray[Any], members: int, candidates: int, folds: int = FOLDS
) -> tuple[Rows, Rows]:
    """Return rows with weights that hide from each network what it is judged on, and the reverse.

    Networks come in the order candidate, fold, member of the ensemble.
    """
    weight = torch.ones(len(rows)) if rows.weight is None else rows.weight.cpu()
    held = torch.from_numpy(fold == np.arange(folds)[:, None])
    held = held.repeat_interleave(members, 0).repeat(candidates, 1 + rows.copies)
    inside = (weight * ~held).to(rows.x)
    outside = (weight * held).to(rows.x)
    own = slice(len(fold))  # nobody is judged by copies
    return (
        replace(rows, weight=inside / inside.mean(1, keepdim=True)),
        replace(rows, x=rows.x[own], y=rows.y[own], weight=outside[:, own], copies=0),
    )


def out_of_fold(
    trainer: Trainer,
    networks: list[StochasticNetwork],
    fold: NDArray[Any],
    scaler: Scaler | None,
) -> HeldOutPredictions:
    """Predict every row by the networks that did not see it."""
    data, part, members = trainer.rows, trainer.rows.rows, trainer.spec.members
    order = [np.flatnonzero(fold == f) for f in range(FOLDS)]
    dists = [
        trainer.predict(
            networks[f * members : (f + 1) * members], data.X[part.index[order[f]]], scaler
        )
        for f in range(FOLDS)
    ]
    joined: Part = part[np.concatenate(order)]
    X, y = data.X[joined.index], data.y[joined.index]
    return HeldOutPredictions(concatenate(dists), X, y, joined.relative_weight)
