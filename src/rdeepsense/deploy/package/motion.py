"""How the example reads a motion sensor: which of its functions fill which channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.text import remark
from rdeepsense.windowing.recipe import Recipe

AXES = 3
ASSUMED_RATE = 50.0  # samples a second, where the model does not say


@dataclass(frozen=True)
class Function:
    """A function of Arduino's IMU libraries: what it tells, and what a log usually holds."""

    begins: tuple[str, ...]  # the sensor's name in the recipe
    available: str
    read: str
    constant: str
    factor: str
    same: tuple[str, ...]  # units that it tells
    about: str


FUNCTIONS = (
    Function(
        ("acc", "linear"),
        "accelerationAvailable",
        "readAcceleration",
        "G",
        "9.80665f",
        ("g", "G", "gn"),
        "the sensor tells g, the model reads m/s2; 1 for g",
    ),
    Function(
        ("gyr", "rot", "ang"),
        "gyroscopeAvailable",
        "readGyroscope",
        "DEGREE",
        "0.0174532925f",
        ("deg/s", "°/s", "dps"),
        "it tells degrees a second, the model reads radians; 1 for degrees",
    ),
)


def units(model: CModel, recipe: Recipe | None) -> str:
    """Factors from the sensor's units to the model's."""
    lines = []
    for first, function in _sensors(model, recipe):
        unit = "" if model.feature_units is None else model.feature_units[first]
        factor = "1.0f" if unit in function.same else function.factor
        lines.append(f"static const float {function.constant} = {factor}; // {function.about}\n")
    return "".join(dict.fromkeys(lines)) + ("\n" if lines else "")


def reading(model: CModel, recipe: Recipe | None) -> str:
    """The body of `read_motion`: a call for each sensor that is known, NAN for other channels."""
    found = list(_sensors(model, recipe))
    lines = []
    if found:
        waits = " || ".join(f"!IMU.{function.available}()" for _, function in found)
        lines += ["float x, y, z;", f"if ({waits}) {{", "    return false;", "}"]
    for first, function in found:
        lines.append(f"IMU.{function.read}(x, y, z);")
        for k, axis in enumerate("xyz"):
            lines.append(f"sample[{first + k}] = {function.constant} * {axis};")
    known = {first + k for first, _ in found for k in range(AXES)}
    for k in range(model.channels):
        if k not in known:
            name = f"channel {k}" if model.features is None else remark(model.features[k])
            lines.append(f"sample[{k}] = NAN; // {name}: your own sensor")
    return "".join(f"    {line}\n" for line in lines)


def pace(model: CModel, recipe: Recipe | None) -> str:
    """The time between samples and the samples between decisions."""
    rate = ASSUMED_RATE if recipe is None or recipe.rate is None else recipe.rate
    said = f"{rate:g} samples a second" + (
        ": make it the rate of the training windows" if recipe is None else ""
    )
    hop = model.window if recipe is None else min(recipe.step, model.window)
    return f"#define PERIOD {round(1e6 / rate)}u // microseconds; {said}\n#define HOP {hop}\n"


def _sensors(model: CModel, recipe: Recipe | None) -> Iterator[tuple[int, Function]]:
    """The first channel of each sensor that the IMU has; without a recipe, by their number."""
    if recipe is None:
        for k in range(min(model.channels // AXES, len(FUNCTIONS))):
            if model.channels % AXES == 0:
                yield k * AXES, FUNCTIONS[k]
        return
    first, left = 0, list(FUNCTIONS)
    for sensor, columns in recipe.sensors.items():
        for function in list(left):
            if len(columns) == AXES and sensor.lower().startswith(function.begins):
                left.remove(function)
                yield first, function
        first += len(columns)
