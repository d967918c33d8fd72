"""From a row of a table to the numbers that networks read: categories as vectors, holes as flags.

A row has one number for each column. Of a category it is a code, k for the k-th level; NaN is a
missing value, and any other number a level that was never seen. Networks read

    [numbers, 1 where a number is missing (else 0), vector of the first category's level, ...]

The vectors of a category are the rows of a table: of each level, of unseen ones, of missing values.
They may be one-hot or learnt; nothing here asks which. It needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.errors import InputError
from rdeepsense.modelfile.schema import Json, Kind, check_fields, several, text, whole

UNSEEN = -1.0  # the code of a level that was never seen
MOST_LEVELS = 1 << 16  # of all categories together
MOST_TEXT = 1 << 20  # bytes of their names
LONGEST_LEVEL = 1_000
MOST_COLUMNS = 1 << 20
WIDEST = 64  # of a vector
LARGEST = 1e6  # of its numbers
LEAST_SCALE = 0.25  # of flags and one-hot inputs: rare ones would lie far out, like absurd values
MISSING_TYPES = ("NoneType", "NAType", "NaTType")
ENCODING = "encoding."  # before the names of the tables in files

_CATEGORY = {
    "column": whole(0, MOST_COLUMNS),
    "levels": several(text(LONGEST_LEVEL), MOST_LEVELS),
}
_FIELDS = {
    "flagged": several(whole(0, MOST_COLUMNS), MOST_COLUMNS),
    "categories": several(Kind(lambda value: type(value) is dict, "an object"), MOST_COLUMNS),
}


@dataclass(frozen=True)
class Category:
    """The levels of a column, by code, and the vectors (levels + 2, width) that stand for them.

    The last two are for a level that was never seen, and for a missing value. While a model is
    trained more of these tables may lie below each other, see `level_vectors`.
    """

    column: int
    levels: tuple[str, ...]
    vectors: Floats

    @property
    def block(self) -> int:
        """How many vectors a whole table has."""
        return len(self.levels) + 2

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def is_one_hot(self) -> bool:
        """Whether levels are told apart by zeros and a one."""
        own = self.vectors[: len(self.levels)]
        return bool(np.isin(own, (0.0, 1.0)).all() and (own.sum(1) == 1).all())

    @cached_property
    def codes(self) -> dict[str, float]:
        """The code of each level."""
        return {level: float(code) for code, level in enumerate(self.levels)}

    def rows(self, codes: NDArray[Any]) -> Integers:
        """Return the row of `vectors` for each code."""
        levels = len(self.levels)
        found = np.full(len(codes), levels, np.int64)
        found[np.isnan(codes)] = levels + 1
        with np.errstate(invalid="ignore"):
            known = (codes >= 0) & (codes < len(self.vectors)) & (codes == np.floor(codes))
            known &= (codes < levels) | (codes >= self.block)
        found[known] = codes[known].astype(np.int64)
        return found

    def encode(self, values: list[Any], said: str) -> Floats:
        """Return the code of each value: of a text, a number or yes/no; NaN where it is missing."""
        code_of, known = self.codes.get, dict[Any, float]()
        found = []
        for value in values:
            if type(value) is str:
                found.append(code_of(value, UNSEEN))
                continue
            key = (type(value), value)  # True is no 1 here
            try:
                code = known.get(key)
            except TypeError:
                raise InputError(f"{said} holds {value!r:.60}, which names no level") from None
            if code is None:
                name = level_of(value, said)
                known[key] = code = np.nan if name is None else code_of(name, UNSEEN)
            found.append(code)
        return np.array(found, np.float64)


@dataclass(frozen=True)
class Encoding:
    """The use of each column of a table: a number, one with a flag, or a category."""

    inputs: int
    flagged: tuple[int, ...] = ()  # numbers that are missing in some of the training rows
    categories: tuple[Category, ...] = ()

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The columns that are numbers."""
        coded = {category.column for category in self.categories}
        return tuple(k for k in range(self.inputs) if k not in coded)

    @cached_property
    def width(self) -> int:
        """How many numbers networks read of a row."""
        vectors = sum(category.width for category in self.categories)
        return len(self.numbers) + len(self.flagged) + vectors

    @cached_property
    def counts(self) -> Floats:
        """The levels of each column; 0 for a number."""
        found = np.zeros(self.inputs)
        for category in self.categories:
            found[category.column] = len(category.levels)
        return found

    def expand(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what networks read of rows; a number that is missing stays NaN."""
        parts = [X[:, self.numbers], np.isnan(X[:, self.flagged])]
        parts += [c.vectors[c.rows(X[:, c.column])] for c in self.categories]
        wide: NDArray[Any] = np.concatenate([part.astype(X.dtype) for part in parts], axis=1)
        return wide

    def rows_of(self, numbers: NDArray[Any]) -> Floats:
        """Return rows with these numbers (rows, numbers), and all levels of categories by turns."""
        rows = np.zeros((len(numbers), self.inputs))
        rows[:, self.numbers] = numbers
        for category in self.categories:
            rows[:, category.column] = np.arange(len(rows)) % max(1, len(category.levels))
        return rows

    def ends(self, low: Floats, high: Floats) -> Floats:
        """Return the least and the greatest (2, width) that networks read within ranges."""
        numbers = np.stack([low, high])[:, self.numbers]
        flags = np.repeat([[0.0], [1.0]], len(self.flagged), axis=1)
        tables = [np.stack([c.vectors.min(0), c.vectors.max(0)]) for c in self.categories]
        return np.concatenate([numbers, flags, *tables], axis=1)

    def encode(self, column_of: Callable[[int], list[Any]], said: Callable[[int], str]) -> Floats:
        """Return the codes of the categories, (rows, categories), of columns by their number."""
        return np.column_stack(
            [c.encode(column_of(c.column), said(c.column)) for c in self.categories]
        )

    @property
    def settled(self) -> Encoding:
        """The encoding as it is after training: one table for each category."""
        return replace(
            self,
            categories=tuple(
                replace(c, vectors=c.vectors[: c.block].copy()) for c in self.categories
            ),
        )

    def settled_codes(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows with codes of the one table that stays after training."""
        X = X.copy()
        for c in self.categories:
            codes = np.where(X[:, c.column] >= c.block, X[:, c.column] % c.block, X[:, c.column])
            X[:, c.column] = np.where(codes == len(c.levels) + 1, np.nan, codes)
        return X

    def to_json(self) -> Json:
        """Return the part that is no table."""
        return {
            "flagged": list(self.flagged),
            "categories": [{"column": c.column, "levels": list(c.levels)} for c in self.categories],
        }

    def arrays(self) -> dict[str, Floats]:
        """Name the tables, as files have them."""
        return {f"{ENCODING}{k}": c.vectors for k, c in enumerate(self.categories)}

    def shapes(self, widths: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return the shapes that tables must have, whatever their width; refuse strange widths."""
        found: dict[str, tuple[int, ...]] = {}
        for k, category in enumerate(self.categories):
            shape = widths.get(f"{ENCODING}{k}", ())
            if len(shape) != 2 or not 1 <= shape[1] <= WIDEST:
                raise InputError(f"{ENCODING}{k} has the shape {shape}; it must be a matrix")
            found[f"{ENCODING}{k}"] = (category.block, shape[1])
        return found


def level_of(value: Any, said: str) -> str | None:
    """Return the name of a level; None for a missing value."""
    if isinstance(value, str):
        if len(value) > LONGEST_LEVEL:
            raise InputError(
                f"{said} holds a text of {len(value)} letters; levels have {LONGEST_LEVEL} at most"
            )
        return str(value)
    if type(value).__name__ in MISSING_TYPES:
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating | Decimal):
        if value != value:
            return None
        number = float(value)
        return str(int(number)) if abs(number) < 2**53 and number.is_integer() else f"{number:.7g}"
    raise InputError(f"{said} holds a {type(value).__name__}; levels are text, numbers or yes/no")


def check_encoding(found: Json, inputs: int) -> None:
    """Refuse what is no record of an encoding of so many columns."""
    check_fields(found, _FIELDS, at="encoding.")
    columns = []
    for k, category in enumerate(found["categories"]):
        check_fields(category, _CATEGORY, at=f"encoding.categories.{k}.")
        columns.append(category["column"])
        if len(set(category["levels"])) != len(category["levels"]):
            raise InputError(f"encoding.categories.{k} has a level twice")
    if sum(len(category["levels"]) for category in found["categories"]) > MOST_LEVELS:
        raise InputError(f"encoding has more than {MOST_LEVELS} levels")
    for what, used in (("categories", columns), ("flagged", found["flagged"])):
        if used != sorted(set(used)) or any(column >= inputs for column in used):
            raise InputError(f"encoding.{what} has columns that are not in order, or not there")
    if set(columns) & set(found["flagged"]):
        raise InputError("encoding.flagged names a category")


def encoding_of(found: Json, inputs: int, tables: Mapping[str, NDArray[Any]]) -> Encoding:
    """Make the encoding of a checked record and its tables."""
    return Encoding(
        inputs,
        tuple(found["flagged"]),
        tuple(
            Category(
                category["column"],
                tuple(category["levels"]),
                np.array(tables[f"{ENCODING}{k}"], np.float64),
            )
            for k, category in enumerate(found["categories"])
        ),
    )


def without_tables(found: Json, inputs: int) -> Encoding:
    """Make the encoding of a checked record, before its tables are known to fit."""
    none = {f"{ENCODING}{k}": np.zeros((0, 0)) for k in range(len(found["categories"]))}
    return encoding_of(found, inputs, none)
