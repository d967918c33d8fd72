"""What cannot be used is refused by an error of ours, which names the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from first_contact.test_live import SETTINGS, rows

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates


@pytest.fixture
def model(fitted: Callable[..., Any]) -> Any:
    return fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("coverage", value) for value in (None, "a", np.nan, True, [0.9])],
        *[("forget", value) for value in ("a", np.nan, [None], {"a": 1})],
        *[("alarm", value) for value in (None, "x", np.nan, 10**400)],
        *[("pending", value) for value in (None, "a", np.nan, 2.5, True)],
        ("rates", 3),
        ("rates", {"rows": 3}),
        ("state", 3),
        ("labels", None),
    ],
)
def test_settings_of_a_live_model(model: Any, name: str, value: Any) -> None:
    with pytest.raises(rds.InputError, match=f"^{name} = "):
        model.live(**{name: value})


@pytest.mark.parametrize("value", [-1, "a", None, (), (1.5,), np.nan])
@pytest.mark.parametrize("name", ["rows", "within", "keep", "eta"])
def test_rates(name: str, value: Any) -> None:
    with pytest.raises(rds.InputError, match=f"^{name} = "):
        Rates(**{name: value})


@pytest.mark.parametrize("x", [None, np.nan, "abc", {}, [[]], [10**400, 0, 0], object()])
def test_rows_of_a_live_model(model: Any, x: Any) -> None:
    live = model.live()
    with pytest.raises(rds.InputError, match=r"\bx\b"):
        live.predict(x)
    assert live.rows == 0


FITS: dict[str, tuple[dict[str, Any], str]] = {
    "one number as groups": ({"groups": 3}, "groups is one value, 3"),
    "one text as groups": ({"groups": "name"}, "groups is one value, 'name'"),
    "a huge weight": ({"sample_weight": np.full(100, 1e308)}, "sample_weight .* 1e\\+308"),
    "a tiny weight": ({"sample_weight": np.full(100, 1e-320)}, "sample_weight .* 1e-100 to"),
    "groups of two columns": ({"groups": np.zeros((100, 2))}, "groups has the shape"),
    "too few groups": ({"groups": [0] * 99}, "groups has 99 rows"),
}


@pytest.mark.parametrize("name", FITS)
def test_arguments_of_fit(name: str) -> None:
    more, words = FITS[name]
    with pytest.raises(rds.InputError, match=words):
        rds.RDeepSenseRegressor(**SETTINGS).fit(*rows(100), **more)


def test_tables_that_cannot_be_read(model: Any) -> None:
    X, y = rows(100)
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(rds.InputError, match="two columns named 'a'"):
        rds.RDeepSenseRegressor(**SETTINGS).fit(twice, y)
    lazy = pl.DataFrame(X).lazy()
    for call in (
        lambda: rds.RDeepSenseRegressor(**SETTINGS).fit(lazy, y),
        lambda: model.predict(lazy),
        lambda: model.live().predict(lazy),
        lambda: rds.windows(lazy, "t", {"s": ["a"]}, "1s"),
    ):
        with pytest.raises(rds.InputError, match=r"LazyFrame.*collect\(\)"):
            call()


def test_other_arguments(model: Any, tmp_path: Path) -> None:
    with pytest.raises(rds.InputError, match="sensors = None"):
        rds.windows({"t": [0.0]}, "t", None, "1s")  # type: ignore[arg-type]
    for name in (None, 3, ""):
        with pytest.raises(rds.InputError, match="name ?="):
            rds.export(model, tmp_path / "p", to="package", name=name)


def test_a_device_that_is_not_there(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name in ("cuda", "cuda:3", "quantum", 3):
        with pytest.raises(rds.InputError, match="device = "):
            rds.RDeepSenseRegressor(**{**SETTINGS, "device": name}).fit(*rows(100))
