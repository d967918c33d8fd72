"""Methods as a comparison takes them: names, objects, pairs and mappings."""

from __future__ import annotations

import sys

import pytest

from rdeepsense.comparison.methods import METHODS, methods_of
from rdeepsense.errors import InputError, MissingExtraError


class Forest:
    """An object of one's own."""


def test_names_objects_and_pairs() -> None:
    forest = Forest()
    methods = methods_of(["RDeepSense-MC3", forest, ("other", Forest()), "ssp-2", "SSP-2"])
    assert [method.name for method in methods] == ["RDeepSense-MC3", "Forest", "other", "SSP-2"]
    assert [method.passes for method in methods] == [3, None, None, 2]
    assert methods[1].model is forest
    assert "Forest" in methods[1].about
    assert len({method.family for method in methods}) == 4
    assert [method.name for method in methods_of(METHODS)] == list(METHODS)
    assert [method.name for method in methods_of("SSP-1, SSP-2")] == ["SSP-1", "SSP-2"]


def test_mappings() -> None:
    methods = methods_of({"RDeepSense": "rdeepsense", "mine": Forest(), "yours": Forest()})
    assert [method.name for method in methods] == ["RDeepSense", "mine", "yours"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "methods is empty"),
        ([Forest(), Forest()], "two methods are called 'Forest'; name them"),
        ({"SSP-3": Forest()}, "SSP-3 is the name of a method here"),
        ({" ": Forest()}, "a name is empty"),
        ({"best": "SSP-3"}, "SSP-3 keeps its name"),
        (Forest(), "methods is a Forest; give a list"),
        (["Forest"], "'Forest' is unknown; accepted: .*NGBoost"),
    ],
)
def test_refusals(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        methods_of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["CatBoost", "NGBoost"])
def test_peers_need_their_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name.lower(), None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rdeepsense\[peers\]'"):
        methods_of(["RDeepSense", name.upper()])
