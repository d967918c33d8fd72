"""Sensing tasks: inputs, targets, units, who they come from, and how to split them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.distributions.base import Seed
from rdeepsense.errors import InputError

Indices = NDArray[np.intp]
Targets = NDArray[Any]
"""Numbers, or indices of classes: which of them a type cannot say."""
SHARES = (0.9, 0.05, 0.05)


class Truth(Protocol):
    """The distribution that simulated targets were drawn from, entry by entry."""

    def log_prob(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return the log density (log probability for classes) of each entry of y."""

    def sample(self, n: int, rng: Seed) -> Targets:
        """Return n independent draws of every entry, of shape (n, *shape)."""

    def __getitem__(self, index: Indices) -> Truth:
        """Return the distributions of some rows."""


@dataclass(frozen=True)
class Split:
    """Row numbers of the three parts, in ascending order, and how they were told apart."""

    train: Indices
    validation: Indices
    test: Indices
    how: str


@dataclass(frozen=True)
class Task:
    """A table to learn from. Regression where `classes` is empty, else y holds their indices."""

    name: str  # as in the paper: BPEst, NYCommute, GasSen, HHAR
    X: NDArray[np.float32]  # (rows, features)
    y: Targets  # (rows,) or (rows, outputs); class indices for classification
    features: tuple[str, ...]
    targets: tuple[str, ...]
    unit: str  # of the targets: mmHg, min, ppm; empty for classes
    source: str  # one line: where the rows come from
    simulated: bool
    groups: NDArray[np.int64] | None = None  # the user, record or day of each row
    grouped_by: str = ""  # what a group is: "user", "record", "day"
    classes: tuple[str, ...] = ()
    truth: Truth | None = None  # of simulated rows
    split_by: str = "rows"  # the paper's split of this task: "rows" or "groups"

    def __post_init__(self) -> None:
        rows = len(self.X)
        if rows == 0:
            raise InputError(f"{self.name}: no usable rows in {self.source}")
        if self.X.shape != (rows, len(self.features)):
            raise InputError(
                f"{self.name}: X has shape {self.X.shape} for {len(self.features)} features"
            )
        if len(self.y) != rows:
            raise InputError(f"{self.name}: {rows} rows of inputs, {len(self.y)} of targets")
        if self.groups is not None and self.groups.shape != (rows,):
            raise InputError(f"{self.name}: {rows} rows, groups of shape {self.groups.shape}")

    @property
    def kind(self) -> str:
        """`regression` or `classification`."""
        return "classification" if self.classes else "regression"

    def split(
        self, by: str | None = None, shares: Sequence[float] = SHARES, seed: int = 0
    ) -> Split:
        """Return random parts of these shares: of rows, or of whole groups (`by="groups"`)."""
        by = by or self.split_by
        if by == "rows":
            return split_rows(len(self.X), shares, seed)
        if by != "groups":
            raise InputError(f"by = {by!r} is unknown; accepted: rows, groups")
        if self.groups is None:
            raise InputError(f"{self.name} has no groups to split by")
        return split_groups(self.groups, self.grouped_by, shares, seed)


def split_rows(rows: int, shares: Sequence[float] = SHARES, seed: int = 0) -> Split:
    """Split rows at random."""
    order = np.random.default_rng(seed).permutation(rows)
    first, second = _cuts(rows, shares, "rows")
    train, validation, test = np.split(order, [first, second])
    return Split(np.sort(train), np.sort(validation), np.sort(test), "random rows")


def split_groups(
    groups: NDArray[np.generic], name: str, shares: Sequence[float] = SHARES, seed: int = 0
) -> Split:
    """Split whole groups at random: nobody in one part is in another."""
    known = np.unique(groups)
    order = np.random.default_rng(seed).permutation(known)
    first, second = _cuts(len(known), shares, f"{name}s")
    train, validation, test = (
        np.flatnonzero(np.isin(groups, part)) for part in np.split(order, [first, second])
    )
    return Split(train, validation, test, f"{name}s never trained on")


def _cuts(count: int, shares: Sequence[float], what: str) -> tuple[int, int]:
    """Return where the second and third part begin; none is empty."""
    if len(shares) != 3 or min(shares) <= 0:
        raise InputError(f"shares = {tuple(shares)}: three positive numbers are needed")
    if count < 3:
        raise InputError(f"{count} {what} cannot be split into train, validation and test")
    _, validation, test = (share / sum(shares) for share in shares)
    last, middle = max(1, round(test * count)), max(1, round(validation * count))
    if last + middle >= count:
        raise InputError(f"shares = {tuple(shares)} leave no {what} of {count} to train on")
    return count - last - middle, count - last
