"""Meters against a made-up /sys: which one is taken, what it reads, a counter that wraps."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rdeepsense.deploy.profile import measure
from rdeepsense.deploy.profile.measure import PowerSensor, Rapl, find


def tree(root: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        path = root / "class" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


RAPL = {
    "powercap/intel-rapl:0/name": "package-0",
    "powercap/intel-rapl:0/energy_uj": 900,
    "powercap/intel-rapl:0/max_energy_range_uj": 1_000,
    "powercap/intel-rapl:1/name": "package-1",
    "powercap/intel-rapl:1/energy_uj": 50,
    "powercap/intel-rapl:1/max_energy_range_uj": 1_000,
    "powercap/intel-rapl:0:0/name": "core",
    "powercap/intel-rapl:0:0/energy_uj": 7,
    "powercap/intel-rapl:0:0/max_energy_range_uj": 1_000,
    "powercap/intel-rapl:2/name": "psys",
    "powercap/intel-rapl:2/energy_uj": 7,
    "powercap/intel-rapl:2/max_energy_range_uj": 1_000,
}
INA = {"hwmon/hwmon0/name": "coretemp", "hwmon/hwmon3/name": "ina219",
       "hwmon/hwmon3/power1_input": 2_500_000}  # fmt: skip
BATTERY = {"power_supply/AC/type": "Mains", "power_supply/BAT0/type": "Battery",
           "power_supply/BAT0/status": "Discharging"}  # fmt: skip


def test_no_meter(tmp_path: Path) -> None:
    assert find(tmp_path) is None


def test_rapl_adds_packages_and_wraps_around(tmp_path: Path) -> None:
    tree(tmp_path, RAPL)
    meter = find(tmp_path)
    assert isinstance(meter, Rapl)
    assert [zone.name for zone in meter.zones] == ["intel-rapl:0", "intel-rapl:1"]

    def work() -> None:  # 900 -> 1000 = 0 -> 250, and 50 -> 80
        tree(tmp_path, {"powercap/intel-rapl:0/energy_uj": 250,
                        "powercap/intel-rapl:1/energy_uj": 80})  # fmt: skip

    assert meter.joules(work) == pytest.approx((350 + 30) / 1e6)


def test_rapl_that_cannot_be_read_gives_way(tmp_path: Path) -> None:
    tree(tmp_path, RAPL | INA)
    for zone in (tmp_path / "class/powercap").iterdir():
        (zone / "energy_uj").write_text("")  # as good as forbidden, also for root
    meter = find(tmp_path)
    assert isinstance(meter, PowerSensor)
    assert meter.watts() == pytest.approx(2.5)
    assert "ina219" in meter.name


def test_rails_of_voltage_and_current_are_added(tmp_path: Path) -> None:
    tree(tmp_path, {"hwmon/hwmon1/name": "ina3221", "hwmon/hwmon1/in1_input": 5_000,
                    "hwmon/hwmon1/curr1_input": 200, "hwmon/hwmon1/in2_input": 12_000,
                    "hwmon/hwmon1/curr2_input": 100, "hwmon/hwmon1/in3_input": 3_300})  # fmt: skip
    meter = find(tmp_path)
    assert isinstance(meter, PowerSensor)
    assert meter.watts() == pytest.approx(1.0 + 1.2)


def test_battery(tmp_path: Path) -> None:
    gauge = {"power_supply/BAT0/voltage_now": 4_000_000, "power_supply/BAT0/current_now": -500_000}
    tree(tmp_path, BATTERY | gauge)
    meter = find(tmp_path)
    assert isinstance(meter, PowerSensor)
    assert meter.watts() == pytest.approx(2.0)
    tree(tmp_path, {"power_supply/BAT0/power_now": 3_000_000})
    meter = find(tmp_path)
    assert isinstance(meter, PowerSensor)
    assert meter.watts() == pytest.approx(3.0)
    tree(tmp_path, {"power_supply/BAT0/status": "Charging"})
    assert find(tmp_path) is None


def test_power_times_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, INA)
    meter = find(tmp_path)
    assert isinstance(meter, PowerSensor)
    clock = itertools.count(10.0, 4.0)
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    assert meter.joules(lambda: None) == pytest.approx(2.5 * 4.0)

    def failing() -> None:
        raise RuntimeError("work")

    with pytest.raises(RuntimeError, match="work"):
        meter.joules(failing)
