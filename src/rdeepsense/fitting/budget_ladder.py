"""The architectures among which a fit under a budget chooses: from very small up to what fits.

Dense layers of every width on the ladder that fits, and periodic embeddings with the widest layers
that fit beside them; embeddings are made smaller only where wide layers have no room otherwise.
None that does not fit is ever trained.
"""

from __future__ import annotations

from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.fitting.device_budget import DeviceBudget
from rdeepsense.fitting.ladder import (
    FEW_ROWS,
    MANY_ROWS,
    MOST_EMBEDDED,
    SMALLEST,
    SPREADS,
    VERY_MANY_ROWS,
)
from rdeepsense.fitting.need import Need
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.heads import head_named
from rdeepsense.networks import Architecture, Dense, Periodic, Shape

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
) -> Need:
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


def _told(budget: DeviceBudget, architecture: Architecture, need: Need) -> str:
    return f"the budget is too small for {architecture!r}, which needs {budget.words(need)}"
