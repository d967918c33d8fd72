"""Scores on test rows, their standard errors, and the results of all trainings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, variance

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense._records import LEFT_OUT, Record, mapping, to_plain
from rdeepsense.arrays import Floats
from rdeepsense.calibration.reject import predicted_score
from rdeepsense.distributions import AnyDistribution, Categorical, Mixture
from rdeepsense.paper.study import Parts, TaskFacts
from rdeepsense.paper.tasks.task import Targets

# --------------------------------------------------------------------------------------------------
# Standard errors over dependent test rows
#
# Test rows fall into blocks: the groups (users, records) where the split is by groups, else 50
# stretches of rows. Every figure here follows from sums over blocks, so leaving one block out at a
# time is cheap, and B such values give
#
#     se^2 = (B - 1) / B * sum_b (value_b - mean)^2.
#
# Two methods judged on the same rows are compared by the values of their difference, in which
# whatever makes a block hard for both drops out.
# --------------------------------------------------------------------------------------------------

BLOCKS = 50


def blocks(rows: int, groups: NDArray[np.generic] | None = None) -> NDArray[np.intp]:
    """Return the block of each row; whole groups, several to a block where there are many."""
    if groups is None:
        return np.arange(rows) * min(BLOCKS, rows) // rows
    number = np.unique(groups, return_inverse=True)[1]
    return np.asarray(number % BLOCKS, dtype=np.intp)


def block_sums(values: NDArray[np.generic], block: NDArray[np.intp]) -> Floats:
    """Return sums of `values` (rows, ...) over the rows of each block: (blocks, ...)."""
    sums = np.zeros((int(block.max()) + 1, *values.shape[1:]))
    np.add.at(sums, block, values)
    return sums


def leave_one_out(sums: Floats, figure: Callable[[Floats], float]) -> list[float | None]:
    """Return the figure without each block in turn; None where it is not finite."""
    total = sums.sum(axis=0)
    values = [figure(total - own) for own in sums]
    return [value if math.isfinite(value) else None for value in values]


def standard_error(values: Sequence[float | None]) -> float | None:
    """Return the error from leave-one-out values; None below two blocks, or where one lacks."""
    known = np.array([value for value in values if value is not None])
    if len(known) < 2 or len(known) < len(values):
        return None
    spread = np.sum((known - known.mean()) ** 2)
    return float(np.sqrt((len(known) - 1) / len(known) * spread))


# --------------------------------------------------------------------------------------------------
# Scores of a predictive distribution on test rows
# --------------------------------------------------------------------------------------------------

LEVEL = 0.9  # of intervals
KEPT = tuple(round(1 - 0.05 * i, 2) for i in range(19))  # 1.0, 0.95, ... 0.1
DIGITS = 6
REGRESSION = ("nll", "mae", "rmse", "crps", "deviation_area", "deviation_area_signed",
              "coverage_90", "sharpness")  # fmt: skip
CLASSIFICATION = ("nll", "accuracy", "f1", "mefp", "ece", "brier")


Values = Sequence[float | None]
"""Numbers as JSON has them: None where not finite."""


@dataclass(frozen=True)
class CalibrationCurve(Record):
    """The share of values inside the central interval of each level."""

    levels: Sequence[float]
    observed: Values


@dataclass(frozen=True)
class RiskCurve(Record):
    """The error of the rows that are kept when the least certain ones are refused."""

    kept: Sequence[float]
    risk: Values
    risk_name: str


@dataclass(frozen=True)
class ExampleCase(Record):
    """Some true values with their predicted means and 90 % intervals."""

    title: str
    truth: Values
    mean: Values
    low: Values
    high: Values


@dataclass(frozen=True)
class Examples(Record):
    """Cases to draw over the same x."""

    x: Values
    x_label: str
    y_label: str
    cases: Sequence[ExampleCase]


@dataclass(frozen=True)
class HeldOutScores:
    """Figures with standard errors (`_se`), their leave-one-out values, and curves."""

    figures: Mapping[str, float | None]
    calibration: CalibrationCurve | None  # None for classes
    risk_coverage: RiskCurve
    group_coverage: Values | None  # by group, where there are groups; accuracy for classes
    jackknife: Mapping[str, Values]


def score(dist: AnyDistribution, parts: Parts) -> HeldOutScores:
    """Score a prediction of the test rows."""
    labels = parts.test[1]
    y = _categorical(dist).encode(labels) if dist.is_categorical else labels
    wanted = CLASSIFICATION if dist.is_categorical else REGRESSION
    figures: dict[str, float | None] = {
        name: value for name, value in metrics.evaluate(dist, labels).items() if name in wanted
    }
    rows = _losses(dist, y)
    block = blocks(len(y), parts.clusters)
    dropped = {
        name: leave_one_out(block_sums(np.column_stack([loss, np.ones_like(loss)]), block), _ratio)
        for name, loss in rows.items()
    } | _dropped_others(dist, y, block)
    for name, values in dropped.items():
        figures[f"{name}_se"] = standard_error(values)
    curve = None
    if not dist.is_categorical:
        levels, observed = metrics.calibration_curve(dist, y)
        curve = CalibrationCurve(levels.tolist(), rounded(observed))
    return HeldOutScores(
        figures={name: _finite(value) for name, value in figures.items()},
        calibration=curve,
        risk_coverage=_risk_coverage(dist, rows, parts),
        group_coverage=_group_coverage(dist, y, parts),
        jackknife={name: rounded(values) for name, values in dropped.items()},
    )


def _losses(dist: AnyDistribution, y: Targets) -> dict[str, Floats]:
    """Return the losses that figures average over rows, row by row."""
    nll = -np.asarray(dist.log_prob(y)).reshape(len(y), -1).mean(axis=1)
    if dist.is_categorical:
        return {"nll": nll, "accuracy": (_modes(dist) == y).astype(float)}
    return {"nll": nll, "mae": np.abs(dist.mean - y).reshape(len(y), -1).mean(axis=1)}


def _dropped_others(
    dist: AnyDistribution, y: Targets, block: NDArray[np.intp]
) -> dict[str, list[float | None]]:
    """Return leave-one-out values of figures that are no means of rows."""
    if dist.is_categorical:
        predicted, wrong = _modes(dist), _modes(dist) != y
        entropy = np.asarray(_categorical(dist).entropy())
        false = block_sums(np.column_stack([entropy * wrong, wrong]), block)
        classes = _categorical(dist).probs.shape[-1]
        confusion = np.zeros((len(y), classes * classes))
        confusion[np.arange(len(y)), y.astype(int) * classes + predicted] = 1
        return {
            "mefp": leave_one_out(false, _ratio),
            "f1": leave_one_out(block_sums(confusion, block), _macro_f1),
        }
    levels = np.array(metrics.LEVELS)
    central = np.abs(2 * dist.cdf(y) - 1).reshape(len(y), -1)
    inside = np.stack([(central <= level).mean(axis=1) for level in levels], axis=1)
    sums = block_sums(np.column_stack([inside, np.ones(len(y))]), block)

    def area(signed: bool) -> Callable[[Floats], float]:
        return lambda s: float(metrics.curve_area(levels, s[:-1] / s[-1], signed=signed))

    return {
        "deviation_area": leave_one_out(sums, area(False)),
        "deviation_area_signed": leave_one_out(sums, area(True)),
    }


def _ratio(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] else math.nan


def _macro_f1(confusion: Floats) -> float:
    """Return the F1 of `metrics.f1`: over the classes that are predicted or true."""
    classes = math.isqrt(confusion.size)
    table = confusion.reshape(classes, classes)
    either = table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean(2 * np.diag(table)[either > 0] / either[either > 0]))


def _risk_coverage(dist: AnyDistribution, rows: dict[str, Floats], parts: Parts) -> RiskCurve:
    """Return the error of the rows that are kept when the least certain ones are refused.

    At least the share asked for is kept: more where rows are equally uncertain.
    """
    if dist.is_categorical:
        risk, name = 1 - rows["accuracy"], "error rate"
    else:
        risk, name = rows["mae"], f"MAE ({parts.task.unit})"
    coverage, mean = metrics.risk_coverage(predicted_score(dist), risk)
    ends = np.searchsorted(coverage, np.array(KEPT) - 1e-9)
    return RiskCurve(list(KEPT), rounded(mean[ends]), name)


def _group_coverage(dist: AnyDistribution, y: Targets, parts: Parts) -> Values | None:
    """Return the coverage of the 90 % interval by test group; for classes the accuracy."""
    groups = parts.test_groups
    if groups is None:
        return None
    if dist.is_categorical:
        hit = (_modes(dist) == y).astype(float)
    else:
        hit = (np.abs(2 * dist.cdf(y) - 1) <= LEVEL).reshape(len(y), -1).mean(axis=1)
    number = np.unique(groups, return_inverse=True)[1]
    return rounded(np.bincount(number, weights=hit) / np.bincount(number))


def examples(dist: AnyDistribution, parts: Parts, cases: int = 4) -> Examples | None:
    """Return test rows with their 90 % bands: waveforms whole, else rows in predicted order."""
    if dist.is_categorical:
        return None
    y, task = parts.test[1], parts.task
    low, high = dist.interval(LEVEL)
    bands = {"truth": y, "mean": dist.mean, "low": low, "high": high}
    if parts.outputs >= 20:
        chosen = np.linspace(0, len(y) - 1, cases).round().astype(int)
        seconds = np.arange(parts.outputs) / 125  # the sampling rate of the pressure waves
        return Examples(
            rounded(seconds),
            "time (s)",
            f"arterial pressure ({task.unit})",
            [
                ExampleCase(f"test window {row}", **{k: rounded(v[row]) for k, v in bands.items()})
                for row in chosen.tolist()
            ],
        )
    chosen = np.linspace(0, len(y) - 1, min(60, len(y))).round().astype(int)
    columns = {k: np.asarray(v).reshape(len(y), -1)[chosen] for k, v in bands.items()}
    shown = []
    for number, target in enumerate(task.targets):
        order = np.argsort(columns["mean"][:, number], kind="stable")
        own = {key: rounded(values[order, number]) for key, values in columns.items()}
        shown.append(ExampleCase(target, **own))
    label = "test rows, in the order of the predicted mean"
    return Examples(list(range(1, len(chosen) + 1)), label, task.unit, shown)


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return the values to six significant digits; None where not finite."""
    return [
        None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
        for value in values
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _categorical(dist: AnyDistribution) -> Categorical:
    """Return class probabilities; those of a mixture are the means of its members'."""
    matched = dist.moment_matched() if isinstance(dist, Mixture) else dist
    assert isinstance(matched, Categorical)
    return matched


def _modes(dist: AnyDistribution) -> NDArray[np.intp]:
    return np.asarray(_categorical(dist).mode)


# --------------------------------------------------------------------------------------------------
# Contents of cells: trainings of a family or an alpha, and costs
# --------------------------------------------------------------------------------------------------

Faults = Mapping[str, Mapping[str, float | None]]
"""Figures by fault, with those of healthy rows among them."""


@dataclass(frozen=True, kw_only=True)
class MethodTraining(Record):
    """One method of a family that was trained once, scored on the test rows."""

    about: str
    fit_seconds: float
    chosen: Mapping[str, object] | None
    figures: Mapping[str, float | None]
    calibration: CalibrationCurve | None
    risk_coverage: RiskCurve | None
    group_coverage: Values | None
    jackknife: Mapping[str, Values]  # leave-one-out values of figures
    passes: int | None
    faults: Faults | None = field(default=None, metadata=LEFT_OUT)
    warnings: Sequence[str]
    examples: Examples | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class FamilyTraining(Record):
    """The methods of a family that was trained once, by name."""

    methods: Mapping[str, MethodTraining]

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {name: to_plain(method) for name, method in self.methods.items()}

    @classmethod
    def from_json(cls, content: object) -> FamilyTraining:
        """Read what `to_json` gave."""
        found = mapping(content, cls.__name__)
        return cls({name: MethodTraining.from_json(own) for name, own in found.items()})


@dataclass(frozen=True)
class AlphaTraining(Record):
    """One training of the paper's model with a given alpha."""

    figures: Mapping[str, float | None]
    warnings: Sequence[str]
    jackknife: Mapping[str, Values]


@dataclass(frozen=True)
class EnergySource(Record):
    """The device that energy is of, whether it is estimated or measured, and how."""

    profile: str
    energy: str
    how: str


@dataclass(frozen=True, kw_only=True)
class PredictionCost(Record):
    """The cost of one prediction."""

    microseconds: float
    microseconds_batched: float | None = None  # with the passes as one batch
    multiply_adds: int
    bytes: int
    millijoules: float
    energy: str  # "estimated" or "measured"


@dataclass(frozen=True)
class Costs(Record):
    """The cost of one prediction by each method."""

    device: EnergySource
    methods: Mapping[str, PredictionCost]


# --------------------------------------------------------------------------------------------------
# Results of a study on one task
# --------------------------------------------------------------------------------------------------

Figures = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class MethodResults(Record):
    """One method over all its trainings: means, and errors that hold rows and trainings both."""

    about: str
    fit_seconds: float | None
    chosen: Mapping[str, object] | None  # a list where the trainings chose differently
    figures: Figures
    calibration: CalibrationCurve | None
    risk_coverage: RiskCurve | None
    group_coverage: Values | None
    jackknife: Mapping[str, Values] = field(default_factory=dict)
    passes: int | None
    faults: Faults | None = field(default=None, metadata=LEFT_OUT)
    warnings: Sequence[str]
    seeds: int = 1
    by_seed: Mapping[str, Values] = field(default_factory=dict)
    cost: PredictionCost | None


@dataclass(frozen=True)
class AlphaPoint(Record):
    """One alpha of the study; in JSON its figures stand beside the rest."""

    alpha: float
    figures: Figures
    warnings: Sequence[str] = field(default_factory=list)
    jackknife: Mapping[str, Values] = field(default_factory=dict)
    seeds: int = 1
    by_seed: Mapping[str, Values] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {
            "alpha": self.alpha,
            **self.figures,
            "warnings": list(self.warnings),
            "jackknife": to_plain(self.jackknife),
            "seeds": self.seeds,
            "by_seed": to_plain(self.by_seed),
        }

    @classmethod
    def from_json(cls, content: object) -> AlphaPoint:
        """Read what `to_json` gave."""
        figures = dict(mapping(content, cls.__name__))
        own: dict[str, object] = {
            name: figures.pop(name)
            for name in ("alpha", "warnings", "jackknife", "seeds", "by_seed")
            if name in figures
        }
        return super().from_json({**own, "figures": figures})


@dataclass(frozen=True)
class TaskResults(TaskFacts):
    """A task with what was found on it."""

    methods: Mapping[str, MethodResults]
    alpha_study: Sequence[AlphaPoint]
    examples: Examples | None

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return self.kind == "classification"


# --------------------------------------------------------------------------------------------------
# Averages over trainings, with errors from test rows and trainings
#
# With S trainings judged on the same test rows, which fall into B blocks (`jackknife`),
#
#     value = mean_s v_s,    se^2 = se_rows^2 + s^2 / S,    s^2 = sum_s (v_s - value)^2 / (S - 1),
#
# se_rows from leaving one block at a time out of the mean over trainings. What a training does well
# on these very rows is in both terms, so the error is a little too large rather than too small.
# With one training s is not known, and the error is that of the rows alone.
#
# A few trainings say little of s, so an interval takes the quantile of Student's t with the degrees
# of freedom of Welch and Satterthwaite,
#
#     nu = se^4 / (se_rows^4 / (B - 1) + (s^2 / S)^2 / (S - 1)).
#
# The difference of two methods is treated alike, with the differences in place of the values: what
# both have in common (rows, and the training where they share a model) drops out.
# --------------------------------------------------------------------------------------------------


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
