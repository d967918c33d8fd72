"""The same windows of every kind of table and every kind of clock."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rdeepsense as rds

TABLE = {
    "t": np.arange(300) / 50,
    "x": np.sin(np.arange(300)).astype(np.float32),
    "n": (np.arange(300) % 7).astype(np.int16),
    "who": np.repeat(["zoe", "abe"], 150),
    "what": np.repeat([2, 1, 2], 100),
}
KINDS = {
    "dict": lambda table: table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "chunks": lambda table: pa.concat_tables([pa.table(table)[:100], pa.table(table)[100:]]),
}


def cut(table, **more):
    sensors = {"s": ["x", "n"]}
    return rds.windows(table, "t", sensors, "1s", "500ms", by="who", label="what", **more)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(kind):
    whole, w = cut(TABLE), cut(KINDS[kind](TABLE))
    assert np.array_equal(w[:], whole[:])
    assert w.y.tolist() == whole.y.tolist()
    assert w.groups["who"].tolist() == ["abe"] * 5 + ["zoe"] * 5
    assert w.starts.tolist() == whole.starts.tolist()
    assert str(w.report) == str(whole.report)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "chunks"])
def test_nulls_of_every_kind(kind):
    holes = {name: values.tolist() for name, values in TABLE.items()}
    holes["x"][60:80] = [None] * 20
    holes["what"][250:] = [None] * 50
    w = cut(KINDS[kind](holes))
    expected = TABLE | {"x": TABLE["x"].copy()}
    expected["x"][60:80] = np.nan
    expected["what"] = np.array(holes["what"], object)
    assert np.array_equal(w[:], cut(expected)[:])
    assert w.y.tolist() == cut(expected).y.tolist()
    assert w.report.lost_windows == cut(expected).report.lost_windows


@pytest.mark.parametrize(("unit", "each"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_whole_numbers_with_their_unit(unit, each):
    begin = 1_700_000_000 * each
    ticks = begin + np.arange(300) * 20_000_000 * each // 10**9
    table = TABLE | {"t": ticks}
    if unit == "s":
        with pytest.raises(rds.InputError, match="repeat a time"):
            cut(table, time_unit="s")
        return
    w = cut(table, time_unit=unit)
    assert np.array_equal(w[:], cut(TABLE)[:])
    assert np.allclose(w.starts, cut(TABLE).starts + 1_700_000_000)
    with pytest.raises(
        rds.InputError, match=r"column 't' holds whole numbers, with steps of \d+; say"
    ):
        cut(table)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dict"])
def test_dates_have_their_unit(kind):
    dates = np.datetime64("2024-05-01T10:00:00.000", "ms") + np.arange(300) * np.timedelta64(
        20, "ms"
    )
    w = cut(KINDS[kind](TABLE | {"t": dates}))
    assert np.array_equal(w[:], cut(TABLE)[:])
    assert w.starts[5] == np.datetime64("2024-05-01T10:00:00")
    assert w.ends[5] == np.datetime64("2024-05-01T10:00:00.980")
    with pytest.raises(rds.InputError, match="column 't' holds dates; leave it out"):
        cut(TABLE | {"t": dates}, time_unit="ms")


def test_what_is_no_table():
    with pytest.raises(rds.InputError, match="table is a ndarray; accepted: a table of pandas"):
        cut(np.zeros((3, 3)))
    with pytest.raises(rds.InputError, match="by: column 'who' holds no value in 1 rows"):
        cut(pd.DataFrame(TABLE | {"who": [None] + ["a"] * 299}))
