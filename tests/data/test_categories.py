"""Which columns of a table are categories, their levels, and one-hot vectors of few."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rdeepsense.data import columns as categories
from rdeepsense.data.columns import Columns, coded, found_levels, one_hot
from rdeepsense.encoding import Category, Encoding
from rdeepsense.errors import InputError

VALUES: dict[str, list[Any]] = {
    "number": [1.5, 2.5, None, 4.5],
    "text": ["b", "a", None, "b"],
    "whole": [1, 2, 3, 4],
    "yes": [True, False, True, True],
}


def tables() -> dict[str, Any]:
    return {
        "pandas": pd.DataFrame(VALUES),
        "pandas object": pd.DataFrame(VALUES, dtype=object),
        "pandas pyarrow": pd.DataFrame(VALUES).convert_dtypes(dtype_backend="pyarrow"),
        "pandas nullable": pd.DataFrame(VALUES).convert_dtypes(),
        "polars": pl.DataFrame(VALUES),
        "pyarrow": pa.table(VALUES),
        "objects": np.array(list(zip(*VALUES.values(), strict=True)), dtype=object),
        "lists": [list(row) for row in zip(*VALUES.values(), strict=True)],
    }


@pytest.mark.parametrize("kind", tables())
def test_text_and_yes_no_are_categories_of_any_library(kind: str) -> None:
    columns = Columns.of(tables()[kind])
    assert columns is not None
    assert columns.chosen("auto") == [1, 3]
    assert columns.chosen(None) == []
    assert columns.chosen([3, 0]) == [0, 3]
    found = found_levels(columns, [1, 3])
    assert [c.levels for c in found.categories] == [("a", "b"), ("False", "True")]
    nan = np.nan
    wanted = [[1.5, 1, 1, 1], [2.5, 0, 2, 0], [nan, nan, 3, 1], [4.5, 1, 4, 1]]
    np.testing.assert_array_equal(coded(columns, found), wanted)


@pytest.mark.parametrize(
    ("column", "category"),
    [
        (pd.Series(["a", "b"], dtype="category"), True),
        (pd.Series([1, 2], dtype="category"), True),
        (pl.Series(["a", "b"], dtype=pl.Categorical), True),
        (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), True),
        (pa.chunked_array([pa.array(["a", "b"]).dictionary_encode()]), True),
        (pd.Series(["1", "2.5"]), False),
        (pd.Series([Decimal(1), Decimal("2.5")]), False),
        (pd.Series([1, 2]), False),
        (pd.Series([None, None], dtype=object), False),
        (pl.Series([[1], [2]]), False),
        (pl.Series([{"a": 1}]), False),
        (pd.to_datetime(pd.Series(["2020-01-01"])), False),
        (np.array(["a", "1"], dtype=object), True),
        (np.array([{"foo": "bar"}, 1], dtype=object), False),
        (np.array([b"a", b"b"], dtype=object), False),
    ],
)
def test_kinds_of_columns(column: Any, category: bool) -> None:
    assert Columns([column], ["c"]).chosen("auto") == [0] * category


def test_numbers_with_stray_text_are_refused() -> None:
    columns = Columns([np.array([1.0, "error", "2", 4, None], dtype=object)], ["speed"])
    with pytest.raises(
        InputError,
        match="column 'speed', holds numbers and 1 other texts, such as "
        "'error'; write those as NaN, or name the column",
    ):
        columns.chosen("auto")
    assert columns.chosen(["speed"]) == [0]


def test_columns_are_named_or_numbered() -> None:
    columns = Columns.of(pd.DataFrame({"a": [1], "b": [2]}))
    assert columns is not None
    assert columns.chosen(["b"]) == columns.chosen([1]) == columns.chosen((np.int64(1),)) == [1]
    for strange in ("c", 2, -1):
        with pytest.raises(InputError, match=f"categorical names {strange!r}.*; it has a, b"):
            columns.chosen([strange])


def test_plain_numbers_are_not_taken_apart() -> None:
    assert Columns.of(np.ones((3, 2))) is None
    assert Columns.of([[1.0, 2.0]]) is None
    assert Columns.of(np.array(["a", "b"])) is None
    every = Columns.of(np.ones((3, 2)), every=True)
    assert every is not None
    assert every.names == [0, 1]


def test_a_column_without_values_has_no_levels() -> None:
    columns = Columns.of(pd.DataFrame({"a": pd.Series([None, None], dtype="category")}))
    assert columns is not None
    with pytest.raises(InputError, match="column 'a', has no value at all, so it has no levels"):
        found_levels(columns, [0])


def test_the_rarest_of_too_many_levels_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns.of(pd.DataFrame({"a": list("xxyyz"), "b": list("pqqqq")}))
    assert columns is not None
    monkeypatch.setattr(categories, "MOST_LEVELS", 3)
    found = found_levels(columns, [0, 1])
    assert [c.levels for c in found.categories] == [("x", "y"), ("q",)]
    np.testing.assert_array_equal(coded(columns, found)[:, 1], [-1, 0, 0, 0, 0])
    monkeypatch.setattr(categories, "MOST_TEXT", 8)
    assert [c.levels for c in found_levels(columns, [0, 1]).categories] == [("x",), ("q",)]


def category(levels: int) -> Category:
    return Category(0, tuple(map(str, range(levels))), np.zeros((0, 0)))


def test_one_hot_of_common_levels() -> None:
    vectors = one_hot(category(2), np.repeat([0.0, 1.0], [10, 30]))
    assert vectors is not None
    assert vectors.tolist() == [[1, 0], [0, 1], [0.25, 0.75], [0.25, 0.75]]


def test_rare_levels_share_an_input_and_missing_ones_have_theirs() -> None:
    codes = np.repeat([0.0, 1, 2, 3, np.nan], [300, 9, 3, 186, 2])
    vectors = one_hot(category(4), codes)
    assert vectors is not None
    wanted = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert vectors.tolist() == wanted
    small = one_hot(category(2), np.repeat([0.0, 1], [17, 3]))  # a twentieth of few rows is enough
    assert small is not None
    assert small[:2].tolist() == [[1, 0], [0, 1]]


def test_many_levels_are_not_one_hot() -> None:
    assert one_hot(category(17), np.repeat(np.arange(17.0), 20)) is None
    assert one_hot(category(16), np.repeat(np.arange(16.0), 20)) is not None
    assert one_hot(category(500), np.repeat(np.arange(500.0), 2)) is None  # all are rare
    rare = np.concatenate([np.repeat(np.arange(16.0), 110), np.arange(16.0, 200)])
    vectors = one_hot(category(200), rare)
    assert vectors is not None
    assert vectors.shape == (202, 17)


def test_another_number_of_columns_is_refused() -> None:
    columns = Columns.of(pd.DataFrame({"a": ["x"]}))
    assert columns is not None
    with pytest.raises(InputError, match="X has 1 column, the model takes 2"):
        coded(columns, Encoding(2, (), ()))
