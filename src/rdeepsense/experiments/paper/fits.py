"""The work of a cell: a family trained and scored, one alpha of the study, the cost of methods."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.profile import cost, energy
from rdeepsense.deploy.profile.devices import DEFAULT
from rdeepsense.distributions import AnyDistribution, Mixture
from rdeepsense.estimators import GPClassifier, GPRegressor
from rdeepsense.estimators.loading import Estimator
from rdeepsense.experiments.build import build
from rdeepsense.experiments.methods import FAMILIES, Method, parse
from rdeepsense.experiments.paper.faults import reactions
from rdeepsense.experiments.paper.score import examples, score
from rdeepsense.experiments.paper.study import Parts, Study
from rdeepsense.experiments.paper.trainings import (
    AlphaTraining,
    Costs,
    EnergySource,
    FamilyTraining,
    Faults,
    MethodTraining,
    PredictionCost,
)
from rdeepsense.experiments.tasks.simulate.truth import kl_from_truth
from rdeepsense.experiments.uci.trial import chosen_by, watched

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
        method.name: cost.PassPlan.of(
            FAMILIES[method.family].estimator, *shape, bool(parts.task.classes), method.passes
        )
        for method in methods
        if method.passes is not None
    }
    meter = energy.find()
    with cost.one_thread():
        calls = {name: cost.prediction(plan) for name, plan in plans.items()}
        at_once = {
            f"{name}, batched": cost.prediction(plan, batched=True)
            for name, plan in plans.items()
            if plan.passes > 1 and not plan.ensemble
        }
        times = cost.microseconds(calls | at_once, study.preset.rounds)
        used = None if meter is None else cost.millijoules(calls, meter)
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
