"""The estimator behind the methods of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdeepsense.errors import InputError
from rdeepsense.estimators.loading import ESTIMATORS, Estimator
from rdeepsense.experiments.methods import FAMILIES, TASKS, Family, Method

QUICK_LAYERS = (64, 64)


def build(
    methods: Sequence[Method],
    task: str,
    hidden: Sequence[int] | str,
    random_state: int,
    epochs: int | None = None,
) -> Estimator:
    """Return the unfitted estimator that serves all these methods of one family.

    With `hidden` "auto" families that leave their network open choose it; the others have 64-64.
    """
    if task not in TASKS:
        raise InputError(f"task = {task!r} is unknown; accepted: {', '.join(TASKS)}")
    family = FAMILIES[methods[0].family]
    options: dict[str, Any] = {"random_state": random_state, "verbose": False, **family.options}
    if family.is_network:
        options |= {"hidden": _layers(hidden, family), "epochs": epochs}
    if task == "regression":
        options |= family.regression_options
    if family.passes_option is not None:
        options[family.passes_option] = max(method.samples or 1 for method in methods)
    kind = "Regressor" if task == "regression" else "Classifier"
    return ESTIMATORS[f"{family.estimator}{kind}"](**options)


def _layers(hidden: Sequence[int] | str, family: Family) -> tuple[int, ...] | str:
    if not isinstance(hidden, str):
        return tuple(hidden)
    return hidden if family.chooses_network else QUICK_LAYERS
