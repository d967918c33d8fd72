"""Which of a phone's motion sensors a channel is, as far as its names and its values tell.

A browser gives acceleration with gravity and without it, in m/s2, and rotation in degrees a second.
A channel that is none of these is not read from the phone: recordings can still be replayed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import pi

from rdeepsense.arrays import Floats
from rdeepsense.windowing.recipe import Recipe

GRAVITY = 9.80665  # m/s2
AXES = "xyz"
KINDS = (
    ("acceleration", re.compile(r"lin|user|body|without|motion", re.I)),
    ("rotation", re.compile(r"gyr|rot|angular|omega", re.I)),
    ("gravity", re.compile(r"acc|grav", re.I)),
)
IN_G = re.compile(r"^\s*\[?g\]?\s*$")
IN_DEGREES = re.compile(r"deg|°", re.I)


@dataclass(frozen=True)
class Channel:
    """A value of a motion event, and what it is multiplied by; no source: not read."""

    source: str | None
    axis: int = 0
    factor: float = 1.0


def phone_channels(
    recipe: Recipe, units: tuple[str, ...] | None, size: Floats | None
) -> list[Channel]:
    """Return the channels of a recipe; `size` is how large the values of each are, typically."""
    found: list[Channel] = []
    for sensor, columns in recipe.sensors.items():
        for place, column in enumerate(columns):
            k = len(found)
            found.append(
                _channel(
                    sensor,
                    column,
                    place if len(columns) == len(AXES) else None,
                    units[k] if units else "",
                    None if size is None else float(size[k]),
                )
            )
    return _same_unit(found, size, units)


def _channel(sensor: str, column: str, place: int | None, unit: str, size: float | None) -> Channel:
    ends = re.search(r"([xyz])[^a-z]*$", column.lower())
    axis = AXES.index(ends[1]) if ends else place
    said = next((name for name, known in KINDS if known.search(sensor)), None)
    said = said or next((name for name, known in KINDS if known.search(column)), None)
    if said is None or axis is None:
        return Channel(None)
    if said == "rotation":
        return Channel(said, axis, 1.0 if IN_DEGREES.search(unit) else pi / 180)
    return Channel(said, axis, 1 / GRAVITY if IN_G.match(unit) else 1.0)


def _same_unit(
    channels: list[Channel], size: Floats | None, units: tuple[str, ...] | None
) -> list[Channel]:
    """Take an acceleration without a unit for one in g where gravity is near 1 and not 10."""
    own = [k for k, one in enumerate(channels) if one.source == "gravity"]
    told = units is not None and any(units[k] for k in own)
    if told or size is None or not own or float((size[own] ** 2).sum()) ** 0.5 > GRAVITY / 3:
        return channels
    return [
        Channel(one.source, one.axis, 1 / GRAVITY) if one.source in ("gravity", "acceleration")
        else one for one in channels
    ]  # fmt: skip
