"""Several trainings of one method: their mean, and errors that hold test rows and training both.

With S trainings judged on the same test rows, which fall into B blocks (`jackknife`),

    value = mean_s v_s,    se^2 = se_rows^2 + s^2 / S,    s^2 = sum_s (v_s - value)^2 / (S - 1),

se_rows from leaving one block at a time out of the mean over trainings. What a training does well
on these very rows is in both terms, so the error is a little too large rather than too small. With
one training s is not known, and the error is that of the rows alone.

A few trainings say little of s, so an interval takes the quantile of Student's t with the degrees
of freedom of Welch and Satterthwaite,

    nu = se^4 / (se_rows^4 / (B - 1) + (s^2 / S)^2 / (S - 1)).

The difference of two methods is treated alike, with the differences in place of the values: what
both have in common (rows, and the training where they share a model) drops out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from rdeepsense.experiments.paper.jackknife import standard_error
from rdeepsense.experiments.paper.score import Values
from rdeepsense.experiments.paper.task_results import AlphaPoint, Figures, MethodResults
from rdeepsense.experiments.paper.trainings import (
    AlphaTraining,
    Faults,
    MethodTraining,
    PredictionCost,
)


def combined(
    rows: float | None, by_seed: Values, blocks: float = math.inf
) -> tuple[float | None, float]:
    """Return the standard error of a mean over seeds, and its degrees of freedom.

    `rows` is the error over test rows, from `blocks` blocks; None where it is not known.
    """
    known = [value for value in by_seed if value is not None]
    if rows is None or not known or len(known) < len(by_seed):
        return None, math.inf
    if len(known) == 1:
        return rows, blocks - 1
    seeds = variance(known) / len(known)
    error = math.sqrt(rows**2 + seeds)
    doubt = rows**4 / (blocks - 1) + seeds**2 / (len(known) - 1)
    return error, error**4 / doubt if doubt else math.inf


@dataclass(frozen=True)
class _Pooled:
    """Means over trainings of either kind; `by_seed` keeps their figures one by one."""

    figures: Figures
    by_seed: Mapping[str, Values]
    jackknife: Mapping[str, Values]
    warnings: Sequence[str]


def method_over_seeds(
    trainings: Sequence[MethodTraining], cost: PredictionCost | None
) -> MethodResults:
    """Return one method from its trainings: means of figures, curves and leave-one-out values.

    A figure that one training has no finite value of has none.
    """
    first, pooled = trainings[0], _pooled(trainings)
    calibration, risk, groups, chosen = (
        [getattr(one, name) for one in trainings]
        for name in ("calibration", "risk_coverage", "group_coverage", "chosen")
    )
    return MethodResults(
        about=first.about,
        fit_seconds=mean([training.fit_seconds for training in trainings]),
        chosen=_chosen(chosen) if first.chosen else first.chosen,
        figures=pooled.figures,
        calibration=first.calibration
        and replace(first.calibration, observed=means([one.observed for one in calibration])),
        risk_coverage=first.risk_coverage
        and replace(first.risk_coverage, risk=means([one.risk for one in risk])),
        group_coverage=means(groups) if first.group_coverage else first.group_coverage,
        jackknife=pooled.jackknife,
        passes=first.passes,
        faults=first.faults and _faults([one.faults or {} for one in trainings]),
        warnings=pooled.warnings,
        seeds=len(trainings),
        by_seed=pooled.by_seed,
        cost=cost,
    )


def alpha_over_seeds(alpha: float, trainings: Sequence[AlphaTraining]) -> AlphaPoint:
    """Return one point of the alpha study from its trainings."""
    pooled = _pooled(trainings)
    return AlphaPoint(
        alpha, pooled.figures, pooled.warnings, pooled.jackknife, len(trainings), pooled.by_seed
    )


def _pooled(trainings: Sequence[MethodTraining] | Sequence[AlphaTraining]) -> _Pooled:
    given = [training.figures for training in trainings]
    names = [name for name in given[0] if not name.endswith("_se")]
    by_seed = {name: [figures.get(name) for figures in given] for name in names}
    jackknife = {
        name: means([training.jackknife.get(name, ()) for training in trainings])
        for name in trainings[0].jackknife
    }
    figures: dict[str, float | None] = {name: mean(values) for name, values in by_seed.items()}
    for name in names:
        if f"{name}_se" in given[0]:
            dropped = jackknife.get(name)
            # The KL has no leave-one-out values: the errors of its trainings, root mean square.
            rows = standard_error(dropped) if dropped else _rms([f[f"{name}_se"] for f in given])
            figures[f"{name}_se"] = combined(rows, by_seed[name])[0]
    warned = sorted({words for training in trainings for words in training.warnings})
    return _Pooled(figures, by_seed, jackknife, warned)


def _faults(trainings: Sequence[Faults]) -> Faults:
    return {
        kind: {name: mean([one[kind][name] for one in trainings]) for name in figures}
        for kind, figures in trainings[0].items()
    }


def mean(values: Values) -> float | None:
    """Return the mean; None where a value is missing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def means(lists: Sequence[Values]) -> list[float | None]:
    """Return the means place by place."""
    return [mean(values) for values in zip(*lists, strict=True)]


def _rms(values: Values) -> float | None:
    square = mean([None if value is None else value**2 for value in values])
    return None if square is None else math.sqrt(square)


def _chosen(choices: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return a choice that all trainings made as it is, others as the list of them."""
    lists = {key: [own[key] for own in choices] for key in choices[0]}
    return {
        key: own[0] if all(value == own[0] for value in own) else own for key, own in lists.items()
    }
