"""Tables with many columns: work grows as the columns do, counted rather than timed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.cli.columns import check_known, check_roles, inspect
from rdeepsense.cli.fit import _units
from rdeepsense.cli.inference import model_inputs
from rdeepsense.cli.reading.table import Table
from rdeepsense.data.checks import texts
from rdeepsense.data.parquet import first_repeated

WIDTHS = (30, 120)


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def named(width: int) -> list[str]:
    return [Name(f"x{number}") for number in range(width)]


def table(width: int) -> pl.DataFrame:
    values = np.random.default_rng(0).normal(size=(12, width))
    return pl.DataFrame({f"x{number}": values[:, number] for number in range(width)})


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Operations on a frame whose cost is that of all its columns."""
    counted: Counter[str] = Counter()

    def watch(name: str, original: Any) -> Any:
        def call(self: pl.DataFrame, *args: Any, **options: Any) -> Any:
            counted[name] += 1
            return original(self, *args, **options)

        return call

    for name in ("select", "with_columns", "lazy", "drop", "get_columns"):
        monkeypatch.setattr(pl.DataFrame, name, watch(name, getattr(pl.DataFrame, name)))
    for name in ("columns", "schema", "dtypes", "width"):
        getter = getattr(pl.DataFrame, name).fget
        monkeypatch.setattr(pl.DataFrame, name, property(watch(name, getter)))
    return counted


def test_queries_do_not_grow_with_columns(whole: Counter[str]) -> None:
    found = []
    for width in WIDTHS:
        frame = table(width)
        model = rds.RDeepSenseRegressor(missing="refuse", effort="quick")
        model.feature_names_in_ = np.array(frame.columns[1:], dtype=object)
        model.n_features_in_ = width - 1
        model.fitted_ = SimpleNamespace(
            inputs=SimpleNamespace(encoding=None, names=None), recipe=None
        )
        whole.clear()
        check_known(frame, frame.columns, "--ignore")
        assert len(inspect(frame, ["x0"]).inputs) == width - 1
        assert model_inputs(model, Table("wide", frame), []).extra == ["x0"]
        found.append({name: count for name, count in whole.items() if name != "width"})
    assert found[0] == found[1]
    assert found[0]["select"] > 0


@pytest.mark.parametrize(
    "work",
    [
        lambda names: check_known(table(len(names)), names, "--ignore"),
        lambda names: inspect(table(len(names) + 1), names),
        lambda names: check_roles(names, None, [Name(f"{name}z") for name in names]),
        lambda names: _units([f"{name}=V" for name in names], names),
        lambda names: texts("units", dict.fromkeys(names, "V"), len(names), names),
        first_repeated,
    ],
    ids=["check_known", "inspect", "check_roles", "_units", "texts", "first_repeated"],
)
def test_comparisons_grow_as_columns_do(work: Any) -> None:
    for width in WIDTHS:
        names = named(width)
        Name.compared = 0
        work(names)
        assert Name.compared <= 8 * width


def test_what_is_found_in_columns() -> None:
    frame = pl.DataFrame(
        {
            "whole": [1, 2, None],
            "single": pl.Series([2.5, None, 2.5], dtype=pl.Float32),
            "nan": [1.0, float("nan"), 1.0],
            "yes": [True, False, True],
            "text": ["a", "b", "c"],
            "empty": pl.Series([None] * 3, dtype=pl.Float64),
            "only nan": [float("nan")] * 3,
        }
    )
    found = inspect(frame, [])
    assert found.inputs == ["whole", "single", "nan", "yes", "text", "only nan"]
    assert found.constant == ["single", "nan"]
    assert found.missing == {"whole": 1, "single": 1, "nan": 1, "only nan": 3}
    assert (found.left_out, found.categories) == ({"empty": "no values"}, ["text"])


def test_the_first_name_twice() -> None:
    assert first_repeated(["a", "b", "c", "c", "b"]) == "b"
    assert first_repeated(["a", "b"]) is None
