"""The architectures among which `hidden="auto"` chooses for windows (rows, time, channels).

The plainest network, dense layers on the flattened window, stands beside DeepSense networks of two
or three sizes, larger where windows are many. What DeepSense must be told is guessed: channels in
threes are triaxial sensors, otherwise one sensor has them all; an interval is a divisor of the
window's length, of 8 to 16 samples if there is one, and nearest to 12, by ratio. Sizes are compared
without rotation, and the chosen one is then tried with it: an augmentation does not change which
size is enough.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log

from rdeepsense.networks import Architecture, DeepSense, Flattened, Shape
from rdeepsense.networks.deepsense import AXES
from rdeepsense.windowing.recipe import Recipe

PLAINEST = Flattened((64, 64))
FEW_ROWS, MANY_ROWS = 200, 3_000
SIZES = ((16, 32), (32, 64), (64, 128))  # filters of a convolution, states of a GRU layer
SHORTEST_WINDOW = 8
INTERVAL = 12  # samples, where the rate is not known
QUARTER = 0.25  # of a second, where it is
SHORTEST, LONGEST = 4, 64  # samples of an interval that are not absurd
USUAL_ROTATION = 0.15
ROTATION_STD = 0.3  # radians
ROTATIONS = (1.0, 0.5, 0.15, 0.0)  # those to choose among by groups, the most regular first


def window_ladder(
    rows: int, shape: Shape, recipe: Recipe | None = None
) -> tuple[Architecture, ...]:
    """Return the architectures for so many windows, none of them rotated; one alone where few."""
    interval = interval_for(shape[0], None if recipe is None else recipe.rate)
    if rows < FEW_ROWS or interval is None:
        return (PLAINEST,)
    sizes = SIZES if rows >= MANY_ROWS else SIZES[:-1]
    networks = (
        DeepSense(
            sensors_of(shape[1], recipe),
            interval,
            filters,
            hidden=states,
            rounding=rounding_of(recipe),
        )
        for filters, states in sizes
    )
    return (PLAINEST, *networks)


def rotated(architecture: Architecture) -> tuple[Architecture, ...]:
    """Return the same network for windows that are rotated in training, where one can be."""
    if not isinstance(architecture, DeepSense) or AXES not in architecture.sensors:
        return ()
    return (replace(architecture, rotation_std=ROTATION_STD),)


def turned(architecture: Architecture) -> tuple[Architecture, ...]:
    """Return the same network for every rotation, the largest first; one that has none, alone."""
    if not isinstance(architecture, DeepSense) or AXES not in architecture.sensors:
        return (architecture,)
    return tuple(replace(architecture, rotation_std=std) for std in ROTATIONS)


def is_dear(architecture: Architecture) -> bool:
    """Tell whether a step takes ten times as long as dense layers', so that folds are too dear."""
    return isinstance(architecture, DeepSense)


def usual(shape: Shape, recipe: Recipe | None = None) -> Architecture:
    """Return the network that is good for most windows, where nothing is to be compared."""
    interval = interval_for(shape[0], None if recipe is None else recipe.rate)
    if interval is None:
        return PLAINEST
    sensors = sensors_of(shape[1], recipe)
    turned = USUAL_ROTATION if AXES in sensors else 0.0
    return DeepSense(sensors, interval, rotation_std=turned, rounding=rounding_of(recipe))


def sensors_of(channels: int, recipe: Recipe | None = None) -> tuple[int, ...]:
    """Return the channels of each sensor: those of the recipe, or a guess."""
    if recipe is not None:
        return tuple(len(own) for own in recipe.sensors.values())
    return (AXES,) * (channels // AXES) if channels % AXES == 0 else (channels,)


def rounding_of(recipe: Recipe | None) -> tuple[float, ...]:
    """Return the step that each sensor of a recipe rounds to; empty without a recipe."""
    if recipe is None:
        return ()
    return tuple(recipe.rounding.get(name, 0.0) for name in recipe.sensors)


def fitting_length(length: int, rate: float | None) -> int:
    """Return the most samples, up to a window's, that have an interval of about 0.25 s."""
    if length < SHORTEST_WINDOW:
        return length
    shorter = (n for n in range(length, SHORTEST_WINDOW - 1, -1) if _usual(n, rate))
    return next(shorter, length)


def interval_for(length: int, rate: float | None = None) -> int | None:
    """Return the samples of an interval; None where the length of a window has no fit divisor.

    With a rate it is near a quarter of a second.
    """
    wanted = INTERVAL if rate is None else QUARTER * rate
    divisors = [n for n in range(SHORTEST, max(LONGEST, ceil(2 * wanted)) + 1) if length % n == 0]
    if length < SHORTEST_WINDOW or not divisors:
        return None
    near = _usual(length, rate)
    return min(near or divisors, key=lambda n: abs(log(n / wanted)))


def _usual(length: int, rate: float | None) -> list[int]:
    """Return the divisors within a third of what an interval should be."""
    wanted = INTERVAL if rate is None else QUARTER * rate
    least, most = max(SHORTEST, ceil(2 / 3 * wanted)), int(4 / 3 * wanted)
    return [n for n in range(least, most + 1) if length % n == 0]
