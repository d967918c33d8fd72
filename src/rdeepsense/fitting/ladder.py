"""The architectures among which `hidden="auto"` chooses, by the rows and inputs of a table.

Wider and deeper networks pay where rows are many. Periodic embeddings of the inputs pay where the
target bends sharply with single inputs; their frequencies' spread says how sharply.
"""

from __future__ import annotations

from dataclasses import replace

from rdeepsense.fitting.window_ladder import window_ladder
from rdeepsense.networks import Architecture, Dense, Periodic, Shape
from rdeepsense.windowing.recipe import Recipe

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
