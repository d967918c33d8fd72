"""Categories as codes and vectors, missing values as flags: exact rows, and hostile records."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdeepsense.encoding import (
    Category,
    Encoding,
    check_encoding,
    encoding_of,
    level_of,
    without_tables,
)
from rdeepsense.errors import InputError

COLOUR = Category(1, ("blue", "red"), np.array([[1.0, 0], [0, 1], [0.25, 0.75], [0.5, 0.5]]))
SITE = Category(3, ("a",), np.array([[-1.5], [2.0], [0.0]]))
TABLE = Encoding(4, (2,), (COLOUR, SITE))
NAN = np.nan


def test_rows_are_expanded_to_numbers_flags_and_vectors() -> None:
    assert TABLE.numbers == (0, 2)
    assert TABLE.width == 6
    assert TABLE.counts.tolist() == [0, 2, 0, 1]
    X = np.array([[5, 0, 7, 0], [5, 1, NAN, NAN], [NAN, -1, 7, 1], [5, NAN, 7, 0.5], [5, 2, 7, 3]])
    wanted = [
        [5, 7, 0, 1, 0, -1.5],
        [5, NAN, 1, 0, 1, 0],
        [NAN, 7, 0, 0.25, 0.75, 2],
        [5, 7, 0, 0.5, 0.5, 2],
        [5, 7, 0, 0.25, 0.75, 2],
    ]
    np.testing.assert_array_equal(TABLE.expand(X), wanted)
    single = TABLE.expand(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, wanted)


def test_tables_of_folds_are_read_while_training_and_settled_after() -> None:
    blocks = np.concatenate([SITE.vectors, SITE.vectors + 10, SITE.vectors + 20])
    training = Encoding(1, (), (Category(0, ("a",), blocks),))
    codes = np.array([[0.0], [3], [7], [8], [-1], [NAN], [9]])
    assert training.expand(codes)[:, 0].tolist() == [-1.5, 8.5, 22, 20, 2, 0, 2]
    assert training.settled.categories[0].vectors.tolist() == SITE.vectors.tolist()
    settled = training.settled_codes(codes)
    np.testing.assert_array_equal(settled[:6, 0], [0, 0, 1, NAN, -1, NAN])
    np.testing.assert_array_equal(training.settled.expand(settled)[:6, 0], [-1.5, -1.5, 2, 0, 2, 0])


def test_ends_and_typical_rows() -> None:
    ends = TABLE.ends(np.array([0.0, 9, -1, 9]), np.array([1.0, 9, 2, 9]))
    assert ends.tolist() == [[0, -1, 0, 0, 0, -1.5], [1, 2, 1, 1, 1, 2]]
    rows = TABLE.rows_of(np.array([[1.0, 2], [3, 4], [5, 6]]))
    assert rows.tolist() == [[1, 0, 2, 0], [3, 1, 4, 0], [5, 0, 6, 0]]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("red", "red"), ("", ""), (np.str_("a"), "a"), (True, "True"), (np.bool_(False), "False"),
        (3, "3"), (np.int64(-3), "-3"), (3.0, "3"), (np.float32(3), "3"), (0.1, "0.1"),
        (np.float32(0.1), "0.1"), (Decimal("2.5"), "2.5"), (1e300, "1e+300"), (None, None),
        (NAN, None), (np.float32(NAN), None), (Decimal("NaN"), None),
    ],
)  # fmt: skip
def test_the_name_of_a_level(value: Any, name: str | None) -> None:
    assert level_of(value, "X") == name


@pytest.mark.parametrize("value", [b"red", 1j, datetime.date(2020, 1, 1), [1], {"a": 1}])
def test_what_names_no_level(value: Any) -> None:
    with pytest.raises(InputError, match="column 'a' holds"):
        COLOUR.encode([value], "column 'a'")


def test_values_are_encoded_by_name() -> None:
    levels = Category(0, ("1", "True", "a"), np.zeros((5, 1)))
    values = ["a", 1, 1.0, True, "True", "1", None, NAN, "b", False, "a"]
    np.testing.assert_array_equal(
        levels.encode(values, "X"), [2, 0, 0, 1, 1, 0, NAN, NAN, -1, -1, 2]
    )


names = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_record_survives_json(data: st.DataObject) -> None:
    inputs = data.draw(st.integers(1, 8))
    columns = sorted(data.draw(st.sets(st.integers(0, inputs - 1))))
    numbers = [k for k in range(inputs) if k not in columns]
    flagged = sorted(data.draw(st.sets(st.sampled_from(numbers)))) if numbers else []
    rng = np.random.default_rng(0)
    categories = []
    for column in columns:
        levels = data.draw(st.lists(names, unique=True, max_size=5))
        width = data.draw(st.integers(1, 3))
        table = rng.normal(size=(len(levels) + 2, width))
        categories.append(Category(column, tuple(levels), table))
    encoding = Encoding(inputs, tuple(flagged), tuple(categories))
    record = json.loads(json.dumps(encoding.to_json()))
    check_encoding(record, inputs)
    shapes = {name: values.shape for name, values in encoding.arrays().items()}
    assert without_tables(record, inputs).shapes(shapes) == shapes
    again = encoding_of(record, inputs, encoding.arrays())
    X = rng.integers(-1, 6, (20, inputs)) + np.where(rng.random((20, inputs)) < 0.2, NAN, 0)
    np.testing.assert_array_equal(again.expand(X), encoding.expand(X))
    assert again.expand(X).shape == (20, encoding.width)


RIGHT = TABLE.to_json()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "encoding = .* must be an object"),
        ({"flagged": []}, "lacks the field encoding.categories"),
        ({**RIGHT, "flagged": [4]}, "encoding.flagged has columns that are not in order, or not"),
        ({**RIGHT, "flagged": [2, 0]}, "encoding.flagged has columns that are not in order"),
        ({**RIGHT, "flagged": [1]}, "encoding.flagged names a category"),
        ({**RIGHT, "flagged": [True]}, "encoding.flagged = .* is garbled"),
        ({**RIGHT, "categories": RIGHT["categories"][::-1]}, "encoding.categories has columns"),
        ({**RIGHT, "categories": [{"column": 4, "levels": []}]}, "not in order, or not there"),
        ({**RIGHT, "categories": [{"column": -1, "levels": []}]}, "categories.0.column = -1"),
        ({**RIGHT, "categories": [{"column": 0, "levels": ["a", "a"]}]}, "has a level twice"),
        ({**RIGHT, "categories": [{"column": 0, "levels": [3]}]}, "categories.0.levels = "),
        ({**RIGHT, "categories": [{"column": 0, "levels": ["\ud800"]}]}, "categories.0.levels = "),
        ({**RIGHT, "categories": [{"column": 0, "levels": ["x" * 1_001]}]}, "levels = "),
        ({**RIGHT, "categories": [3]}, "encoding.categories = "),
    ],
)
def test_hostile_records_are_refused(record: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_encoding(record, 4)


def test_too_many_levels_are_refused() -> None:
    many = [{"column": k, "levels": [str(j) for j in range(33_000)]} for k in range(2)]
    with pytest.raises(InputError, match="more than 65536 levels"):
        check_encoding({"flagged": [], "categories": many}, 4)


@pytest.mark.parametrize("shape", [(), (4,), (4, 0), (4, 65), (4, 2, 1)])
def test_tables_that_are_no_matrix(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="encoding.0 has the shape"):
        without_tables(RIGHT, 4).shapes({"encoding.0": shape, "encoding.1": (3, 1)})
