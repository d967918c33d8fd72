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
from math import log

from rdeepsense.networks import Architecture, DeepSense, Flattened, Shape
from rdeepsense.networks.rotation import AXES

PLAINEST = Flattened((64, 64))
FEW_ROWS, MANY_ROWS = 200, 3_000
SIZES = ((16, 32), (32, 64), (64, 128))  # filters of a convolution, states of a GRU layer
SHORTEST_WINDOW = 8
INTERVAL = 12
USUAL, INTERVALS = range(8, 17), range(4, 65)  # those to begin with, and all that are not absurd
ROTATION_STD = 0.3  # radians


def window_ladder(rows: int, shape: Shape) -> tuple[Architecture, ...]:
    """Return the architectures for so many windows, none of them rotated; one alone where few."""
    interval = interval_for(shape[0])
    if rows < FEW_ROWS or interval is None:
        return (PLAINEST,)
    sizes = SIZES if rows >= MANY_ROWS else SIZES[:-1]
    networks = (
        DeepSense(sensors_of(shape[1]), interval, filters, hidden=states)
        for filters, states in sizes
    )
    return (PLAINEST, *networks)


def rotated(architecture: Architecture) -> tuple[Architecture, ...]:
    """Return the same network for windows that are rotated in training, where one can be."""
    if not isinstance(architecture, DeepSense) or AXES not in architecture.sensors:
        return ()
    return (replace(architecture, rotation_std=ROTATION_STD),)


def is_dear(architecture: Architecture) -> bool:
    """Tell whether a step takes ten times as long as dense layers', so that folds are too dear."""
    return isinstance(architecture, DeepSense)


def sensors_of(channels: int) -> tuple[int, ...]:
    """Guess the channels of each sensor."""
    return (AXES,) * (channels // AXES) if channels % AXES == 0 else (channels,)


def interval_for(length: int) -> int | None:
    """Return the samples of an interval; None where the length of a window has no fit divisor."""
    divisors = [n for n in INTERVALS if length % n == 0]
    if length < SHORTEST_WINDOW or not divisors:
        return None
    return min(divisors, key=lambda n: (n not in USUAL, abs(log(n / INTERVAL))))
