"""Columns of every library and kind: the right numbers and labels, or a refusal that names them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rdeepsense as rds
from rdeepsense.data.columns import GROUPS, LABELS, NUMBERS, as_numpy
from rdeepsense.errors import InputError

VALUES: dict[str, list[Any]] = {
    "lists": [[1], [0], [1]],
    "structs": [{"a": 1}, {"a": 0}, {"a": 1}],
    "durations": [dt.timedelta(seconds=s) for s in (1, 0, 1)],
    "dates or times": [dt.datetime(2020, 1, day) for day in (2, 1, 2)],
    "bytes": [b"\xffa", b"b", b"\xffa"],
    "decimals": [Decimal("1.00"), Decimal(0), Decimal(1)],
    "fractions": [Decimal("1.5"), Decimal(0), Decimal("1.5")],
    "whole numbers": [1, 0, 1],
    "yes/no": [True, False, True],
    "text": ["b", "a", "b"],
}
LIBRARIES: dict[str, Callable[[list[Any]], Any]] = {
    "objects": lambda values: _objects(values),
    "pandas": lambda values: pd.Series(values, name="c"),
    "pandas table": lambda values: pd.DataFrame({"c": values}),
    "pandas, arrow": lambda values: pd.Series(pa.array(values), name="c").astype(
        pd.ArrowDtype(pa.array(values).type)
    ),
    "polars": lambda values: pl.Series("c", values),
    "polars table": lambda values: pl.DataFrame({"c": values}),
    "arrow": pa.array,
    "arrow table": lambda values: pa.table({"c": values}),
}
REFUSED = ("lists", "structs", "durations", "dates or times", "bytes")
everywhere = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES.keys())


def _objects(values: list[Any]) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@everywhere
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("accepted", [NUMBERS, LABELS])
def test_what_is_no_number_or_label_is_refused_by_name(library, kind, accepted) -> None:
    with pytest.raises(InputError, match=rf"y.* holds {kind} \(.+\); accepted: {accepted}"):
        as_numpy("y", library(VALUES[kind]), accepted)


@everywhere
def test_numbers_are_numbers_in_every_library(library) -> None:
    for kind in ("decimals", "whole numbers", "yes/no"):
        for accepted in (NUMBERS, LABELS, GROUPS):
            found = as_numpy("y", library(VALUES[kind]), accepted)
            assert found.astype(np.float64).ravel().tolist() == [1.0, 0.0, 1.0]
            assert accepted == NUMBERS or found.dtype.kind in "bif"
    fractions = as_numpy("y", library(VALUES["fractions"]), NUMBERS)
    assert fractions.astype(np.float64).ravel().tolist() == [1.5, 0.0, 1.5]
    assert as_numpy("y", library(VALUES["text"]), LABELS).ravel().tolist() == ["b", "a", "b"]
    with pytest.raises(InputError, match="holds text, such as 'b'; accepted: numbers"):
        as_numpy("y", library(VALUES["text"]), NUMBERS)


@everywhere
@pytest.mark.parametrize("kind", ["durations", "dates or times", "bytes", "text", "decimals"])
def test_groups_are_told_apart_by_whatever_has_an_order(library, kind) -> None:
    groups = as_numpy("groups", library(VALUES[kind]), GROUPS)
    assert np.unique(groups, return_inverse=True)[1].ravel().tolist() == [1, 0, 1]


def test_128_bits() -> None:
    small, large = pl.Series("c", [1, 0], dtype=pl.Int128), pl.Series("c", [10**30, 0])
    assert as_numpy("y", small, LABELS).tolist() == [1, 0]
    assert as_numpy("y", small, LABELS).dtype == np.int64
    assert as_numpy("y", large.to_frame(), NUMBERS).ravel().tolist() == [1e30, 0.0]
    with pytest.raises(InputError, match=r"column 'c', .* 1000000000000000000000000000000, which"):
        as_numpy("y", large, LABELS)


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT])
def test_nothing_has_a_place(nothing) -> None:
    for values in (["a", nothing, "b"], [1, nothing, 2]):
        for accepted in (LABELS, GROUPS):
            with pytest.raises(InputError, match="holds no value in row 1"):
                as_numpy("y", _objects(values), accepted)
    assert np.isnan(as_numpy("y", _objects([1, nothing, Decimal(2)]), NUMBERS)).tolist() == [
        0,
        1,
        0,
    ]


def test_kinds_are_not_mixed_and_names_may_repeat() -> None:
    with pytest.raises(InputError, match="holds int and str; accepted"):
        as_numpy("y", _objects([1, "a"]), LABELS)
    table = pd.DataFrame([[1, 2.5], [3, 4.5]], columns=["a", "a"])
    assert as_numpy("y", table, NUMBERS).tolist() == [[1, 2.5], [3, 4.5]]


def test_classes_that_could_not_be_saved_are_refused_before_the_fit() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    days = np.where(X[:, 0] > 0, np.datetime64("2020-01-01"), np.datetime64("2020-01-02"))
    model = rds.RDeepSenseClassifier(hidden=(4,), epochs=1, verbose=False, effort="quick")
    with pytest.raises(InputError, match=r"dates or times \(datetime64\[D\]\).*as text"):
        model.fit(X, days)
    model.fit(X, days.astype(str))
    with pytest.raises(InputError, match=r"y holds 1e\+150; accepted: .*64 bits"):
        model.fit(X, np.where(X[:, 0] > 0, 1e150, 0.0))
    with pytest.raises(InputError, match="y holds no labels: .*continuous"):
        model.fit(X, X[:, 0])
    with pytest.raises(InputError, match="groups holds dates or times"):
        model.conformalise(X, days.astype(str), groups=days)
