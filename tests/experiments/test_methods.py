"""Names of methods: what each stands for, what shares a model, what is refused."""

from __future__ import annotations

import sys

import pytest

from rdeepsense import (
    MCDropClassifier,
    MCDropRegressor,
    RDeepSenseClassifier,
    RDeepSenseRegressor,
    SSPRegressor,
)
from rdeepsense.errors import InputError, MissingExtraError
from rdeepsense.experiments.methods import METHODS, build, by_family, parse, parse_all


@pytest.mark.parametrize(
    ("name", "canonical", "family", "samples", "passes"),
    [
        ("RDeepSense", "RDeepSense", "RDeepSense", None, 1),
        ("RDeepSense-MC20", "RDeepSense-MC20", "RDeepSense", 20, 20),
        ("rdeepsense-mc3", "RDeepSense-MC3", "RDeepSense", 3, 3),
        ("RDeepSense-default", "RDeepSense-default", "RDeepSense-default", None, 1),
        ("MCDrop-10", "MCDrop-10", "MCDrop", 10, 10),
        ("MCDrop-20-paper", "MCDrop-20-paper", "MCDrop-paper", 20, 20),
        ("MCDrop-20 (paper)", "MCDrop-20-paper", "MCDrop-paper", 20, 20),
        (" SSP-1 ", "SSP-1", "SSP", 1, 1),
        ("SSP-10-paper", "SSP-10-paper", "SSP-paper", 10, 10),
        ("rdeepsense-PAPER", "RDeepSense-paper", "RDeepSense-paper", None, 1),
        ("RDeepSense-paper-mc5", "RDeepSense-paper-MC5", "RDeepSense-paper", 5, 5),
        ("GP", "GP", "GP", None, None),
    ],
)
def test_names(name: str, canonical: str, family: str, samples: int, passes: int) -> None:
    method = parse(name)
    assert (method.name, method.family) == (canonical, family)
    assert (method.samples, method.passes) == (samples, passes)
    assert method.about


@pytest.mark.parametrize(
    "name", ["", "RDeepSense-MC", "MCDrop", "SSP-", "SSP-5x", "Forest", "GP-2"]
)
def test_unknown_names_list_the_accepted_forms(name: str) -> None:
    with pytest.raises(InputError, match=r"is unknown; accepted: RDeepSense, .*MCDrop-k.*SSP-k"):
        parse(name)


@pytest.mark.parametrize(("name", "least"), [("MCDrop-1", 2), ("SSP-0", 1), ("RDeepSense-MC0", 1)])
def test_too_few_passes(name: str, least: int) -> None:
    with pytest.raises(InputError, match=f"at least {least}"):
        parse(name)


def test_lists() -> None:
    assert [m.name for m in parse_all("SSP-5,SSP-5, MCDrop-2")] == ["SSP-5", "MCDrop-2"]
    assert len(parse_all(METHODS)) == len(METHODS)
    with pytest.raises(InputError, match="methods is empty"):
        parse_all([])


def test_gp_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rdeepsense\[gp\]'"):
        parse_all(["RDeepSense", "GP"])


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


def test_tuned_mcdrop_default_recipe_and_classes() -> None:
    tuned = build([parse("MCDrop-20")], "regression", (8,), 0)
    assert isinstance(tuned, MCDropRegressor)
    assert (tuned.noise, tuned.drop_prob, tuned.samples) == ("tuned", "auto", 20)
    default = build([parse("RDeepSense-default")], "regression", (64, 64), 0)
    assert default.get_params() == RDeepSenseRegressor(random_state=0, verbose=False).get_params()
    classes = build([parse("RDeepSense")], "classification", (8,), 0)
    assert isinstance(classes, RDeepSenseClassifier)
    assert (classes.alpha, classes.drop_prob) == ("auto", "auto")
    assert isinstance(build([parse("MCDrop-5")], "classification", (8,), 0), MCDropClassifier)
    with pytest.raises(InputError, match="task = 'ranking' is unknown"):
        build([parse("GP")], "ranking", (8,), 0)
