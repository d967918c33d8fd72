"""Which sensor of a phone a channel is."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from rdeepsense.deploy.web.export import GRAVITY, Channel, phone_channels
from rdeepsense.windowing.recipe import Recipe


def channels(
    sensors: dict[str, tuple[str, ...]], units: tuple[str, ...] | None = None, size: object = None
) -> list[Channel]:
    recipe = Recipe("t", sensors, 2.0, 1.0)
    return phone_channels(recipe, units, None if size is None else np.asarray(size))


def test_names_tell_sensor_and_axis() -> None:
    found = channels({"accelerometer": ("a_x", "a_y", "a_z"), "gyroscope": ("gx", "gy", "gz")})
    assert [one.source for one in found] == ["gravity"] * 3 + ["rotation"] * 3
    assert [one.axis for one in found] == [0, 1, 2] * 2
    assert [one.factor for one in found] == [1.0] * 3 + [pi / 180] * 3


def test_units_and_sizes_tell_g_from_metres() -> None:
    three = {"acc": ("acc_z", "acc_y", "acc_x")}
    assert [one.axis for one in channels(three)] == [2, 1, 0]
    for told in (channels(three, ("g", "g", "g")), channels(three, None, [1.0, 0.1, 0.1])):
        assert [one.factor for one in told] == pytest.approx([1 / GRAVITY] * 3)
    assert channels(three, None, [9.7, 1.0, 1.0])[0].factor == 1.0
    assert channels(three, ("m/s2", "", ""), [1.0, 0.1, 0.1])[0].factor == 1.0
    assert channels({"gyr": ("x", "y", "z")}, ("deg/s",) * 3)[0].factor == 1.0


def test_without_gravity_by_place_and_what_no_phone_has() -> None:
    assert channels({"linear acceleration": ("p", "q", "r")})[1] == Channel("acceleration", 1)
    assert channels({"ecg": ("lead x",)}) == [Channel(None)]
    assert channels({"accelerometer": ("size",)}) == [Channel(None)]
