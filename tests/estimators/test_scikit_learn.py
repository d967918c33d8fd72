"""scikit-learn's own checks, all of them, none excused."""

from __future__ import annotations

import os
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import rdeepsense as rds

# Fewer epochs than the default, unless there is time.
SHORT: dict[str, Any] = {} if os.environ.get("RDEEPSENSE_LONG") else {"epochs": 15}
SMALL: dict[str, Any] = {"hidden": (16,), "epochs": 20, "device": "cpu"}
EVERYDAY = [rds.RDeepSenseRegressor(effort="quick", **SHORT)]
OTHERS = [
    rds.RDeepSenseClassifier(effort="quick", **SHORT),
    rds.RDeepSenseRegressor(**SHORT),
    rds.RDeepSenseClassifier(**SHORT),
    rds.MCDropRegressor(samples=5, **SMALL),
    rds.MCDropClassifier(samples=5, **SMALL),
    rds.SSPRegressor(members=2, **SMALL),
    rds.SSPClassifier(members=2, **SMALL),
]


def name(estimator: Any) -> str:
    """The class of an estimator, and its effort where it has one."""
    effort = getattr(estimator, "effort", "")
    return f"{type(estimator).__name__}{effort and '-'}{effort}"


CHECKS = [
    pytest.param(estimator, check, id=f"{name(whole)}-{i}", marks=marks)
    for whole, marks in [(e, ()) for e in EVERYDAY] + [(e, pytest.mark.slow) for e in OTHERS]
    for i, (estimator, check) in enumerate(estimator_checks_generator(whole))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_check_estimator(estimator: Any, check: Any) -> None:
    check(estimator)
