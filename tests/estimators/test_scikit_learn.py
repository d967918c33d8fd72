"""scikit-learn's own checks, all of them, none excused."""

from __future__ import annotations

import os
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import rdeepsense as rds

# All of the search, in fewer epochs than the default unless there is time.
SHORT: dict[str, Any] = {} if os.environ.get("RDEEPSENSE_LONG") else {"epochs": 15}
SMALL: dict[str, Any] = {"hidden": (16,), "epochs": 20, "device": "cpu"}
DEFAULTS = [rds.RDeepSenseRegressor(**SHORT), rds.RDeepSenseClassifier(**SHORT)]
BASELINES = [
    rds.MCDropRegressor(samples=5, **SMALL),
    rds.MCDropClassifier(samples=5, **SMALL),
    rds.SSPRegressor(members=2, **SMALL),
    rds.SSPClassifier(members=2, **SMALL),
]
CHECKS = [
    pytest.param(estimator, check, id=f"{type(estimator).__name__}-{i}", marks=marks)
    for whole, marks in [(e, ()) for e in DEFAULTS] + [(e, pytest.mark.slow) for e in BASELINES]
    for i, (estimator, check) in enumerate(estimator_checks_generator(whole))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_check_estimator(estimator: Any, check: Any) -> None:
    check(estimator)
