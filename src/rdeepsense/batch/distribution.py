"""The distributions of many rows, by the model's own C where that is the faster.

Of a model that folds, every row's distribution is one and the same standard one, shifted and
stretched. With Z that of any one row, of mean m and standard deviation s, a row of which C says
mean and std has

    mean - std m / s + (std / s) Z
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense.batch import plan
from rdeepsense.batch.known import Predicted, Values
from rdeepsense.batch.prepare import at_the_centre, faster_library
from rdeepsense.batch.wanted import Wanted
from rdeepsense.distributions import AnyDistribution, Categorical, Mixture
from rdeepsense.errors import InputError
from rdeepsense.estimators.loading import Estimator


def predict_many(model: Estimator, X: ArrayLike) -> AnyDistribution:
    """Return what `model.predict_dist(X)` does, within 1e-5 stds.

    C runs where `rdeepsense predict` would run it: rows of a table, enough of them to be worth a
    compiler's call, and a model that can be folded.
    """
    rows = model.as_rows(X)
    if len(model.fitted_.inputs.shape) != 1 or len(rows) < plan.WORTH_IT:
        return model.predict_dist(X)
    return _by_c(model, rows) or model.predict_dist(X)


def _by_c(model: Estimator, rows: Values) -> AnyDistribution | None:
    """Predict by C; None where it cannot, or torch is the faster."""
    try:
        library, _ = faster_library(model, Wanted(further=()), "auto")
    except InputError:
        return None
    if library is None:
        return None
    predicted, _ = library.runner().run(rows)
    return _classes(model, rows, predicted) if predicted.std is None else _numbers(model, predicted)


def _classes(model: Estimator, rows: Values, predicted: Predicted) -> AnyDistribution:
    probs = np.asarray(predicted.mean, np.float64)
    # A class of probability 0 would be an infinite surprise, which float32 has from e^-104 on.
    faint = (probs < np.finfo(np.float32).tiny).any(1)
    if faint.any():
        probs[faint] = model.predict_rows(rows[faint]).mean
    return Categorical(probs / probs.sum(1, keepdims=True), model.fitted_.target.classes)


def _numbers(model: Estimator, predicted: Predicted) -> AnyDistribution:
    one = at_the_centre(model.fitted_)
    assert not isinstance(one, Categorical | Mixture)
    shape = (len(predicted.mean), *model.fitted_.target.shape)
    mean, std = (np.asarray(v, np.float64).reshape(shape) for v in (predicted.mean, predicted.std))
    scale = std / one.std
    return one.affine(mean - scale * one.mean, scale)
