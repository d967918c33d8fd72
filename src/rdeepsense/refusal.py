"""The reject rule: which predictions are too uncertain to be used.

Each row has a score, larger where the model is less certain. A row is rejected unless its score is
at most a threshold. A score that is NaN is not, so a prediction that is not a number is always
rejected. The rule is the same in every form of a model: `rdeepsense.RejectOption`, folded models,
predictions over files, C, WebAssembly, ONNX and streams, where a rejected row has `Status.UNSURE`.

The score of a predictive distribution is

    numbers:  the mean over outputs of std_k / spread_k
    classes:  1 - the largest probability

A row that `predict` does not take, because it holds infinity or NaN that is not filled in, has no
score. It is always rejected, also where a form writes numbers for it, as C does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats


def rejected(score: ArrayLike, threshold: float) -> Booleans:
    """Tell which rows are rejected: those whose score is not at most `threshold`; NaN is not."""
    return np.asarray(~np.less_equal(score, threshold))


def unanswerable(X: NDArray[Any], missing: str, gaps: Booleans | None = None) -> Booleans:
    """Tell which values are not taken: infinity, and NaN that is not filled in.

    With `missing` "refuse" no NaN is filled in, with "mean" every one, with "indicator" those of
    the columns that `gaps` tells; None is all of them.
    """
    bad = np.asarray(~np.isfinite(X))
    if missing == "refuse" or not bad.any():
        return bad
    filled = np.isnan(X)
    if missing == "indicator" and gaps is not None:
        filled &= gaps
    return np.asarray(bad & ~filled)


def std_score(std: NDArray[Any], spread: ArrayLike = 1.0) -> Floats:
    """Return the score of standard deviations (rows, outputs), or (rows,)."""
    score: Floats = (std.reshape(len(std), -1) / np.asarray(spread)).mean(axis=1)
    return score


def class_score(probs: NDArray[Any]) -> Floats:
    """Return the score of class probabilities (rows, classes)."""
    score: Floats = 1 - probs.max(axis=-1)
    return score


@dataclass(frozen=True)
class Refusal:
    """A fitted reject rule for predictive distributions, as files of models hold it."""

    threshold: Floats  # (1,)
    spread: Floats  # (outputs,), of classes (1,)

    def refused(self, predicted: NDArray[Any], is_classifier: bool) -> Booleans:
        """Tell which rows are rejected, by their stds (rows, outputs) or class probabilities."""
        score = class_score(predicted) if is_classifier else std_score(predicted, self.spread)
        return rejected(score, float(self.threshold[0]))

    def to_json(self) -> dict[str, object]:
        """Return the numbers as plain values."""
        return {"threshold": float(self.threshold[0]), "spread": self.spread.tolist()}

    def arrays(self) -> dict[str, Floats]:
        """Name the arrays, as files have them."""
        return dict(vars(self))
