"""The model whose forms are measured, and the row that all of them predict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.layers import Layers
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runner import MeanStd
from rdeepsense.deploy.folded_form import folded_form
from rdeepsense.deploy.prepare import prepare
from rdeepsense.deploy.save_folded import save
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.fitting.fitted import Fitted


class ProfiledModel:
    """A fitted model, one of the rows that it kept, and a folder for what is made of them."""

    def __init__(self, fitted: Fitted, folder: Path, save: Callable[[Path], None]) -> None:
        self.fitted, self.folder, self._save = fitted, folder, save
        self.folded: Folded | FoldedGraph = folded_form(fitted)
        self.rows: NDArray[Any] = np.asarray(fitted.kept_rows[0])
        axes = tuple(range(1, self.rows.ndim))
        complete = self.rows[np.isfinite(self.rows).all(axes)]
        layers = self.layers
        if len(complete):
            row = complete[len(complete) // 2]
            row = _typical(layers, complete) if isinstance(layers, Layers) else row
        else:
            row = layers.rows_at(np.zeros((1, layers.inputs)))[0]
        self.row: NDArray[np.float32] = row.astype(np.float32)

    @classmethod
    def of(cls, model: DistributionEstimator, folder: Path) -> ProfiledModel:
        """Read a fitted estimator."""
        return cls(fitted_model(model), folder, model.save)

    @property
    def layers(self) -> Layers | Graph:
        """What computes the columns of the last layer."""
        return self.folded.layers if isinstance(self.folded, Folded) else self.folded.graph

    @property
    def dense(self) -> Folded:
        """The model as plain dense layers; refused where it is none."""
        if not isinstance(self.folded, Folded):
            raise InputError("this form is for fully-connected networks")
        return self.folded

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden layers, columns of the last layer; of a graph its ends alone."""
        layers = self.layers
        return layers.widths if isinstance(layers, Layers) else (layers.inputs, layers.columns)

    def source(self, dtype: str) -> Source:
        """Return the C of the model."""
        if isinstance(self.folded, FoldedGraph):
            return GraphSource(self.folded, as_stored(self.folded, dtype))
        return Source(self.folded, prepare(self.folded, dtype, self.rows))

    def off_by(self, found: NDArray[Any]) -> float:
        """Measure how far means, or probabilities, are from those of the folded model."""
        wanted = self.folded.run(self.row[None].astype(np.float64))
        if isinstance(wanted, MeanStd):
            return float(np.max(np.abs(found - wanted.mean) / wanted.std))
        return float(np.max(np.abs(found - wanted.probs)))

    @cached_property
    def row_file(self) -> Path:
        np.save(self.folder / "row.npy", self.row[None])
        return self.folder / "row.npy"

    @cached_property
    def model_file(self) -> Path:
        self._save(self.folder / "model.safetensors")
        return self.folder / "model.safetensors"

    @cached_property
    def folded_file(self) -> Path:
        save(self.folded, self.folder / "model.folded")
        return self.folder / "model.folded"


def _typical(layers: Layers, rows: NDArray[Any]) -> NDArray[Any]:
    """Find the row with the median number of hidden units that fire: C skips the others."""
    h, fired = layers.read(rows), np.zeros(len(rows))
    for layer in layers.dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        fired += (h > 0).sum(1)
    row: NDArray[Any] = rows[np.argsort(fired, kind="stable")[len(rows) // 2]]
    return row
