"""The prior of groups that a bank left out equals that of models fitted without them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.adaptation.classes import ClassPrior
from rdeepsense.adaptation.prior import Prior
from rdeepsense.data.splits import evenly
from rdeepsense.fitting.adaptation import prior_of, stream_of
from rdeepsense.fitting.fitted import CPU
from rdeepsense.fitting.left_out_prior import left_out_prior
from rdeepsense.fitting.passes import Forward

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(12), 20)
X = RNG.normal(size=(240, 3))
Y = 10 + 2 * X[:, 0] + 3 * RNG.normal(size=12)[GROUP] + 0.5 * RNG.normal(size=240)
FIXED = {"hidden": (8,), "epochs": 15, "random_state": 0, "device": "cpu", "effort": "quick"}


@pytest.mark.parametrize("classes", [False, True])
def test_it_is_the_prior_of_the_groups_streams(classes: bool) -> None:
    y: Any = (Y > 10).astype(int) if classes else Y
    kind = RDeepSenseClassifier if classes else RDeepSenseRegressor
    shown, hidden = GROUP < 6, GROUP >= 6
    held = (X[shown][::5], y[shown][::5])
    fitted = kind(**FIXED).fit(X[shown], y[shown], validation=held).fitted_
    fold = SimpleNamespace(
        network=fitted.network,
        trained_on=evenly(np.flatnonzero(shown)),
        dist=fitted.uncalibrated(X[hidden]),
        X=X[hidden],
        y=y[hidden],
        group=GROUP[hidden],
    )
    unit = None if classes else fitted.target_scaler.scale
    forward = Forward(fitted.inputs.scaler, CPU, 0)
    found = left_out_prior([fold], forward, X, fitted.calibration, unit)
    wanted = prior_of([stream_of(fitted, X[g == GROUP], y[g == GROUP]) for g in range(6, 12)])
    assert type(found) is type(wanted) is (ClassPrior if classes else Prior)
    assert found.groups == wanted.groups == 6
    for name, value in vars(wanted).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-4, atol=1e-9)
    if not classes:
        assert found.between[0] * unit[0] ** 2 == pytest.approx(9, rel=0.9)
