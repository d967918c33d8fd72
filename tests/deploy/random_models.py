"""Fitted estimators of random shape, whose weights and calibration are drawn, not learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.calibration import Calibration, Isotonic, Scale, Temperature
from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.networks import Periodic
from rdeepsense.uncertainty import Laplace

ROWS, FITTED = 64, 51


@dataclass(frozen=True)
class Drawn:
    """An estimator, and rows in raw units that it was fitted on."""

    estimator: Any
    X: NDArray[np.float64]
    name: str


def draw(seed: int, widest: int = 200, most: int = 60, periodic: bool = False) -> Drawn:
    """1 to 5 layers, every head, every calibration, sensors of very different units.

    With `periodic` the layers, one hidden at least, read embeddings of the inputs as well.
    """
    rng = np.random.default_rng(seed)
    hidden = tuple(int(n) for n in rng.integers(1, widest + 1, rng.integers(0, 5)))
    inputs, outputs = int(rng.integers(1, most + 1)), int(rng.integers(1, most + 1))
    head = ("gaussian", "student", "categorical")[seed % 3]
    X = rng.normal(size=(ROWS, inputs)) * 10 ** rng.uniform(-6, 6, inputs)
    X += rng.normal(size=inputs) * 100 * X.std(0)
    arguments = {"hidden": hidden, "epochs": 1, "random_state": seed, "verbose": False}
    if periodic:
        waves, width = (int(n) for n in rng.integers(1, 17, 2))
        arguments["network"] = Periodic(hidden or (widest,), waves, width)
    estimator: Any
    if head == "categorical":
        outputs = max(outputs, 2)
        estimator = RDeepSenseClassifier(**arguments, effort="quick")
        y = np.arange(ROWS) % min(outputs, ROWS // 2)
    else:
        estimator = RDeepSenseRegressor(likelihood=head, **arguments, effort="quick")
        y = rng.normal(size=(ROWS, outputs)) * 10 ** rng.uniform(-3, 3, outputs)
        y += rng.normal(size=outputs) * y.std(0)
        y = y[:, 0] if outputs == 1 and seed % 2 else y
    # Validation rows are given, so that the fit is not one of few rows.
    estimator.fit(X[:FITTED], y[:FITTED], validation=(X[FITTED:], y[FITTED:]))
    # An export has a density of the inputs only where one is asked for.
    estimator.fitted_ = replace(estimator.fitted_, unlike=None)
    _randomise(estimator, rng)
    shape = "-".join(map(str, (inputs, *hidden, outputs))) + " periodic" * periodic
    return Drawn(estimator, X, f"{head} {shape} {type(estimator.fitted_.calibration).__name__}")


def give_laplace(drawn: Drawn, seed: int = 0) -> Drawn:
    """The Laplace approximation of the drawn weights, with numbers of its own for the rest.

    Without a guard, so that rows far from the training rows have the std that Laplace gives them.
    """
    estimator, rng = drawn.estimator, np.random.default_rng(seed)
    x = estimator.fitted_.inputs.scaler.transform(drawn.X, torch.float32)
    laplace = Laplace.fit(estimator.network_, [(x, torch.ones(len(x)).double())])
    chosen = estimator.fitted_.calibration
    if chosen is not None:
        chosen = replace(chosen, factor=1.3 * chosen.factor)
    share = rng.uniform(0.05, 1, len(laplace.ratio))
    epistemic = EpistemicPart(laplace, share, {"laplace": chosen})
    estimator.fitted_ = replace(estimator.fitted_, epistemic=epistemic, guard=None)
    return drawn


def _randomise(estimator: Any, rng: np.random.Generator) -> None:
    """Weights as torch draws them for a new network."""
    with torch.no_grad():
        for value in estimator.network_.parameters():
            reach = value.shape[-1] ** -0.5 if value.ndim > 1 else 0.5
            value.copy_(torch.from_numpy(reach * rng.uniform(-1, 1, tuple(value.shape))))
    factor = float(rng.uniform(0.5, 2))
    chosen: Calibration | None
    if hasattr(estimator, "classes_"):
        chosen = Temperature(factor)
    elif rng.random() < 0.4:
        stated = np.linspace(0, 1, 9)
        actual = np.concatenate([[0], np.cumsum(rng.uniform(0.2, 1, 8))])
        chosen = Isotonic(factor, stated, actual / actual[-1])
    else:
        chosen = Scale(factor) if rng.random() < 0.8 else None
    estimator.fitted_ = replace(estimator.fitted_, calibration=chosen)
