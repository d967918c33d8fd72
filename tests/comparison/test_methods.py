"""Names of methods: what each stands for, what shares a model, what is refused."""

from __future__ import annotations

import sys

import pytest

from rdeepsense.comparison.methods import METHODS, parse, parse_all
from rdeepsense.comparison.trial import build
from rdeepsense.errors import InputError, MissingExtraError


@pytest.mark.parametrize(
    ("name", "canonical", "family", "samples", "passes"),
    [
        ("RDeepSense", "RDeepSense", "RDeepSense", None, 1),
        ("RDeepSense-MC20", "RDeepSense-MC20", "RDeepSense", 20, 20),
        ("rdeepsense-mc3", "RDeepSense-MC3", "RDeepSense", 3, 3),
        ("RDeepSense-quick", "RDeepSense-quick", "RDeepSense-quick", None, 1),
        ("MCDrop-10", "MCDrop-10", "MCDrop", 10, 10),
        ("MCDrop-20-paper", "MCDrop-20-paper", "MCDrop-paper", 20, 20),
        ("MCDrop-20 (paper)", "MCDrop-20-paper", "MCDrop-paper", 20, 20),
        (" SSP-1 ", "SSP-1", "SSP", 1, 1),
        ("SSP-10-paper", "SSP-10-paper", "SSP-paper", 10, 10),
        ("rdeepsense-PAPER", "RDeepSense-paper", "RDeepSense-paper", None, 1),
        ("RDeepSense-paper-mc5", "RDeepSense-paper-MC5", "RDeepSense-paper", 5, 5),
        ("GP", "GP", "GP", None, None),
        ("catboost", "CatBoost", "CatBoost", None, None),
        ("NGBoost", "NGBoost", "NGBoost", None, None),
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


def test_open_layers_are_for_methods_that_choose() -> None:
    hidden = {
        name: build([parse(name)], "regression", "auto", 0).hidden
        for name in ("RDeepSense", "SSP-2", "MCDrop-2", "RDeepSense-paper", "SSP-2-paper")
    }
    assert hidden == {
        "RDeepSense": "auto",
        "SSP-2": "auto",
        "MCDrop-2": "auto",
        "RDeepSense-paper": (64, 64),
        "SSP-2-paper": (64, 64),
    }
