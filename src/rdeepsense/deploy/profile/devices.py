"""Documented devices, to estimate time and energy where none is at hand.

    seconds = multiply-adds / multiply-adds a second,    joules = seconds * watts

A dense layer at batch 1 uses each weight once, so what counts is how fast weights are streamed.
All figures are rounded, whoever has the device should measure: every number from here is an
estimate and labelled so.
"""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.errors import InputError


@dataclass(frozen=True)
class Device:
    """A device and where its numbers come from."""

    name: str
    multiply_adds_per_second: float  # float32, one core, batch 1
    watts: float  # of the whole board or module while it computes
    speed_from: str
    power_from: str

    def microseconds(self, multiply_adds: float) -> float:
        """Estimate the time of that many multiply-adds."""
        return 1e6 * multiply_adds / self.multiply_adds_per_second

    def millijoules(self, multiply_adds: float) -> float:
        """Estimate the energy of that many multiply-adds."""
        return 1e3 * self.watts * multiply_adds / self.multiply_adds_per_second


DEVICES = (
    Device(
        "Intel Edison",
        0.25e9,
        1.0,
        "assumed 1 GB/s of float32 weights from memory to one Atom core at 500 MHz; its SSE unit "
        "could do 1e9 a second",
        "about 1 W with one core busy: 10 to 12 hours from four AA cells of 2,000 mAh are reported",
    ),
    Device(
        "Raspberry Pi 4",
        1.0e9,
        3.0,
        "assumed 4 GB/s of float32 weights from memory to one Cortex-A72 core at 1.5 GHz; its NEON "
        "unit could do 6e9 a second",
        "600 mA at 5 V, the maker's figure for an active bare board",
    ),
    Device(
        "Cortex-M4",
        24e6,
        0.13,
        "168 MHz and 7 cycles for two loads and a fused multiply-add of its FPv4 unit, as if "
        "all weights fitted its flash",
        "about 40 mA at 3.3 V, an STM32F407 that runs from flash with its peripherals off",
    ),
)
DEFAULT = DEVICES[0]  # the paper's hardware (section 4.1)


def device_named(name: str) -> Device:
    """Return the device of that name."""
    for known in DEVICES:
        if known.name.lower() == name.strip().lower():
            return known
    accepted = ", ".join(known.name for known in DEVICES)
    raise InputError(f"device={name!r} is unknown; accepted: {accepted}")
