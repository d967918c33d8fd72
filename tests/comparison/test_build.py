"""The estimator of a family: which class, and what is fixed or left open in it."""

from __future__ import annotations

import pytest

from rdeepsense import (
    MCDropClassifier,
    MCDropRegressor,
    RDeepSenseClassifier,
    RDeepSenseRegressor,
    SSPRegressor,
)
from rdeepsense.comparison.methods import by_family, parse, parse_all
from rdeepsense.comparison.trial import build
from rdeepsense.errors import InputError


def test_families_share_one_model() -> None:
    methods = parse_all(["SSP-3", "RDeepSense", "SSP-10", "RDeepSense-MC20", "MCDrop-2-paper"])
    families = by_family(methods)
    assert list(families) == ["SSP", "RDeepSense", "MCDrop-paper"]
    ensemble = build(families["SSP"], "regression", (8,), 3)
    assert isinstance(ensemble, SSPRegressor)
    assert (ensemble.members, ensemble.likelihood, ensemble.hidden) == (10, "auto", (8,))
    model = build(families["RDeepSense"], "regression", (8,), 3, epochs=2)
    assert isinstance(model, RDeepSenseRegressor)
    assert (model.alpha, model.drop_prob, model.likelihood) == ("auto", "auto", "auto")
    assert (model.random_state, model.epochs, model.verbose) == (3, 2, False)
    paper = build(families["MCDrop-paper"], "regression", (8,), 3)
    assert (paper.noise, paper.drop_prob, paper.samples) == ("none", 0.05, 2)


def test_methods_as_in_the_paper() -> None:
    family = parse_all(["RDeepSense-paper", "RDeepSense-paper-MC20"])
    assert list(by_family(family)) == ["RDeepSense-paper"]
    model = build(family, "regression", (8,), 0)
    assert isinstance(model, RDeepSenseRegressor)
    assert (model.alpha, model.drop_prob, model.likelihood) == ("paper", 0.1, "gaussian")
    assert model.calibrate is False
    ensemble = build(parse_all(["SSP-1-paper", "SSP-3-paper"]), "regression", (8,), 0)
    assert isinstance(ensemble, SSPRegressor)
    assert (ensemble.members, ensemble.likelihood) == (3, "gaussian")
    assert ensemble.calibrate is False


def test_tuned_mcdrop_quick_recipe_and_classes() -> None:
    tuned = build([parse("MCDrop-20")], "regression", (8,), 0)
    assert isinstance(tuned, MCDropRegressor)
    assert (tuned.noise, tuned.drop_prob, tuned.samples) == ("tuned", "auto", 20)
    quick = build([parse("RDeepSense-quick")], "regression", (64, 64), 0)
    same = RDeepSenseRegressor(hidden=(64, 64), random_state=0, verbose=False, effort="quick")
    assert quick.get_params() == same.get_params()
    classes = build([parse("RDeepSense")], "classification", (8,), 0)
    assert isinstance(classes, RDeepSenseClassifier)
    assert (classes.alpha, classes.drop_prob) == ("auto", "auto")
    assert isinstance(build([parse("MCDrop-5")], "classification", (8,), 0), MCDropClassifier)
    with pytest.raises(InputError, match="task = 'ranking' is unknown"):
        build([parse("GP")], "ranking", (8,), 0)
