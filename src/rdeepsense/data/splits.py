"""Splits of rows: at random, by groups, by class, in the order of time."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.data.checks import check_length
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Splits in the order of time
# --------------------------------------------------------------------------------------------------

UNITS = {
    "year": 3.2e7,
    "month": 2.6e6,
    "week": 6e5,
    "day": 86_400.0,
    "date": 86_400.0,
    "hour": 3_600.0,
    "hr": 3_600.0,
    "minute": 60.0,
}
SAMPLES = 60  # seconds; rows that are closer are samples of a sensor


def checked_times(time: ArrayLike, rows: int) -> NDArray[Any]:
    """Return numbers or dates, one for each row; those with a time zone as UTC."""
    if getattr(getattr(time, "dtype", None), "tz", None) is not None:  # of pandas
        time = time.dt.tz_convert(None)  # type: ignore[union-attr]
    values = np.asarray(time)
    if values.dtype.kind in "OU":  # dates as text or as Python has them
        with suppress(TypeError, ValueError):
            values = values.astype("datetime64[us]")
    check_length("time", len(values), rows)
    if values.dtype.kind not in "iufM" or values.ndim != 1:
        raise InputError(
            f"time is of {values.dtype} with shape {values.shape}; accepted: a number or a date "
            "for each row"
        )
    if (values != values).any():
        place = int(np.argmax(values != values))
        raise InputError(f"time lacks a value in row {place} (the first row is 0)")
    return values


def last_rows(time: NDArray[Any], fraction: float) -> Booleans:
    """Mark about a `fraction` of the rows, the last in time; rows of one time stay together."""
    first, last = time.min(), time.max()
    if first == last:
        raise InputError("all rows have one time; a split needs two at least")
    at = np.sort(time)[min(len(time) - 1, round((1 - fraction) * len(time)))]
    held: Booleans = time >= at
    if held.all() or held.mean() > 2 * fraction:
        held = time > at
    return held if held.any() else time == last


def cure_of_order(step: float | None) -> str:
    """Return what to do about rows in order, by the step of their clock in seconds."""
    if step is not None and step < SAMPLES:
        return "Cut windows of several seconds (rdeepsense.windows), and keep recordings together."
    test = "Hold out the last part of the time (a chronological hold-out, time=)"
    if step is None:
        return f"{test}, and use earlier values (lags) as inputs where they are known."
    if step < 3_600:
        return f"{test}, and use means over longer windows or lags as inputs."
    return f"{test}, and use lags (values of the days or hours before) as inputs."


def step_of(name: str, values: Floats, is_dated: bool) -> float | None:
    """Return the step of a clock in seconds; None where its unit is not known."""
    steps = np.diff(values[np.isfinite(values)])
    step, name = float(np.median(steps[steps > 0])), name.lower()
    if is_dated or re.search(r"second|sec\b|secs", name):
        return step
    if re.fullmatch(r"ms|millis\w*|.*_ms", name):
        return step / 1e3
    if name in UNITS:
        return step * UNITS[name]
    # Without a unit, fractions are of seconds, as sensors count.
    return step if name in ("t", "time") and 0 < step < 1 else None


# --------------------------------------------------------------------------------------------------
# Splits into training, validation and held-out rows
#
# The result depends on the rows and their weights alone, not on the order of the table: rows are
# put in the order of a hash of their content, rows of weight 0 are left out, and repeated rows are
# one row with the sum of their weights, so that a weight of 3 is the same as a row written three
# times. Rows with equal inputs, or of one group, form a block that is never divided: otherwise one
# side would be judged on rows that the other had memorised. Groups with rows of several classes are
# dealt out so that every class keeps about its share. Only a table of few inputs that have
# different targets is one of repeated observations, which are split one by one.
# --------------------------------------------------------------------------------------------------

Hashes = NDArray[np.uint64]
CHUNK = 4_194_304  # entries
FEW_INPUTS = 100
DRAWS, MANY_COUNTS = 100, 1_000_000  # of ways to deal groups out; entries of a table of counts


@dataclass(frozen=True)
class Part:
    """Some rows of the table (by position) with their weights, and the blocks they belong to."""

    index: Integers
    weight: Floats
    block: Integers
    mixed: bool = False  # whether rows of a block may be of several classes, as those of a person

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: NDArray[Any]) -> Part:
        return replace(
            self,
            index=self.index[chosen],
            weight=self.weight[chosen],
            block=self.block[chosen],
        )

    @property
    def blocks(self) -> int:
        """How many blocks there are: groups, or distinct inputs."""
        return len(np.unique(self.block))

    @property
    def independent(self) -> float:
        """As how many rows of equal weight these count: (sum w)^2 / sum w^2 over blocks."""
        weight = np.bincount(np.unique(self.block, return_inverse=True)[1], self.weight)
        return float(weight.sum() ** 2 / (weight**2).sum())

    @property
    def relative_weight(self) -> Floats | None:
        """The weights scaled to a mean of 1, or None where all rows weigh the same."""
        if np.all(self.weight == self.weight[0]):
            return None
        relative: Floats = self.weight / self.weight.mean()
        return relative

    def hold_out(
        self, fraction: float, seed: int, labels: NDArray[Any] | None = None
    ) -> tuple[Part, Part]:
        """Return the rest, and a random `fraction` of the blocks.

        With the table's class numbers as `labels` every class keeps its share, as nearly as whole
        blocks allow.
        """
        number, label = self._blocks(None if self.mixed else labels)
        if len(label) < 2:
            raise InputError("all rows have equal inputs or one group; a split needs two at least")
        if self.mixed and labels is not None:
            count = min(len(label) - 1, max(1, round(fraction * len(label))))
            side = np.arange(len(label)) < count
            held = _balanced(number, labels[self.index], np.where(side, 0, -1), seed)[number] == 0
            return self[~held], self[held]
        shares = np.rint(fraction * np.bincount(label)).astype(np.int64)
        chosen = _rank(label, seed) < shares[label]
        if not chosen.any():
            chosen[np.random.default_rng(seed).integers(len(chosen))] = True
        held = chosen[number]
        return self[~held], self[held]

    def hold_out_last(self, fraction: float, time: NDArray[Any]) -> tuple[Part, Part]:
        """Return the rest, and about a `fraction` of the rows: the last by the table's `time`."""
        held = last_rows(time[self.index], fraction)
        return self[~held], self[held]

    def folds(self, count: int, seed: int, labels: NDArray[Any] | None = None) -> Integers:
        """Return each row's fold, 0 to count - 1; blocks are whole, classes spread."""
        number, label = self._blocks(None if self.mixed else labels)
        if self.mixed and labels is not None:
            sides = np.arange(len(label)) % count
            return _balanced(number, labels[self.index], sides, seed)[number]
        # Counting on over the labels, so that the small ones do not all meet in fold 0.
        start = np.r_[0, np.cumsum(np.bincount(label))[:-1]]
        fold: Integers = (_rank(label, seed) + start[label]) % count
        return fold[number]

    def drawn(self, rows: int, seed: int, labels: NDArray[Any] | None = None) -> Part:
        """Return at most so many rows: blocks in a random order, every class with its share.

        Each class keeps one block at least. Where the next blocks are so large that whole ones make
        less than half of it, rows are drawn one by one.
        """
        if len(self) <= rows:
            return self
        number, label = self._blocks(None if self.mixed else labels)
        kept = _first_blocks(number, label, rows, seed)
        if 2 * kept.sum() < rows:
            each = np.zeros(len(self), dtype=np.int64) if labels is None else labels[self.index]
            kept = _first_blocks(np.arange(len(self)), each, rows, seed)
        return self[kept]

    def _blocks(self, labels: NDArray[Any] | None) -> tuple[Integers, Integers]:
        """Return the block of each row, numbered from 0, and the label of each block."""
        if np.all(self.block[1:] >= self.block[:-1]):  # as `distinct` leaves them
            new = np.r_[True, self.block[1:] != self.block[:-1]]
            first, number = np.flatnonzero(new), np.cumsum(new) - 1
        else:
            _, first, number = np.unique(self.block, return_index=True, return_inverse=True)
        if labels is None:
            return number, np.zeros(len(first), dtype=np.int64)
        return number, np.unique(labels[self.index[first]], return_inverse=True)[1]


def evenly(index: Integers) -> Part:
    """Return these rows, all of weight 1 and each a separate block."""
    return Part(index, np.ones(len(index)), np.arange(len(index)))


def distinct(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Floats | None = None,
    groups: NDArray[Any] | None = None,
    merge: bool = True,
) -> Part:
    """Return the distinct rows of a table in the order of their content.

    Without `merge` repeated rows are not made one; they are of one block like all equal inputs.
    """
    weight = np.ones(len(X)) if weight is None else weight
    content = row_hashes(X)
    inputs = content if groups is None else row_hashes(np.unique(groups, return_inverse=True)[1])
    content = content * np.uint64(3) + row_hashes(y)
    order = _sorted(inputs, content)
    order = order[weight[order] > 0]
    inputs, content = inputs[order], content[order]
    new_block = np.r_[True, inputs[1:] != inputs[:-1]]
    new_row = new_block | np.r_[True, content[1:] != content[:-1]]
    starts = np.flatnonzero(new_row | (not merge))
    index, summed = order[starts], np.add.reduceat(weight[order], starts)
    block = (np.cumsum(new_block) - 1)[starts]
    inputs_differ = new_row.sum() > new_block.sum()  # in their targets
    few = groups is None and inputs_differ and new_block.sum() < FEW_INPUTS
    if few and np.array_equal(summed, np.rint(summed)):
        # A table of few distinct inputs is one of counts: to hold out an input would be to learn
        # nothing about it, so here single observations are split.
        return evenly(np.repeat(index, summed.astype(np.int64)))
    return Part(index, summed, block, mixed=groups is not None)


def counted(X: NDArray[Any], y: NDArray[Any]) -> Part:
    """Return the rows of a table in their order, copies once and with their number as weight.

    Where an input has different targets, equal rows are observations and no copies.
    """
    inputs = row_hashes(X)
    content = inputs * np.uint64(3) + row_hashes(y)
    _, first, count = np.unique(content, return_index=True, return_counts=True)
    if len(first) == len(X) or len(first) > len(np.unique(inputs)):
        return evenly(np.arange(len(X)))
    order = np.argsort(first)
    return Part(first[order], count[order].astype(np.float64), np.arange(len(first)))


def validation_fraction(rows: int) -> float:
    """Return a fifth of the rows, a tenth beyond 5,000."""
    return 0.2 if rows <= 5_000 else 0.1


def _sorted(inputs: Hashes, content: Hashes) -> Integers:
    """Return the order by inputs, then content, then place; in a large table almost all differ."""
    order = np.argsort(inputs)
    equal = inputs[order[1:]] == inputs[order[:-1]]
    tied = np.flatnonzero(np.r_[False, equal] | np.r_[equal, False])
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort((content[rows], inputs[rows]))]
    return order


def _rank(label: Integers, seed: int) -> Integers:
    """Return the place of each block in a random order of those of its label."""
    draws = np.random.default_rng(seed).random(len(label))
    shuffled = np.lexsort((draws, label)) if label.any() else np.argsort(draws)
    counts = np.bincount(label)
    rank = np.empty(len(label), dtype=np.int64)
    rank[shuffled] = np.arange(len(label)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def _balanced(number: Integers, label: Integers, sides: Integers, seed: int) -> Integers:
    """Deal sides out to blocks: of several random ways that which spreads the classes best.

    `sides` has one for each block, -1 where it is held out nowhere. Above all no class should have
    all its rows on one side, where nothing could be learned of it, then none should be absent.
    """
    label = np.unique(label, return_inverse=True)[1].reshape(-1)
    blocks, classes = len(sides), int(label.max()) + 1
    counts = np.bincount(number * classes + label, minlength=blocks * classes)
    counts = counts.reshape(blocks, classes)
    held = [int(side) for side in np.unique(sides) if side >= 0]
    draws = DRAWS if blocks * classes <= MANY_COUNTS else 1
    best, least = sides, np.inf
    for draw in range(draws):
        dealt = sides[np.random.default_rng([seed, draw]).permutation(blocks)]
        sums = np.stack([counts[dealt == side].sum(axis=0) for side in held])
        shares = sums / counts.sum(axis=0)
        even = np.array([[np.mean(sides == side)] for side in held])
        cost = 1e6 * (shares == 1).sum() + 1e3 * (sums == 0).sum() + ((shares - even) ** 2).sum()
        if cost < least:
            best, least = dealt, cost
    return best


def _first_blocks(number: Integers, label: Integers, rows: int, seed: int) -> Booleans:
    """Tell which rows are of the first blocks, in an order that spreads the labels evenly."""
    order = np.argsort(_rank(label, seed) / np.bincount(label)[label], kind="stable")
    fits = np.cumsum(np.bincount(number)[order]) <= rows
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[fits]] = True
    return chosen[number]


def row_hashes(values: NDArray[Any]) -> Hashes:
    """Hash each row to 64 bits; the odds that two of 10 million collide are 3e-6."""
    rows = values.reshape(len(values), -1)
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    out = np.empty(len(rows), dtype=np.uint64)
    step = max(1, CHUNK // rows.shape[1])
    for start in range(0, len(rows), step):
        # Adding 0 turns -0 into 0, which compare equal.
        bits = (rows[start : start + step].astype(np.float64) + 0.0).view(np.uint64)
        for shift in (32, 29, 31):  # spread the high bits, where floats differ, over all of them
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(0x9E3779B97F4A7C15)
        out[start : start + step] = (bits * factors).sum(1, dtype=np.uint64)
    return out
