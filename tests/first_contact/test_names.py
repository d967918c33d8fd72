"""Names of columns and classes, which may be anything: printed, compared and told apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cli.conftest import run as command
from first_contact.test_live import SETTINGS, rows

import rdeepsense as rds

__all__ = ["command"]
EVIL = "\x1b[2J\x1b[31mEVIL\x1b]0;t\x07"


def controls(text: str) -> set[str]:
    return {one for one in text if unicodedata.category(one) in ("Cc", "Cf")} - {"\n"}


def test_names_do_nothing_to_the_terminal(
    command: Callable[..., Any], fitted: Callable[..., Any], tmp_path: Path
) -> None:
    X, y = rows(400)
    names = [EVIL, "\x9b31m", "left\u202eright"]
    frame = pl.DataFrame(X, schema=names)
    label = np.where(y > 20, EVIL, "\x9dlow")
    model = fitted(rds.RDeepSenseClassifier(**SETTINGS), frame, label)
    model.save(tmp_path / "m.st")
    frame.with_columns(pl.Series("y", label)).write_parquet(tmp_path / "t.parquet")
    frame.drop(EVIL).write_parquet(tmp_path / "less.parquet")
    calls: list[list[Any]] = [
        ["inspect", "m.st"],
        ["evaluate", "m.st", "t.parquet", "--target", "y"],
        ["predict", "m.st", "t.parquet", "-o", "p.csv"],
        ["predict", "m.st", "less.parquet", "-o", "q.csv"],
        ["fit", "t.parquet", "--target", EVIL, "--quick", "--epochs", "1", "-o", "n.st"],
        ["fit", "t.parquet", "--target", "\x1b[0m", "--quick", "-o", "o.st"],
        ["export", "m.st", "-o", "c", "--to", "c99"],
    ]
    codes = []
    for call in calls:
        done = command(*call)
        codes.append(done.code)
        assert controls(done.out + done.err) == set(), call[0]
    assert codes == [0, 0, 0, 1, 1, 1, 0]
    assert "\\x1b[2J" in command("inspect", "m.st").out


@pytest.mark.parametrize("name", [EVIL, "a\0b", "\x9b31m"])
def test_describe_refuses_control_characters(model: Any, name: str) -> None:
    for what in ("target_names", "target_units"):
        with pytest.raises(rds.InputError, match=f"{what}: .* holds a control character"):
            model.describe(**{what: [name]})
    model.describe(target_names=["temp\n[°C]"], target_units=["m\u202fs⁻¹"])


@pytest.fixture
def model(fitted: Callable[..., Any]) -> Any:
    return fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))


@pytest.fixture
def deployed(fitted: Callable[..., Any], tmp_path: Path) -> Any:
    X, y = rows(400)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 1] > 0, "x", "y"))
    own = fitted(rds.RDeepSenseRegressor(**SETTINGS), table, y)
    rds.export(own, tmp_path / "m.folded")
    return rds.deploy.load(tmp_path / "m.folded")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_deployed_model_takes_columns_by_name(deployed: Any, kind: str) -> None:
    X, _ = rows(20, 1)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 1] > 0, "x", "y"))
    make: Any = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    wanted = deployed.predict(table)
    np.testing.assert_array_equal(deployed.predict(make[kind](table[["d", "c", "a", "b"]])), wanted)
    for other, words in (
        (
            table.rename(columns={"b": "B"}),
            r"X lacks 'b' \(did you mean 'B'\?\) and has",
        ),
        (table.drop(columns="c"), "X lacks 'c'; the inputs are a, b, c, d"),
        (table.assign(e=1.0), "X has 'e', which is no input"),
    ):
        with pytest.raises(rds.InputError, match=words):
            deployed.predict(make[kind](other))
    np.testing.assert_array_equal(deployed.predict(table.to_numpy()), wanted)


def test_the_nearest_name_is_offered(command: Callable[..., Any], tmp_path: Path) -> None:
    X, y = rows(100)
    frame = pl.DataFrame(X, schema=["temp_max", "temp_min", "rain"]).with_columns(y=y)
    frame.write_csv(tmp_path / "t.csv")
    frame.rename({"temp_min": "TempMin"}).write_csv(tmp_path / "u.csv")
    fit = ("fit", "t.csv", "--quick", "--epochs", "1", "-o", "m.st")
    assert command(*fit, "--target", "y").code == 0
    for call, words in (
        ((*fit, "--target", "tempmax"), "(did you mean 'temp_max'?); the table has temp_max,"),
        (("predict", "m.st", "u.csv", "-o", "p.csv"), "'temp_min' (did you mean 'TempMin'?);"),
        ((*fit, "--target", "y", "--ignore", "wind"), "there is no such column; the table"),
    ):
        done = command(*call)
        assert done.code == 1
        assert words in done.err
    with pytest.raises(rds.InputError, match=r"'Time' \(did you mean 'time'\?\)"):
        rds.windows({"time": [0.0], "x": [0.0]}, "Time", {"s": "x"}, "1s")
