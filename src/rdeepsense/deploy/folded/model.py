"""A trained network as plain dense layers and a few numbers, run with numpy alone.

    h_0 = x - centre (0 where x is missing),   h_i = max(0, W_i h_{i-1} + b_i),   raw = W h + b

Raw sensor units go in. Scaling of inputs and targets, calibration scale and temperature are inside
the layers and the numbers below, so that real units come out:

    gaussian:     std = spread sqrt(softplus(raw_v) + floor),   mean = raw_m + shift std
    student:      std = spread (softplus(raw_s) + floor),       mean = raw_m + shift std
    categorical:  probabilities = softmax(raw)
    point:        mean = raw, std = 0 (not in files: what a cost is compared with)

`shift` is 0 but for an isotonic calibration, whose distribution is not symmetric. The centre is
taken off the input, not put into b_1, because x and centre may be far larger than their difference.
With a `doubt` the std and the probabilities also hold what the model does not know of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.laplace import Doubt, size
from rdeepsense.errors import InputError

Floats = NDArray[np.float64]
Texts = tuple[str, ...]
HEADS = ("gaussian", "student", "categorical")


@dataclass(frozen=True)
class Dense:
    """W (outputs, inputs) and b (outputs,)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Intervals:
    """The central interval of each coverage: from mean + low std to mean + high std.

    `low` and `high` are (coverages, outputs). `conformal`, where fitted, is the reach of
    mean +- conformal std; infinite where too few rows were set aside.
    """

    coverages: Floats
    low: Floats
    high: Floats
    conformal: Floats | None = None


@dataclass(frozen=True)
class Folded:
    """A network that needs nothing but these numbers."""

    head: str
    centre: Floats
    scale: Floats  # of the training inputs; already inside the first layer
    layers: tuple[Dense, ...]
    floor: float = 0.0
    spread: Floats | None = None
    shift: Floats | None = None
    intervals: Intervals | None = None
    doubt: Doubt | None = None
    classes: NDArray[Any] | None = None
    features: Texts | None = None
    feature_units: Texts | None = None  # a text may be empty
    targets: Texts | None = None  # what the outputs are called; of classes the one they belong to
    target_units: Texts | None = None
    missing: str = "refuse"
    one_output: bool = False  # a 1-D target, so 1-D predictions
    calibration: str | None = None
    version: str = ""  # of rdeepsense, when the model was trained
    source: str = ""  # digest of the model

    @property
    def inputs(self) -> int:
        return len(self.centre)

    @property
    def outputs(self) -> int:
        """Targets, or classes."""
        columns = len(self.layers[-1].bias)
        return columns if self.head in ("categorical", "point") else columns // 2

    @property
    def hidden(self) -> int:
        """Width of the last hidden layer."""
        return self.widths[-2] if len(self.layers) > 1 else 0

    @property
    def is_classifier(self) -> bool:
        return self.head == "categorical"

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden layers, columns of the last layer."""
        return (self.inputs, *(len(layer.bias) for layer in self.layers))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean, with `return_std` also the standard deviation; of classes, the likeliest."""
        X = self.check(X)
        if self.is_classifier:
            if return_std or self.classes is None:
                raise InputError("a classifier has probabilities, no std; use predict_proba(X)")
            return self.classes[np.argmax(self.forward(X), axis=1)]
        mean, std = self._shaped(self.forward(X))
        return (mean, std) if return_std else mean

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class, in the order of `classes`."""
        if not self.is_classifier:
            raise InputError("a regression has no classes; use predict(X, return_std=True)")
        return self.forward(self.check(X))

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "predicted"
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The interval that should hold the truth with probability `coverage`, by stored factors.

        "predicted" is that of the distribution, "conformal" that of the rows set aside.
        """
        if self.intervals is None:
            raise InputError("a classifier has no intervals; use predict_proba(X)")
        known = self.intervals.coverages
        at = np.flatnonzero(np.isclose(known, coverage, rtol=0, atol=1e-9))
        if not len(at):
            accepted = ", ".join(f"{c:g}" for c in known)
            raise InputError(f"coverage = {coverage!r} is not stored here; stored: {accepted}")
        low, high = self.intervals.low[at[0]], self.intervals.high[at[0]]
        if method == "conformal":
            if self.intervals.conformal is None:
                raise InputError("the model was folded without conformal thresholds")
            low, high = -self.intervals.conformal[at[0]], self.intervals.conformal[at[0]]
        elif method != "predicted":
            raise InputError(f"method = {method!r} is unknown; accepted: predicted, conformal")
        mean, std = self.forward(self.check(X))
        return self._shaped(np.stack([mean + low * std, mean + high * std]))

    def epistemic_std(self, X: Any) -> NDArray[Any]:
        """The part of the std that is doubt about the mean; for classes, about each logit."""
        if self.doubt is None:
            raise InputError(
                "the model was exported without its epistemic part; `rdeepsense export MODEL "
                "--epistemic laplace` keeps it"
            )
        found = self.epistemic(self.check(X))
        return found[:, 0] if self.one_output else found

    def epistemic(self, X: NDArray[Any]) -> NDArray[Any]:
        """The same of checked rows, (rows, outputs)."""
        return self.epistemic_of(self.raw(X))

    def forward(self, X: NDArray[Any]) -> NDArray[Any]:
        """Checked rows in; (2, rows, outputs) with mean and std, or (rows, classes), out."""
        return self.finish(self.raw(X))

    def raw(self, X: NDArray[Any]) -> Floats:
        """The columns of the last layer; where there is a doubt, its size as one more."""
        centred = h = np.nan_to_num(X - self.centre)
        for layer in self.layers[:-1]:
            h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        raw: Floats = h @ self.layers[-1].weight.T + self.layers[-1].bias
        if self.doubt is None:
            return raw
        found = size(self.doubt.root, h[:, : self.hidden], centred / self.scale)
        return np.hstack([raw, found])

    def finish(self, raw: NDArray[Any]) -> Floats:
        """From the columns of the last layer to what they mean."""
        doubt: Any = 0.0
        if self.doubt is not None:
            raw, doubt = raw[:, :-1], np.sqrt(self.doubt.gain) * raw[:, -1:]
        if self.is_classifier:
            if self.doubt is not None:
                raw = (raw - raw.mean(axis=1, keepdims=True)) / np.hypot(1.0, doubt)
            odds = np.exp(raw - raw.max(axis=1, keepdims=True))
            probabilities: Floats = odds / odds.sum(axis=1, keepdims=True)
            return probabilities
        if self.head == "point":
            return np.stack([raw, np.zeros_like(raw)])
        centre, v = np.split(raw, 2, axis=1)
        width = np.logaddexp(0.0, v) + self.floor
        width = np.sqrt(width) if self.head == "gaussian" else width
        std = self.spread * (width if self.doubt is None else np.hypot(width, doubt))
        return np.stack([centre + self.shift * std, std])

    def epistemic_of(self, raw: NDArray[Any]) -> NDArray[Any]:
        """The epistemic std in what `raw` returned."""
        assert self.doubt is not None
        std: NDArray[Any] = self.doubt.std * raw[:, -1:]
        return std

    def check(self, X: Any) -> NDArray[Any]:
        """X as (rows, inputs) floats, refused where the model cannot take it."""
        try:
            rows: NDArray[Any] = np.asarray(X)
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must hold numbers; {error}") from error
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise InputError(f"X has shape {rows.shape}; the model takes (rows, {self.inputs})")
        bad = np.isinf(rows) if self.missing == "mean" else ~np.isfinite(rows)
        if bad.any():
            row, column = (int(k) for k in np.argwhere(bad)[0])
            name = repr(self.features[column]) if self.features else str(column)
            raise InputError(f"X holds {rows[row, column]} in row {row}, column {name}")
        return rows

    def _shaped(self, pair: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        first, second = pair[..., 0] if self.one_output else pair
        return first, second
