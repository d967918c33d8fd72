"""The recipe: checked like any field of a model file, and the same after a round trip."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rdeepsense import InputError, Recipe

GOOD = Recipe("t", {"acc": ("ax", "ay")}, 5.0, 1.0, 50.0, 0.1, ("user",), ("what",))


def test_a_round_trip():
    value = json.loads(json.dumps(GOOD.to_json()))
    assert Recipe.from_json(value) == GOOD
    assert (GOOD.length, GOOD.step, GOOD.channels) == (250, 50, ("ax", "ay"))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("rate", None, "rate = None is garbled"),
        ("rate", 1e9, "rate = 1000000000.0 is garbled"),
        ("window", "5s", "window = '5s' is garbled"),
        ("window", 1e5, "window = 100000 s has 5e"),
        ("window", 0.001, "has 0.05 samples"),
        ("sensors", {}, "sensors = {} is garbled"),
        ("sensors", {"a": []}, "is garbled"),
        ("sensors", {"a": ["x", "x"]}, "column 'x' is named twice"),
        ("by", "user", "by = 'user' is garbled"),
        ("target", "best", "target = 'best' is garbled"),
        ("purity", True, "purity = True is garbled"),
        ("time", 3, "time = 3 is garbled"),
        ("label", ["a", "b"], "several are for numbers"),
    ],
)
def test_what_a_file_may_not_say(field, value, words):
    with pytest.raises(InputError, match=words):
        Recipe.from_json({**GOOD.to_json(), field: value})


def test_a_field_that_is_missing():
    value = GOOD.to_json()
    del value["hop"]
    with pytest.raises(InputError, match="lacks the field hop"):
        Recipe.from_json(value)


def test_steps_that_sensors_round_to_are_kept_and_reach_the_network() -> None:
    from rdeepsense.fitting.ladder import usual, window_ladder

    sensors = {"accelerometer": ("ax", "ay", "az"), "gyroscope": ("gx", "gy", "gz")}
    recipe = Recipe("t", sensors, 2.0, 1.0, 50.0, 0.1, rounding={"accelerometer": 0.1})
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert "rounding" not in replace(recipe, rounding={}).to_json()
    for network in (usual((100, 6), recipe), *window_ladder(500, (100, 6), recipe)[1:]):
        assert network.rounding == (0.1, 0.0)
    with pytest.raises(InputError, match="rounding names the sensor 'magnet'; there are"):
        replace(recipe, rounding={"magnet": 0.1})
    for bad in ({"accelerometer": -1}, {"accelerometer": "0.1"}, {"accelerometer": True}):
        with pytest.raises(InputError, match="rounding = .* is garbled"):
            replace(recipe, rounding=bad)
