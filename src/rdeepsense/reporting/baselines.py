"""A model beside a constant and boosted trees: is the network better than simple models?

All are judged on the same rows. The constant is the Gaussian, or the frequencies, of the training
targets; the trees are scikit-learn's, stopped and calibrated on a part of the training rows. Of
windows the trees read the mean, the spread, the ends and the mean step of each channel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.comparison.baselines import HistBoosted
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.errors import RDeepSenseError
from rdeepsense.estimators.loading import Estimator
from rdeepsense.fitting.fitted import BaselineScores, PeerRecord
from rdeepsense.modelfile.layout import LARGEST_FIGURE
from rdeepsense.pages.html import TextTable
from rdeepsense.reporting.figures import SHARES, with_error
from rdeepsense.reporting.inputs import sample
from rdeepsense.reporting.subject import by_target, standard_error

OWN, TREES, CONSTANT = "this model", "boosted trees", "a constant"
SHOWN = {
    "mae": "mean absolute error",
    "crps": "CRPS",
    "accuracy": "accuracy",
    "brier": "Brier score",
    "coverage_90": "coverage of 90 % intervals",
    "sharpness": "mean stated std",
    "ece": "calibration error",
    "nll": "NLL",
}
MOST_ROWS = 50_000  # that the simple ones are fitted on
MOST_LEVELS = 255  # that the trees take as categories


Simple = Mapping[str, Mapping[str, AnyDistribution]]
"""Predictions of simple models by target and method."""


def simple_models(
    model: Estimator,
    train: tuple[ArrayLike, ArrayLike],
    X: ArrayLike,
    groups: NDArray[Any] | None = None,
) -> Simple:
    """Fit a constant and boosted trees on `train`, and predict the rows `X`.

    `groups` are those of the training rows. Trees are left out where they cannot be fitted.
    """
    target = model.fitted_.target
    rows, wanted = features(model.as_rows(train[0])), features(model.as_rows(X))
    y = _labelled(model, train[1], len(rows))
    some = sample(len(rows), MOST_ROWS, model.fitted_.training.seed)
    rows, y = rows[some], y[some]
    between = None if groups is None else groups[some]
    found: dict[str, dict[str, AnyDistribution]] = {}
    for place, name in enumerate(_names(model)):
        before = y if y.ndim == 1 else y[:, place]
        found[name] = {CONSTANT: _constant(before, len(wanted), target.classes)}
        trees = _trees(model, rows, before, between)
        if trees is not None:
            found[name][TREES] = trees.predict_dist(wanted)
    return found


def trees_of(simple: Simple) -> dict[str, AnyDistribution]:
    """Return what boosted trees predict, by target."""
    return {name: methods[TREES] for name, methods in simple.items() if TREES in methods}


def compare(
    model: Estimator,
    simple: Simple,
    test: tuple[ArrayLike, ArrayLike],
    groups: NDArray[Any] | None = None,
) -> BaselineScores:
    """Score a model and simple models on the same rows."""
    own: AnyDistribution = model.predict_dist(test[0])
    truth = _labelled(model, test[1], len(own))
    records: list[PeerRecord] = []
    for name, dist, y_test in by_target(own, truth, _names(model)):
        said: dict[str, AnyDistribution] = {OWN: dist, **simple[name]}
        losses = {method: _nll(one, y_test) for method, one in said.items()}
        for method, one in said.items():
            behind = losses[method] - losses[OWN]
            records.append(
                PeerRecord(
                    name,
                    method,
                    {key: _finite(v) for key, v in metrics.evaluate(one, y_test).items()
                     if key in SHOWN},
                    None if method == OWN else _finite(float(behind.mean())),
                    None if method == OWN else _finite(standard_error(behind, groups)),
                )
            )  # fmt: skip
    return BaselineScores(len(truth), tuple(records))


def _names(model: Estimator) -> list[str]:
    target = model.fitted_.target
    return list(target.names or [f"target {k}" for k in range(max(1, math.prod(target.shape)))])


def peers_table(peers: BaselineScores, target: str, where: str) -> TextTable:
    """Return a line for each method, with how far it is behind in NLL."""
    own = [one for one in peers.records if one.target == target]
    keys = [key for key in SHOWN if key in own[0].figures]
    header = ["method", *(SHOWN[key] for key in keys), "NLL behind this model"]
    body = [
        [
            one.method,
            *(_cell(one.figures[key], key) for key in keys),
            "" if one.behind is None else with_error(one.behind, one.behind_error),
        ]
        for one in own
    ]
    return TextTable(
        f"{target}: beside simple models",
        f"On {peers.rows:,} rows {where}. Behind: positive where this model is better, ± one "
        "standard error. The trees have one spread for all rows.",
        header,
        body,
        strong={(0, column) for column in range(len(header) - 1)},
    )


def peers_words(peers: BaselineScores, target: str, where: str) -> str:
    """Say in a sentence whether the model is better than simple ones."""
    found = {one.method: one for one in peers.records if one.target == target}
    told = []
    for method in (CONSTANT, TREES):
        one = found.get(method)
        if one is None or one.behind is None:
            continue
        size = with_error(abs(one.behind), one.behind_error)
        if abs(one.behind) <= 2 * (one.behind_error or 0.0):
            told.append(f"does not differ significantly from {method} ({size} nats)")
        else:
            told.append(f"is {size} nats {'better' if one.behind > 0 else 'worse'} than {method}")
    return (
        f"On {peers.rows:,} rows {where}: by NLL, the model {' and '.join(told)}." if told else ""
    )


def features(rows: NDArray[Any]) -> NDArray[Any]:
    """Return what the trees read: rows of a table as they are, of windows a few figures each."""
    if rows.ndim != 3:
        return rows
    step = np.abs(np.diff(rows, axis=1)).mean(1)
    parts = (rows.mean(1), rows.std(1), rows.min(1), rows.max(1), step)
    return np.concatenate(parts, axis=1).astype(np.float64)


def _labelled(model: Estimator, y: ArrayLike, rows: int) -> NDArray[Any]:
    target = model.fitted_.target
    encoded = target.encode(y, rows)
    return encoded if target.classes is None else np.asarray(target.classes[encoded])


def _constant(
    before: NDArray[Any], rows: int, classes: NDArray[Any] | None
) -> Gaussian | Categorical:
    if classes is None:
        spread = max(float(before.std()), float(np.finfo(np.float64).tiny))
        return Gaussian(np.full(rows, before.mean()), np.full(rows, spread))
    counts = np.maximum([np.sum(before == label) for label in classes], 0.5)
    return Categorical(np.tile(counts / counts.sum(), (rows, 1)), classes)


def _trees(
    model: Estimator, X: NDArray[Any], y: NDArray[Any], groups: NDArray[Any] | None
) -> HistBoosted | None:
    """Fit boosted trees; None where these rows do not allow it."""
    fitted = model.fitted_
    encoding = fitted.inputs.encoding
    codes: Sequence[int] = ()
    if encoding is not None:
        codes = [c.column for c in encoding.categories if len(c.levels) <= MOST_LEVELS]
    task = "classification" if fitted.target.is_classes else "regression"
    trees = HistBoosted(task, random_state=fitted.training.seed, categories=codes)
    try:
        return trees.fit(X, y, groups)
    except (RDeepSenseError, ValueError):
        return None


def _nll(dist: AnyDistribution, y: NDArray[Any]) -> Floats:
    truth = dist.encode(y) if isinstance(dist, Categorical) else np.asarray(y, np.float64)
    nll = np.asarray(-dist.log_prob(truth), np.float64)
    return np.clip(np.nan_to_num(nll, nan=LARGEST_FIGURE), -LARGEST_FIGURE, LARGEST_FIGURE)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cell(value: float | None, key: str) -> str:
    return "not finite" if value is None else with_error(value, None, key in SHARES)
