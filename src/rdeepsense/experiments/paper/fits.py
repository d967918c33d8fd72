"""The work of a cell: a family fitted and judged, one alpha of the study, the cost of methods."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from rdeepsense.deploy.profile import cost, energy
from rdeepsense.deploy.profile.devices import DEFAULT
from rdeepsense.distributions import AnyDistribution
from rdeepsense.experiments.methods import FAMILIES, Method, build, parse
from rdeepsense.experiments.paper.faults import reactions
from rdeepsense.experiments.paper.judge import examples, judge
from rdeepsense.experiments.paper.study import Parts, Study
from rdeepsense.experiments.uci.trial import chosen_by, watched

ALPHA_FIGURES = ("nll", "mae", "deviation_area", "deviation_area_signed", "mefp")


def fit_family(study: Study, parts: Parts, methods: Sequence[Method], seed: int) -> dict[str, Any]:
    """Fit the model that `methods` share and judge each of them; test rows judge only."""
    model = _model(study, parts, methods, seed)
    about = methods[0].about
    if methods[0].family == "GP":
        train = parts.train(study.preset.gp_rows, seed)
        about = f"Gaussian process on {len(train[0]):,} of the training rows, no calibration"
    else:
        train = parts.train()
    judged: dict[str, Any] = {}
    most = max(method.samples or 0 for method in methods)
    with watched() as warned:
        begin = time.perf_counter()
        model.fit(*train, validation=parts.validation)
        seconds = time.perf_counter() - begin
    shared = {"about": about, "fit_seconds": seconds, "chosen": chosen_by(model)}
    for method in methods:
        with watched() as warned_too:
            dist = _predict(model, method, parts.test[0])
            own: dict[str, Any] = shared | judge(dist, parts) | {"passes": method.passes}
            if method.samples in (None, most):
                own["faults"] = _reactions(model, method, parts, seed)
        own["warnings"] = warned + warned_too
        _add_kl(own["figures"], dist, study, parts)
        if method.samples is None and method.family.startswith("RDeepSense"):
            own["examples"] = examples(dist, parts)
        judged[method.name] = own
    return judged


def fit_alpha(study: Study, parts: Parts, alpha: float, seed: int) -> dict[str, Any]:
    """The paper's model with this alpha (section 4.6), judged on the test rows."""
    method = parse("RDeepSense-paper")
    model = _model(study, parts, [method], seed).set_params(alpha=alpha)
    with watched() as warned:
        model.fit(*parts.train(), validation=parts.validation)
        judged = judge(_predict(model, method, parts.test[0]), parts)
    figures = judged["figures"]
    return {
        "figures": {k: v for k, v in figures.items() if k.removesuffix("_se") in ALPHA_FIGURES},
        "warnings": warned,
        "jackknife": {k: v for k, v in judged["jackknife"].items() if k in ALPHA_FIGURES},
    }


def measure_cost(study: Study, parts: Parts, methods: Sequence[Method]) -> dict[str, Any]:
    """Operations, time and energy of one prediction by each network method, side by side."""
    shape = (len(parts.task.features), study.preset.hidden, parts.outputs)
    plans = {
        method.name: cost.Plan.of(
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
        device = {
            "profile": DEFAULT.name,
            "energy": "estimated",
            "how": f"{DEFAULT.multiply_adds_per_second / 1e6:,.0f} million multiply-adds a second "
            f"({DEFAULT.speed_from}) and {DEFAULT.watts:g} W ({DEFAULT.power_from}).",
        }
    else:
        device = {"profile": "this machine", "energy": "measured", "how": meter.name}
    return {
        "device": device,
        "methods": {
            name: {
                "microseconds": times[name],
                "microseconds_batched": times.get(f"{name}, batched"),
                "multiply_adds": plan.multiply_adds,
                "bytes": plan.bytes,
                "millijoules": used[name],
                "energy": device["energy"],
            }
            for name, plan in plans.items()
        },
    }


def _model(study: Study, parts: Parts, methods: Sequence[Method], seed: int) -> Any:
    """The unfitted estimator at the preset's size."""
    preset, epochs = study.preset, None
    if preset.steps is not None:
        batches = max(1, len(parts.split.train) // (preset.batch_size or 1))
        epochs = max(1, math.ceil(preset.steps / batches))
    model = build(methods, parts.task.kind, preset.hidden, seed, epochs)
    if methods[0].family == "GP":
        return model.set_params(calibrate=False, steps=preset.gp_steps)
    return model.set_params(batch_size=preset.batch_size)


def _predict(model: Any, method: Method, X: Any) -> AnyDistribution:
    """The prediction of some rows; an ensemble as the paper has it is moment-matched."""
    dist = model.predict_dist(X, method.samples) if method.samples else model.predict_dist(X)
    if method.family == "SSP-paper" and hasattr(dist, "moment_matched"):
        dist = dist.moment_matched()
    matched: AnyDistribution = dist
    return matched


def _reactions(model: Any, method: Method, parts: Parts, seed: int) -> dict[str, Any]:
    """What the method says when a sensor fails; the single pass of RDeepSense has three scores."""
    one_pass = method.samples is None and hasattr(model, "epistemic_std")
    return reactions(parts, lambda X: _predict(model, method, X), model if one_pass else None, seed)


def _add_kl(figures: dict[str, Any], dist: AnyDistribution, study: Study, parts: Parts) -> None:
    """KL(truth || prediction), where the truth is known."""
    if parts.task.truth is None:
        return
    from rdeepsense.experiments.tasks.simulate.truth import kl_from_truth

    truth: Any = parts.task.truth[parts.split.test]
    kl, error = kl_from_truth(truth, dist, study.seed, study.preset.kl_draws)
    figures |= {"kl": kl, "kl_se": error} if math.isfinite(kl) else {"kl": None, "kl_se": None}
