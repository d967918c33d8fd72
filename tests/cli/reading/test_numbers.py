"""Numbers in text: points, commas, thousands; few stray cells are named, many make it text."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdeepsense.cli.reading.columns import COMMA, POINT, THOUSANDS, numbers_in


def read(cells: list[str | None], comma_separated: bool = True, **options: float):
    frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)})
    return numbers_in(frame, comma_separated, **options)


@pytest.mark.parametrize(
    ("cells", "comma_separated", "way", "values"),
    [
        (["1.5", " 2 ", "-3e2"], True, POINT, [1.5, 2.0, -300.0]),
        (["1,5", "2", "-0,25"], False, COMMA, [1.5, 2.0, -0.25]),
        (["1,5", "2", "-0,25"], True, COMMA, [1.5, 2.0, -0.25]),  # in quotes
        (["1.234,5", "12"], False, COMMA, [1234.5, 12.0]),
        (["1,234", "5,678"], True, THOUSANDS, [1234.0, 5678.0]),
        (["1,234", "5,678"], False, COMMA, [1.234, 5.678]),
        (["1,234.5", "12"], False, THOUSANDS, [1234.5, 12.0]),
        (["1.234", "5.678"], False, POINT, [1.234, 5.678]),  # no comma anywhere
        (["\u22121.5", "1"], True, POINT, [-1.5, 1.0]),
        (["1\u00a0234,5", "2"], False, COMMA, [1234.5, 2.0]),
        (["1.5", "n/a", None, "?"], True, POINT, [1.5, None, None, None]),
    ],
)
def test_readings(cells: list, comma_separated: bool, way: str, values: list) -> None:
    found = read(cells, comma_separated)
    assert found.read_as == {"x": way}
    assert found.columns["x"].to_list() == values
    assert not found.strays


def test_mostly_whole_numbers_with_some_decimal_commas() -> None:
    """Three of a hundred cells would be strays with a point: the comma leaves none."""
    found = read(["7"] * 97 + ["7,5"] * 3, comma_separated=False)
    assert found.read_as == {"x": COMMA}
    assert found.columns["x"][99] == 7.5


@pytest.mark.parametrize(("bad", "numeric"), [(1, True), (5, True), (6, False)])
def test_five_percent_of_the_filled_cells(bad: int, numeric: bool) -> None:
    cells = ["1.5"] * (100 - bad) + ["err"] * bad + ["NA"] * 400
    found = read(cells)
    assert ("x" in found.columns) is numeric
    if numeric:
        assert (found.strays["x"].cells, found.strays["x"].filled) == (bad, 100)
        assert found.strays["x"].first[0] == (100 - bad, "err")
        assert str(found.strays["x"]).startswith(f"{bad} of 100 cells: row {100 - bad} 'err'")
    else:
        assert found.texts == {"x": "err"}


def test_a_column_that_is_known_to_be_numbers_keeps_what_is_there() -> None:
    found = read(["err"] * 9 + ["1.5"], most=1.0)
    assert found.columns["x"][9] == 1.5
    assert (
        str(found.strays["x"]) == "9 of 10 cells: row 0 'err', row 1 'err', row 2 'err' and 6 more"
    )
    assert "x" not in read(["err"] * 10, most=1.0).columns
    assert read([None, "-"]).texts == {"x": ""}


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30), st.booleans(), st.booleans())
@example([1.234, 0.5], True, True)  # one cell shows that 1,234 has decimals
@example([1.234], True, False)
@example([5e-324, -0.0], True, True)
def test_what_is_written_is_read(values: list[float], comma: bool, comma_separated: bool) -> None:
    texts = [repr(value).replace(".", ",") if comma else repr(value) for value in values]
    if comma and comma_separated and all(len(t.partition(",")[2]) == 3 for t in texts):
        return  # 1,234 in a table that commas separate is 1234
    found = read(texts, comma_separated)
    np.testing.assert_array_equal(found.columns["x"].to_numpy(), values)


def test_columns_do_not_mix() -> None:
    frame = pl.DataFrame({"a": ["1,5", "2,5"], "b": ["x", "y"], "c": ["1.5", "2"], "d": ["1", "z"]})
    found = numbers_in(frame, False)
    assert {name: column.to_list() for name, column in found.columns.items()} == {
        "a": [1.5, 2.5],
        "c": [1.5, 2.0],
    }
    assert found.texts == {"b": "x", "d": "z"}
