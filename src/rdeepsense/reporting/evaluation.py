"""What `model.evaluate` returns: metrics, and the verdict that `rdeepsense evaluate` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense import metrics
from rdeepsense.data.findings import Finding
from rdeepsense.data.kinds import groups_of
from rdeepsense.data.splits import checked_times
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.reporting.subject import Subject, by_target
from rdeepsense.reporting.verdict import Constant, Verdict, judge_each
from rdeepsense.status import Statuses


class Evaluation(dict[str, float]):
    """Metrics by name; ``verdicts`` has the skill and the calibration of each target in words.

    A dictionary, which is all there is to know of it as a number. The verdict is found when it is
    first asked for, with the findings of the fit and the status of each row.
    """

    def __init__(
        self,
        figures: Mapping[str, float],
        subjects: Sequence[Subject],
        constants: Sequence[Constant] | None,
        status: Statuses,
        findings: Sequence[Finding],
    ) -> None:
        super().__init__(figures)
        self._judged = subjects, constants, status, findings

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each target by its name."""
        subjects, constants, status, findings = self._judged
        return judge_each(subjects, constants, status, None, findings)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only target."""
        if len(self.verdicts) > 1:
            raise InputError(f"verdict: there are {len(self.verdicts)} targets; use verdicts")
        return next(iter(self.verdicts.values()))


def evaluated(
    fitted: Fitted,
    dist: AnyDistribution,
    rows: NDArray[Any],
    y: ArrayLike,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> Evaluation:
    """Judge predictions for labeled rows."""
    truth, subjects = subjects_of_model(fitted, dist, y, groups, time)
    return Evaluation(
        metrics.evaluate(dist, truth),
        subjects,
        Constant.of_model(fitted),
        fitted.status(rows),
        fitted.training.findings,
    )


def subjects_of_model(
    fitted: Fitted,
    dist: AnyDistribution,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> tuple[NDArray[Any], list[Subject]]:
    """Return the actual values or labels, and each target with its predictions."""
    target, count = fitted.target, len(dist)
    encoded = target.encode(y, count)
    truth = encoded if target.classes is None else np.asarray(target.classes[encoded])
    group = None if groups is None else groups_of(groups, count)
    when = None if time is None else checked_times(time, count)
    names = list(target.names or [f"target {k}" for k in range(max(1, math.prod(target.shape)))])
    units = target.units or ("",) * len(names)
    by, at = _name(groups, "group"), _name(time, "time")
    return truth, [
        Subject(name, unit, part, own, group, by, when, at)
        for (name, part, own), unit in zip(by_target(dist, truth, names), units, strict=True)
    ]


def _name(column: object, other: str) -> str:
    """Return the name that a column of a table brings."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else other
