"""The estimator behind the methods of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdeepsense.errors import InputError
from rdeepsense.estimators.loading import ESTIMATORS, Estimator
from rdeepsense.experiments.methods import FAMILIES, TASKS, Method


def build(
    methods: Sequence[Method],
    task: str,
    hidden: Sequence[int],
    random_state: int,
    epochs: int | None = None,
) -> Estimator:
    """Return the unfitted estimator that serves all these methods of one family."""
    if task not in TASKS:
        raise InputError(f"task = {task!r} is unknown; accepted: {', '.join(TASKS)}")
    family = FAMILIES[methods[0].family]
    options: dict[str, Any] = {"random_state": random_state, "verbose": False, **family.options}
    if family.is_network:
        options |= {"hidden": tuple(hidden), "epochs": epochs}
    if task == "regression":
        options |= family.regression_options
    if family.passes_option is not None:
        options[family.passes_option] = max(method.samples or 1 for method in methods)
    kind = "Regressor" if task == "regression" else "Classifier"
    return ESTIMATORS[f"{family.estimator}{kind}"](**options)
