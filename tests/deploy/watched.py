"""Random models with a reject option and a compact novelty, and their C."""

from __future__ import annotations

import copy
import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import folded_form
from rdeepsense.deploy.folded.graph import FoldedGraph
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quantise import as_float32
from rdeepsense.deploy.status import StatusRules

ROUNDING = 1e-5  # of a surprise, and of 1


def without_novelty(estimator: Any) -> Any:
    """A copy of an estimator that predicts as exports without a novelty do."""
    found = copy.copy(estimator)
    found.fitted_ = replace(estimator.fitted_, novelty=None, unlike=None)
    return found


def watched(estimator: Any, X: Any, reject: float = 0.7) -> tuple[Any, Source]:
    """A folded model that flags by these rows, and its C in float32."""
    fitted = estimator.fitted_
    plain = fitted.distribution(X)
    y = plain.mode if plain.is_categorical else plain.mean
    rows = LabelledRows(X, np.asarray(y), "drawn")
    watch = StatusRules.of(fitted, rows, Options(reject=reject, novelty=True))
    folded = folded_form(fitted)
    folded = replace(folded, facts=watch.on(folded.facts))
    if isinstance(folded, FoldedGraph):
        return folded, GraphSource(folded, as_stored(folded, "float32"))
    return folded, Source(folded, as_float32(folded))


def strange(X: NDArray[Any], seed: int) -> NDArray[np.float32]:
    """Rows as they are, shuffled, stuck, in corners of the range, far out, and absurd."""
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(column) for column in np.moveaxis(X, -1, 0)], axis=-1)
    stuck = np.broadcast_to(X[:, :1] if X.ndim > 2 else X[:1], X.shape)
    far = X + 10 ** rng.uniform(0, 4, (len(X), *[1] * (X.ndim - 1))) * X.std()
    corners = np.where(rng.random(X.shape) < 0.5, X.min(0), X.max(0))
    whole = X.copy()
    whole.reshape(len(X), -1)[:, -1] = 3e38
    return np.concatenate([X, shuffled, stuck, corners, far, whole]).astype(np.float32)


def surprises(library: ctypes.CDLL, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """What C says of each row."""
    function = library.model_surprise
    function.restype = ctypes.c_float
    return np.array([function(ctypes.c_void_p(x.ctypes.data)) for x in np.ascontiguousarray(X)])


def rounding(facts: Facts, X: NDArray[Any], surprise: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows whose novelty is within rounding of the threshold."""
    assert facts.novelty is not None
    threshold = facts.novelty.threshold[0]
    return np.asarray(np.abs(surprise - threshold) <= ROUNDING * (1 + np.abs(surprise)))
