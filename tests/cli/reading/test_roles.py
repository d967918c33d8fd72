"""The one place where a column's role is decided."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from rdeepsense.cli.columns import inputs_of, inspect
from rdeepsense.cli.reading.columns import Role, assign, is_named_id
from rdeepsense.cli.sources import coded

N = 30
SHUFFLED = np.arange(N) * 7 % N  # 7 and 30 have no common divisor


def test_every_role(rng: np.random.Generator) -> None:
    frame = pl.DataFrame(
        {
            "row": np.arange(N),
            "a": rng.normal(size=N),
            "text": ["u", "v", "w"] * 10,
            "serial": [f"s{k}" for k in range(N)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)],
            "none": pl.Series([None] * N, dtype=pl.String),
            "marks": ["-"] * N,
            "list": [[1]] * N,
            "yes": [True, False] * 15,
            "level": pl.Series(["hi", "lo"] * 15, dtype=pl.Categorical),
            "y": rng.normal(size=N),
        }
    )
    given = {name: one.role for name, one in assign(frame, ["y"]).columns.items()}
    assert given == {
        "row": Role.id,
        "a": Role.number,
        "text": Role.category,
        "serial": Role.id,
        "day": Role.date,
        "none": Role.empty,
        "marks": Role.empty,
        "list": Role.other,
        "yes": Role.number,
        "level": Role.category,
        "y": Role.named,
    }
    found = assign(frame, ["y"])
    assert found.inputs == ["a", "text", "yes", "level"]
    assert set(found.left_out) == set(given) - {*found.inputs, "y"}
    assert all(found.left_out.values())


def test_numbers_in_order_are_kept_where_nothing_else_is_there(rng: np.random.Generator) -> None:
    frame = pl.DataFrame({"x": np.arange(N), "y": rng.normal(size=N)})
    assert assign(frame, ["y"]).inputs == ["x"]
    more = frame.with_columns(site=pl.lit("a"))
    assert assign(more, ["y"]).inputs == ["site"]
    assert assign(more, ["y"], forced=["x"]).inputs == ["x", "site"]


@pytest.mark.parametrize(
    ("values", "name", "left_out"),
    [
        (np.arange(N), "x", True),
        (np.arange(N)[::-1].copy(), "x", True),
        (np.arange(N) * 7 + 1_700_000_000, "x", True),
        (np.arange(N) // 2, "x", False),  # twice each
        (SHUFFLED, "x", False),
        (SHUFFLED, "id", True),
        (SHUFFLED, "Unnamed: 0", True),
        (SHUFFLED // 2, "id", False),  # says which group, not which row
        (np.arange(N) + 0.5, "x", False),
        (np.arange(9), "x", False),  # too few to tell
    ],
)
def test_ids(rng: np.random.Generator, values: np.ndarray, name: str, left_out: bool) -> None:
    rows = len(values)
    frame = pl.DataFrame({name: values, "b": rng.normal(size=rows), "y": rng.normal(size=rows)})
    assert (name in assign(frame, ["y"]).left_out) is left_out


def test_names_of_ids() -> None:
    for name in ("id", "ID", "user_id", "userId", "index", "row", "Unnamed: 0", "unnamed_1", "#id"):
        assert is_named_id(name), name
    for name in ("humid", "width", "grid", "arrow", "solid", "a", "Id_of_light"):
        assert not is_named_id(name), name


def test_texts_come_along(rng: np.random.Generator) -> None:
    frame = pl.DataFrame(
        {"site": ["u", None, "w"] * 10, "a": rng.normal(size=N), "y": rng.normal(size=N)}
    )
    found = inspect(frame, ["y"])
    assert (found.inputs, found.categories, found.left_out) == (["site", "a"], ["site"], {})
    given = inputs_of(found.frame, found.inputs, "refuse", found.categories)
    assert given.columns == ["site", "a"]
    assert given["site"].to_list() == frame["site"].to_list()
    numbers = coded(given, found.categories)
    assert numbers["site"].to_list()[:3] == [1.0, None, 2.0]


def test_groups_stay_as_they_are(rng: np.random.Generator) -> None:
    """A user called "guest" among numbers is a user, not a stray cell."""
    frame = pl.DataFrame({"user": ["1"] * 29 + ["guest"], "a": rng.normal(size=N)})
    found = assign(frame, ["user"])
    assert found.frame["user"].to_list() == ["1"] * 29 + ["guest"]
    assert not found.strays


@pytest.mark.parametrize(("rows", "role"), [(2, Role.id), (3, Role.category)])
def test_text_whose_values_hardly_recur_names_rows(
    rng: np.random.Generator, rows: int, role: Role
) -> None:
    serial = [f"s{k // rows}" for k in range(N)]
    frame = pl.DataFrame({"serial": serial, "a": rng.normal(size=N), "y": rng.normal(size=N)})
    found = assign(frame, ["y"])
    assert found.columns["serial"].role is role
    assert ("serial" in found.left_out) == (role is Role.id)
    assert assign(frame, ["y"], forced=["serial"]).categories == ["serial"]
