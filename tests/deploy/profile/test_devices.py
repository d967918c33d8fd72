"""Devices: the arithmetic, and names that are unknown."""

from __future__ import annotations

import pytest

from rdeepsense.deploy.profile.measure import DEFAULT, DEVICES, Device, device_named
from rdeepsense.errors import InputError


def test_time_and_energy_follow_from_the_multiply_adds() -> None:
    device = Device("test", 2e6, 0.5, "", "")
    assert device.microseconds(3_000) == pytest.approx(1_500)
    assert device.millijoules(3_000) == pytest.approx(0.75)  # 1.5 ms at half a watt


def test_every_device_says_where_it_is_from() -> None:
    assert [p.name for p in DEVICES] == ["Intel Edison", "Raspberry Pi 4", "Cortex-M4"]
    assert DEFAULT is device_named("intel edison")
    for known in DEVICES:
        assert known.speed_from
        assert known.power_from
    # A watt at a quarter of a billion a second: 4 nJ for each multiply-add.
    assert DEFAULT.millijoules(1e6) == pytest.approx(4.0)


def test_unknown_devices_name_the_known_ones() -> None:
    with pytest.raises(InputError, match="'Edison 2' is unknown; accepted: Intel Edison, Rasp"):
        device_named("Edison 2")
