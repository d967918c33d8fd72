"""The work of a study's cells: training, scoring, sensor faults, cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense import metrics
from rdeepsense.calibration.reject import epistemic_score, predicted_score
from rdeepsense.comparison.methods import FAMILIES, Method, parse
from rdeepsense.comparison.trial import build, chosen_by, watched
from rdeepsense.deploy.profile import measure
from rdeepsense.deploy.profile.measure import DEFAULT
from rdeepsense.distributions import AnyDistribution, Mixture
from rdeepsense.estimators import GPClassifier, GPRegressor
from rdeepsense.estimators.loading import Estimator
from rdeepsense.paper.scores import (
    AlphaTraining,
    Costs,
    EnergySource,
    FamilyTraining,
    Faults,
    MethodTraining,
    PredictionCost,
    examples,
    score,
)
from rdeepsense.paper.study import Parts, Study
from rdeepsense.paper.tasks.faults import damaged
from rdeepsense.paper.tasks.task import kl_from_truth
from rdeepsense.uncertainty.novelty import MOST_ROWS

# --------------------------------------------------------------------------------------------------
# Predictions of a fitted method under sensor faults
#
# Faults are put into test rows (`tasks.faults`). A row is flagged where the method's own score is
# above the value that 5 % of the healthy validation rows exceed.
# --------------------------------------------------------------------------------------------------

FALSE_ALARMS = 0.05
TESTED, ALARMED, KNOWN = 150, 300, 1_000  # test, validation and training rows, at most
LEVEL = 0.9
HEALTHY = "healthy"
Rows = NDArray[np.generic]
Predict = Callable[[Rows], AnyDistribution]


class KnowsUnknown(Protocol):
    """A model with a novelty score; `epistemic_score` finds the rest that it needs."""

    def fit_novelty(self, X: ArrayLike, held_out: ArrayLike) -> Self:
        """Learn what inputs are usual."""

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how unlike training rows each row is."""


def reactions(
    parts: Parts, predict: Predict, model: KnowsUnknown | None = None, seed: int = 0
) -> dict[str, dict[str, float | None]]:
    """Return error, coverage, share flagged and AUROC for healthy test rows and for each fault.

    With a `model` that knows its epistemic uncertainty, also what its Laplace score flags and what
    its novelty does.
    """
    X, y = _some(*parts.test, TESTED, seed)
    validation, _ = _some(*parts.validation, ALARMED, seed)
    known, targets = parts.train(KNOWN, seed)
    kinds = {HEALTHY: X} | dict(damaged(parts.task.name, X, known, seed))
    # All in one go: a call costs more than its rows.
    together = np.concatenate([validation, *kinds.values()])
    dist = predict(together)
    spread = np.ones(1) if dist.is_categorical else targets.reshape(len(targets), -1).std(axis=0)
    scores = {"": predicted_score(dist, spread)}
    if model is not None:
        scores["_epistemic"] = epistemic_score(model, together, "laplace", spread)
        rows, _ = parts.train(MOST_ROWS, seed)
        scores["_novelty"] = model.fit_novelty(rows, validation).novelty(together)
    ends = np.cumsum([len(validation), *(len(rows) for rows in kinds.values())])
    found: dict[str, dict[str, float | None]] = {}
    for number, kind in enumerate(kinds):
        here = slice(ends[number], ends[number + 1])
        found[kind] = _answers(dist[here], y)
        for name, novelty in scores.items():
            alarm = np.quantile(novelty[: ends[0]], 1 - FALSE_ALARMS)
            found[kind][f"flagged{name}"] = float(np.mean(novelty[here] > alarm))
            if kind != HEALTHY:
                healthy = novelty[ends[0] : ends[1]]
                found[kind][f"auroc{name}"] = metrics.auroc(healthy, novelty[here])
    return found


def _some(X: Rows, y: Rows, most: int, seed: int) -> tuple[Rows, Rows]:
    """Return at most `most` rows, at random."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:most])
    return X[chosen], y[chosen]


def _answers(dist: AnyDistribution, y: Rows) -> dict[str, float | None]:
    """Return the error rate of classes; else MAE and coverage of the 90 % interval."""
    if dist.is_categorical:
        return {"error": 1 - metrics.accuracy(dist, y)}
    return {"error": metrics.mae(dist, y), "coverage_90": metrics.coverage(dist, y, LEVEL)}


# --------------------------------------------------------------------------------------------------
# The work of a cell: a family, an alpha, or the cost of methods
# --------------------------------------------------------------------------------------------------

ALPHA_FIGURES = ("nll", "mae", "deviation_area", "deviation_area_signed", "mefp")


def fit_family(study: Study, parts: Parts, methods: Sequence[Method], seed: int) -> FamilyTraining:
    """Train the model that `methods` share and score each of them; test rows only score."""
    model = _model(study, parts, methods, seed)
    about = methods[0].about
    if methods[0].family == "GP":
        train = parts.train(study.preset.gp_rows, seed)
        about = f"Gaussian process on {len(train[0]):,} of the training rows, no calibration"
    else:
        train = parts.train()
    scored: dict[str, MethodTraining] = {}
    most = max(method.samples or 0 for method in methods)
    with watched() as warned:
        begin = time.perf_counter()
        model.fit(*train, validation=parts.validation)
        seconds = time.perf_counter() - begin
    for method in methods:
        faults = None
        with watched() as warned_too:
            dist = _predict(model, method, parts.test[0])
            scores = score(dist, parts)
            if method.samples in (None, most):
                faults = _reactions(model, method, parts, seed)
        one_pass = method.samples is None and method.family.startswith("RDeepSense")
        scored[method.name] = MethodTraining(
            about=about,
            fit_seconds=seconds,
            chosen=chosen_by(model),
            figures={**scores.figures, **_kl(dist, study, parts)},
            calibration=scores.calibration,
            risk_coverage=scores.risk_coverage,
            group_coverage=scores.group_coverage,
            jackknife=scores.jackknife,
            passes=method.passes,
            faults=faults,
            warnings=warned + warned_too,
            examples=examples(dist, parts) if one_pass else None,
        )
    return FamilyTraining(scored)


def fit_alpha(study: Study, parts: Parts, alpha: float, seed: int) -> AlphaTraining:
    """Train the paper's model with this alpha (section 4.6) and score it on the test rows."""
    method = parse("RDeepSense-paper")
    model = _model(study, parts, [method], seed)
    model.set_params(alpha=alpha)
    with watched() as warned:
        model.fit(*parts.train(), validation=parts.validation)
        scores = score(_predict(model, method, parts.test[0]), parts)
    figures, dropped = scores.figures, scores.jackknife
    return AlphaTraining(
        {k: v for k, v in figures.items() if k.removesuffix("_se") in ALPHA_FIGURES},
        warned,
        {k: v for k, v in dropped.items() if k in ALPHA_FIGURES},
    )


def measure_cost(study: Study, parts: Parts, methods: Sequence[Method]) -> Costs:
    """Measure operations, time and energy of one prediction by each network method."""
    shape = (len(parts.task.features), study.preset.hidden, parts.outputs)
    plans = {
        method.name: measure.PassPlan.of(
            FAMILIES[method.family].estimator, *shape, bool(parts.task.classes), method.passes
        )
        for method in methods
        if method.passes is not None
    }
    meter = measure.find()
    with measure.one_thread():
        calls = {name: measure.prediction(plan) for name, plan in plans.items()}
        at_once = {
            f"{name}, batched": measure.prediction(plan, batched=True)
            for name, plan in plans.items()
            if plan.passes > 1 and not plan.ensemble
        }
        times = measure.microseconds(calls | at_once, study.preset.rounds)
        used = None if meter is None else measure.millijoules(calls, meter)
    if meter is None or used is None:
        used = {name: DEFAULT.millijoules(plan.multiply_adds) for name, plan in plans.items()}
        device = EnergySource(
            DEFAULT.name,
            "estimated",
            f"{DEFAULT.multiply_adds_per_second / 1e6:,.0f} million multiply-adds a second "
            f"({DEFAULT.speed_from}) and {DEFAULT.watts:g} W ({DEFAULT.power_from}).",
        )
    else:
        device = EnergySource("this machine", "measured", meter.name)
    return Costs(
        device,
        {
            name: PredictionCost(
                microseconds=times[name],
                microseconds_batched=times.get(f"{name}, batched"),
                multiply_adds=plan.multiply_adds,
                bytes=plan.bytes,
                millijoules=used[name],
                energy=device.energy,
            )
            for name, plan in plans.items()
        },
    )


def _model(study: Study, parts: Parts, methods: Sequence[Method], seed: int) -> Estimator:
    """Return the unfitted estimator at the preset's size."""
    preset, epochs = study.preset, None
    if preset.steps is not None:
        batches = max(1, len(parts.split.train) // (preset.batch_size or 1))
        epochs = max(1, math.ceil(preset.steps / batches))
    model = build(methods, parts.task.kind, preset.hidden, seed, epochs)
    if isinstance(model, GPRegressor | GPClassifier):
        model.set_params(calibrate=False, steps=preset.gp_steps)
    else:
        model.set_params(batch_size=preset.batch_size)
    return model


def _predict(model: Estimator, method: Method, X: NDArray[np.generic]) -> AnyDistribution:
    """Predict some rows; an ensemble as the paper has it is moment-matched."""
    dist: AnyDistribution = (
        model.predict_dist(X, method.samples) if method.samples else model.predict_dist(X)
    )
    if method.family == "SSP-paper" and isinstance(dist, Mixture):
        return dist.moment_matched()
    return dist


def _reactions(model: Estimator, method: Method, parts: Parts, seed: int) -> Faults:
    """Return what the method says when a sensor fails; a single pass has three scores."""
    one_pass = method.samples is None and hasattr(model, "epistemic_std")
    return reactions(parts, lambda X: _predict(model, method, X), model if one_pass else None, seed)


def _kl(dist: AnyDistribution, study: Study, parts: Parts) -> dict[str, float | None]:
    """Return KL(truth || prediction) and its error, where the truth is known."""
    if parts.task.truth is None:
        return {}
    truth = parts.task.truth[parts.split.test]
    kl, error = kl_from_truth(truth, dist, study.seed, study.preset.kl_draws)
    return {"kl": kl, "kl_se": error} if math.isfinite(kl) else {"kl": None, "kl_se": None}
