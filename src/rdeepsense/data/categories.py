"""Tables as people have them: which columns are categories, and what their levels are.

Text, yes/no and categorical columns of pandas, polars or pyarrow are categories, and so are columns
of text in an array of objects. Numbers never are, unless they are named, and texts that all read as
numbers are numbers. Where only most of them do it is hardly a category, so that is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.kinds import NUMBERS, columns_of, is_number, plain
from rdeepsense.encoding import MISSING_TYPES, MOST_LEVELS, MOST_TEXT, Category, Encoding, level_of
from rdeepsense.errors import InputError, nearest

Categorical = str | Sequence[str | int] | None  # the argument of estimators
ONE_HOT = 16  # levels at most, else vectors are learnt
MOST_OTHER = 0.1  # of the rows: where more are of rare levels, vectors are learnt as well
FEW_ROWS, FEW_SHARE = 10, 0.05  # a level of fewer rows than both is rare, and one of "other"
_LEVELS = re.compile(r"(category|categorical|enum|dictionary|bool)\b.*|boolean", re.IGNORECASE)
_MAYBE = re.compile(r"object|str|utf8|(large_)?string(_view|dtype)?([\[(].*)?|<u\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """The columns of a table by number, whatever library it is of."""

    values: list[Any]  # arrays, or columns of the library's own
    names: list[str | int]  # numbers where there are no names

    @classmethod
    def of(cls, X: Any, every: bool = False) -> Columns | None:
        """Take a table or an array apart; one of plain numbers only for `every`, else it is None.

        None is also what has no columns. A mapping of names to columns is a table, too.
        """
        if isinstance(X, Columns):
            return X
        if isinstance(X, Mapping) and not hasattr(X, "shape"):  # sparse matrices may be mappings
            return cls._of_mapping(X)
        if isinstance(X, np.ndarray) and X.dtype.kind not in "OU" and not every:
            return None
        found = columns_of(X)
        if found:
            return cls([one for _, one in found], [name for name, _ in found])
        if not isinstance(X, np.ndarray):
            if not isinstance(X, list | tuple) or not (every or _holds_text(X)):
                return None
            X = np.array(X, dtype=object)
        if X.ndim != 2:
            return None
        return cls(list(X.T), list(range(X.shape[1])))

    @classmethod
    def _of_mapping(cls, X: Mapping[Any, Any]) -> Columns:
        values = [one if hasattr(one, "__len__") else list(one) for one in X.values()]
        lengths = {str(name): len(one) for name, one in zip(X, values, strict=True)}
        if len(set(lengths.values())) > 1:
            (first, rows), *others = lengths.items()
            other, more = next(pair for pair in others if pair[1] != rows)
            raise InputError(
                f"X has {rows:,} values in column {first!r}, and {more:,} in {other!r}; accepted: "
                "as many in each"
            )
        return cls(values, [str(name) for name in X])

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.values[0]) if self.values else 0

    def said(self, column: int) -> str:
        """Name a column in an error."""
        return f"X, column {self.names[column]!r},"

    def objects(self, column: int) -> list[Any]:
        """Return the values of a column as Python's objects."""
        return objects_of(self.values[column])

    def numbers(self, column: int) -> NDArray[Any]:
        """Return the numbers of a column; refuse anything else."""
        values = self.values[column]
        has_name = isinstance(getattr(values, "name", None), str)  # which is then said anyway
        found = plain("X" if has_name else self.said(column), values, NUMBERS)
        return found if found.dtype == np.float32 else found.astype(np.float64)

    def chosen(self, categorical: Categorical) -> list[int]:
        """Return the columns that are categories."""
        if categorical is None:
            return []
        if isinstance(categorical, str):
            return [k for k in range(len(self.values)) if self._is_category(k)]
        return named_columns(categorical, self.names)

    def _is_category(self, column: int) -> bool:
        values = self.values[column]
        kind = str(getattr(values, "dtype", getattr(values, "type", "object")))
        if _LEVELS.fullmatch(kind):
            return True
        if not _MAYBE.fullmatch(kind):
            return False
        try:
            present = Counter((type(v), v) for v in self.objects(column) if not is_missing(v))
        except TypeError:
            return False  # of a kind that numbers refuse by name
        kinds = {kind for kind, _ in present}
        if kinds and all(issubclass(t, bool | np.bool_) for t in kinds):
            return True
        strays = {v: count for (_, v), count in present.items() if not is_number(v)}
        if not strays or not all(isinstance(v, str) for v in strays):
            return False
        if 2 * sum(strays.values()) < present.total():
            raise InputError(
                f"{self.said(column)} holds numbers and {sum(strays.values())} other texts, such "
                f"as {next(iter(strays))!r:.60}; write those as NaN, or name the column in "
                "categorical="
            )
        return True


def named_columns(categorical: Sequence[str | int], names: Sequence[str | int]) -> list[int]:
    """Return the numbers of columns that are named, or numbered, in `categorical`."""
    places = {name: k for k, name in enumerate(names)}
    found = set()
    for one in categorical:
        place = places.get(one)
        if place is None and isinstance(one, int | np.integer) and 0 <= one < len(names):
            place = int(one)
        if place is None:
            known = ", ".join(map(str, list(names)[:20]))
            raise InputError(
                f"categorical names {one!r}, which X does not have{nearest(one, names)}; it has "
                f"{known}"
            )
        found.add(place)
    return sorted(found)


def check_categorical(categorical: Any) -> None:
    """Refuse an argument that names no columns."""
    if categorical is None or categorical == "auto":
        return
    listed = isinstance(categorical, Sequence | np.ndarray) and not isinstance(categorical, str)
    if not listed or any(
        isinstance(one, bool) or not isinstance(one, str | int | np.integer) for one in categorical
    ):
        raise InputError(
            f"categorical = {categorical!r}; accepted: 'auto', None, or a list of names or numbers "
            "of columns"
        )


def coded(columns: Columns, encoding: Encoding) -> NDArray[Any]:
    """Return the table as numbers, with codes of levels."""
    if len(columns.values) != encoding.inputs:
        count = len(columns.values)
        raise InputError(
            f"X has {count} column{'s' * (count != 1)}, the model takes {encoding.inputs}"
        )
    numbers = [columns.numbers(k) for k in encoding.numbers]
    single = bool(numbers) and all(part.dtype == np.float32 for part in numbers)
    rows = len(columns.objects(0)) if not numbers else len(numbers[0])
    table = np.empty((rows, encoding.inputs), np.float32 if single else np.float64)
    for k, part in zip(encoding.numbers, numbers, strict=True):
        table[:, k] = part
    for category in encoding.categories:
        k = category.column
        table[:, k] = category.encode(columns.objects(k), columns.said(k))
    return table


def found_levels(columns: Columns, chosen: Sequence[int]) -> Encoding:
    """Find the levels of the chosen columns, without vectors yet.

    Where there are too many, those of the fewest rows are left out, and count as unseen.
    """
    found = [_counted(columns, k) for k in chosen]
    order = sorted((-count, k, name) for k, one in enumerate(found) for name, count in one.items())
    size = np.cumsum([len(name.encode(errors="replace")) + 3 for _, _, name in order])
    most = min(MOST_LEVELS, int(np.searchsorted(size, MOST_TEXT, "right")))
    kept: list[list[str]] = [[] for _ in found]
    for _, k, name in order[:most]:
        kept[k].append(name)
    none = np.zeros((0, 0))
    categories = [
        Category(k, tuple(sorted(names)), none) for k, names in zip(chosen, kept, strict=True)
    ]
    return Encoding(len(columns.values), (), tuple(categories))


def one_hot(category: Category, codes: NDArray[Any]) -> Floats | None:
    """Return one-hot vectors of the levels, or None where there are too many of them.

    Rare levels share an input, and missing values have one, where there are any; otherwise they
    count as the mean of all rows, as unseen levels do.
    """
    levels, rows = len(category.levels), len(codes)
    missing = np.isnan(codes)
    known = codes[~missing & (codes >= 0)].astype(np.int64)
    counts = np.bincount(known, minlength=levels)
    kept = np.flatnonzero(counts >= min(FEW_ROWS, FEW_SHARE * rows))
    other = int(len(known) - counts[kept].sum() + (codes < 0).sum())
    if len(kept) > ONE_HOT or (levels > ONE_HOT and other > MOST_OTHER * rows):
        return None
    held = np.array([*counts[kept], *[other] * bool(other), *[missing.sum()] * bool(missing.any())])
    vectors = np.tile(held / held.sum(), (levels + 2, 1))
    place = len(kept)
    if other:
        vectors[: levels + 1] = np.eye(len(held))[place]
        place += 1
    if missing.any():
        vectors[levels + 1] = np.eye(len(held))[place]
    vectors[kept] = np.eye(len(held))[np.arange(len(kept))]
    return vectors.astype(np.float32).astype(np.float64)


def _counted(columns: Columns, column: int) -> Counter[str]:
    said = columns.said(column)
    try:
        values = Counter((type(v), v) for v in columns.objects(column) if not is_missing(v))
    except TypeError:
        raise InputError(f"{said} holds values that name no level") from None
    found: Counter[str] = Counter()
    for (_, value), count in values.items():
        name = level_of(value, said)
        assert name is not None
        found[name] += count
    if not found:
        raise InputError(f"{said} has no value at all, so it has no levels")
    return found


def is_missing(value: Any) -> bool:
    """Tell whether a value is none: None, NaN, or what libraries have for it."""
    if type(value).__name__ in MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and value != value


def objects_of(values: Any) -> list[Any]:
    """Return a column as Python's objects."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            found: list[Any] = getattr(values, name)()
            return found
    return list(values)


def _holds_text(X: ArrayLike) -> bool:
    """Tell whether a list of rows holds text or nothing, so that numpy would not make numbers."""
    rows = [row for row in X if isinstance(row, list | tuple)]  # type: ignore[union-attr]
    return any(isinstance(v, str) or v is None for row in rows for v in row)
