"""Ladders: the architectures that a search tries, from small to large."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log

from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.fitting.records import DeviceCost
from rdeepsense.fitting.spec import DeviceBudget, FitSpec
from rdeepsense.heads import head_named
from rdeepsense.networks import Architecture, DeepSense, Dense, Flattened, Periodic, Shape
from rdeepsense.networks.deepsense import AXES
from rdeepsense.windowing.recipe import Recipe

# --------------------------------------------------------------------------------------------------
# Architectures of `hidden="auto"` for windows (rows, time, channels)
#
# The plainest network, dense layers on the flattened window, stands beside DeepSense networks of
# two or three sizes, larger where windows are many. What DeepSense must be told is guessed:
# channels in threes are triaxial sensors, otherwise one sensor has them all; an interval is a
# divisor of the window's length, of 8 to 16 samples if there is one, and nearest to 12, by ratio.
# Sizes are compared without rotation, and the chosen one is then tried with it: an augmentation
# does not change which size is enough.
# --------------------------------------------------------------------------------------------------

PLAINEST = Flattened((64, 64))
FEW_WINDOWS, MANY_WINDOWS = 200, 3_000
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
    if rows < FEW_WINDOWS or interval is None:
        return (PLAINEST,)
    sizes = SIZES if rows >= MANY_WINDOWS else SIZES[:-1]
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


def is_expensive(architecture: Architecture) -> bool:
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


# --------------------------------------------------------------------------------------------------
# Architectures of `hidden="auto"` for tables, by rows and inputs
#
# Wider and deeper networks pay where rows are many. Periodic embeddings of the inputs pay where the
# target bends sharply with single inputs; their frequencies' spread says how sharply.
# --------------------------------------------------------------------------------------------------

SMALLEST = Dense((64, 64))
FEW_ROWS, MANY_ROWS, VERY_MANY_ROWS = 200, 3_000, 20_000
MOST_EMBEDDED = 64  # inputs; an embedding makes nine numbers of each
SPREADS = (0.1, 0.3)
WIDEST = (500, 500, 500)


def ladder(rows: int, shape: Shape, recipe: Recipe | None = None) -> tuple[Architecture, ...]:
    """Return the architectures for so many rows, or windows; one alone where they are few."""
    if len(shape) > 1:
        return window_ladder(rows, shape, recipe)
    if rows < FEW_ROWS:
        return (SMALLEST,)
    found: list[Architecture] = [SMALLEST, Dense((128, 128))]
    wide: tuple[int, ...] = (128, 128)
    if rows >= MANY_ROWS:
        wide = (256, 256, 256)
        found.append(Dense(wide))
    if rows >= VERY_MANY_ROWS:
        found.append(Dense(WIDEST))
    if shape[0] <= MOST_EMBEDDED:
        found += [Periodic(wide, std=spread) for spread in SPREADS]
    return tuple(found)


def wider(architecture: Architecture, rows: int) -> tuple[Architecture, ...]:
    """Return the widest layers on the same embeddings, where rows are very many.

    They are tried where embeddings lead alone: of both spreads they would be dear.
    """
    if rows < VERY_MANY_ROWS or not isinstance(architecture, Periodic):
        return ()
    return (replace(architecture, hidden=WIDEST),)


# --------------------------------------------------------------------------------------------------
# Architectures of a fit under a budget
#
# Dense layers of every width on the ladder that fits, and periodic embeddings with the widest
# layers that fit beside them; embeddings are made smaller only where wide layers have no room
# otherwise. None that does not fit is ever trained.
# --------------------------------------------------------------------------------------------------

WIDTHS = (8, 16, 32, 64, 128, 256)
BETWEEN = (12, 24, 48, 96, 192)  # where they are the widest that fit
WIDE = (128, 128)  # layers beside which a smaller embedding is no gain
DEEP, DEEPEST = (256, 256, 256), (500, 500, 500)  # where rows are many
EMBEDDINGS = ((16, 8), (8, 4), (4, 2))  # frequencies of each input, and numbers made of them

Widths = tuple[int, ...]


def need_of(
    spec: FitSpec,
    architecture: Architecture,
    shape: Shape,
    outputs: int,
    encoding: Encoding | None = None,
) -> DeviceCost:
    """Count what an architecture needs with the largest of the heads that are tried."""
    assert spec.budget is not None
    heads = (head_named(candidate.likelihood) for candidate in spec.grid)
    columns = outputs * max(head.link.columns for head in heads)
    return spec.budget.need(architecture, shape, outputs, columns, encoding)


def check_budget(
    spec: FitSpec, rows: int, shape: Shape, outputs: int, encoding: Encoding | None = None
) -> None:
    """Refuse a budget that nothing to be tried fits in, saying what the smallest needs."""
    if spec.budget is None:
        return
    if spec.open_architecture:
        ladder_within(spec, rows, shape, outputs, encoding)
        return
    need = need_of(spec, spec.architecture, shape, outputs, encoding)
    if not spec.budget.allows(need):
        raise InputError(
            f'{_told(spec.budget, spec.architecture, need)}; hidden="auto" chooses one that fits'
        )


def ladder_within(
    spec: FitSpec, rows: int, shape: Shape, outputs: int, encoding: Encoding | None = None
) -> tuple[Architecture, ...]:
    """Return what to try on a table of so many rows; one alone where they are few.

    The most promising come first, because the clock may cut the search (`max_seconds`).
    """
    budget = spec.budget
    assert budget is not None

    def fits(architecture: Architecture) -> bool:
        return budget.allows(need_of(spec, architecture, shape, outputs, encoding))

    layers = _layers(rows)
    dense = [Dense(hidden) for hidden in _thinned([h for h in layers if fits(Dense(h))])]
    if not dense:
        least = Dense(layers[0])
        need = need_of(spec, least, shape, outputs, encoding)
        raise InputError(f"{_told(budget, least, need)}; no smaller network is tried")
    if rows < FEW_ROWS:
        return (dense[-1],)
    found: list[Architecture] = [dense[-1]]
    for sizes in EMBEDDINGS if shape[0] <= MOST_EMBEDDED else ():
        beside = _thinned([h for h in layers if fits(Periodic(h, *sizes))])
        tried = beside[-1:]
        if WIDE in beside:  # then one of half the width as well, which a smaller budget has too
            tried += [h for h in beside if sum(h) <= sum(beside[-1]) // 2][-1:]
        found += [Periodic(hidden, *sizes, std) for hidden in tried for std in SPREADS]
        if WIDE in beside:
            break
    return (*found, *reversed(dense[:-1]))


def _layers(rows: int) -> list[Widths]:
    """List hidden layers, smaller ones first; few rows have none beyond the usual smallest."""
    pairs: list[Widths] = [(width, width) for width in sorted((*WIDTHS, *BETWEEN))]
    if rows < FEW_ROWS:
        return [pair for pair in pairs if pair <= tuple(SMALLEST.hidden)]
    if rows >= MANY_ROWS:
        pairs.append(DEEP)
    if rows >= VERY_MANY_ROWS:
        pairs.append(DEEPEST)
    return pairs


def _thinned(layers: list[Widths]) -> list[Widths]:
    """Leave out what lies between two powers of two, unless it is the widest of all."""
    return [hidden for hidden in layers if hidden[0] not in BETWEEN or hidden == layers[-1]]


def _told(budget: DeviceBudget, architecture: Architecture, need: DeviceCost) -> str:
    return f"the budget is too small for {architecture!r}, which needs {budget.words(need)}"
