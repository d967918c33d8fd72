"""Energy meters that Linux offers under /sys; `find` gives the best one there is.

A counter (RAPL) is read before and after. A power sensor (INA chips, a battery that is being
emptied) is sampled while the work runs, and its mean multiplied by the time. Both see everything
that runs on the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SYSFS = Path("/sys")
INTERVAL = 0.02  # seconds between two samples of a power sensor


class Meter(Protocol):
    """Something that knows what a piece of work cost."""

    @property
    def name(self) -> str:
        """What is read, in words."""

    def joules(self, work: Callable[[], None]) -> float:
        """Run the work and give the energy used meanwhile."""


@dataclass(frozen=True)
class Rapl:
    """The energy counters of the processor packages; each starts again from 0 at its range."""

    zones: tuple[Path, ...]
    name: str = "RAPL counters of the processor packages (Linux powercap)"

    def joules(self, work: Callable[[], None]) -> float:
        before = [_number(zone / "energy_uj") for zone in self.zones]
        work()
        after = [_number(zone / "energy_uj") for zone in self.zones]
        ranges = [_number(zone / "max_energy_range_uj") for zone in self.zones]
        used = zip(before, after, ranges, strict=True)
        return sum(a - b if a >= b else a - b + full for b, a, full in used) / 1e6


@dataclass(frozen=True)
class PowerSensor:
    """Sensors whose readings multiply to watts; several rails are added."""

    rails: tuple[tuple[Path, ...], ...]
    scale: float  # of a rail's product, to watts
    name: str

    def watts(self) -> float:
        """The power at this moment."""
        total = 0.0
        for rail in self.rails:
            product = self.scale
            for path in rail:
                product *= abs(_number(path))  # a battery's current may be negative
            total += product
        return total

    def joules(self, work: Callable[[], None]) -> float:
        readings: list[float] = []
        done = threading.Event()

        def sample() -> None:
            while not done.wait(INTERVAL):
                readings.append(self.watts())

        sampler = threading.Thread(target=sample)
        begin = time.perf_counter()
        sampler.start()
        try:
            work()
            readings.append(self.watts())
        finally:
            seconds = time.perf_counter() - begin
            done.set()
            sampler.join()
        return seconds * sum(readings) / len(readings)


def find(sysfs: Path = SYSFS) -> Meter | None:
    """RAPL, else an INA sensor, else a battery that is being emptied; None where none is readable.

    The counters of RAPL are often readable by root alone, and a battery on the mains tells nothing.
    """
    return _rapl(sysfs) or _ina(sysfs) or _battery(sysfs)


def _rapl(sysfs: Path) -> Rapl | None:
    zones = sorted((sysfs / "class/powercap").glob("intel-rapl:[0-9]*"))
    packages = tuple(
        zone
        for zone in zones
        if _text(zone / "name").startswith("package")
        and _readable(zone / "energy_uj")
        and _readable(zone / "max_energy_range_uj")
    )
    return Rapl(packages) if packages else None


def _ina(sysfs: Path) -> PowerSensor | None:
    for chip in sorted((sysfs / "class/hwmon").glob("hwmon*")):
        kind = _text(chip / "name")
        if not kind.startswith("ina"):
            continue
        power = tuple((p,) for p in sorted(chip.glob("power*_input")) if _readable(p))
        if power:
            return PowerSensor(power, 1e-6, f"power sensor {kind} (hwmon)")
        pairs = tuple(
            (voltage, current)
            for voltage in sorted(chip.glob("in*_input"))
            if _readable(current := chip / voltage.name.replace("in", "curr", 1))
            and _readable(voltage)
        )
        if pairs:  # millivolts times milliamperes
            return PowerSensor(pairs, 1e-6, f"voltage and current sensor {kind} (hwmon)")
    return None


def _battery(sysfs: Path) -> PowerSensor | None:
    for supply in sorted((sysfs / "class/power_supply").glob("*")):
        if _text(supply / "type") != "Battery" or _text(supply / "status") != "Discharging":
            continue
        if _readable(supply / "power_now"):
            return PowerSensor(((supply / "power_now",),), 1e-6, "battery gauge")
        pair = (supply / "voltage_now", supply / "current_now")
        if all(map(_readable, pair)):  # microvolts times microamperes
            return PowerSensor((pair,), 1e-12, "battery gauge")
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> float:
    return float(path.read_text())


def _readable(path: Path) -> bool:
    try:
        _number(path)
    except (OSError, ValueError):
        return False
    return True
