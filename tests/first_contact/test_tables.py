"""Tables as people have them, on the command line: rows without a target, and dates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.conftest import run as command
from first_contact.test_live import rows

__all__ = ["command"]
QUICK = ("--quick", "--epochs", 2, "--hidden", 4, "--device", "cpu", "-o", "m.st", "--overwrite")


@pytest.fixture
def holes() -> pl.DataFrame:
    """Every tenth row lacks its target, in a number and in a text."""
    X, y = rows(200)
    absent = np.arange(200) % 10 == 3
    return pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
        y=pl.Series([None if gone else value for gone, value in zip(absent, y, strict=True)]),
        what=pl.Series([None if gone else "lo" if value < 20 else "hi"
                        for gone, value in zip(absent, y, strict=True)]),
    )  # fmt: skip


@pytest.mark.parametrize(("target", "kind"), [("y", "csv"), ("what", "csv"), ("y", "json")])
def test_rows_without_a_target_are_left_out_and_said(
    command: Callable[..., Any], holes: pl.DataFrame, target: str, kind: str
) -> None:
    other = "what" if target == "y" else "y"
    if kind == "csv":
        holes.drop(other).write_csv("t.csv", null_value="NA")
    else:
        Path("t.json").write_text(json.dumps(holes.drop(other).to_dicts()))
    said = f"20 of 200 rows lack a value of '{target}' and are left out"
    done = command("fit", f"t.{kind}", "--target", target, *QUICK, "--json", "f.json")
    assert done.code == 0, done.err
    assert said in done.out
    assert "rows      180" in done.out
    for more in (("evaluate", "m.st", f"t.{kind}"), ("check", f"t.{kind}", "--target", target)):
        done = command(*more)
        assert done.code == 0, done.err
        assert said in done.out
    again = command("adapt", "m.st", f"t.{kind}", "-o", "mine.st")
    assert again.code == 0, again.err
    assert said in again.out


def test_a_table_without_any_target_is_refused(
    command: Callable[..., Any], holes: pl.DataFrame
) -> None:
    holes.with_columns(y=pl.lit(None, pl.Float64)).write_csv("t.csv")
    done = command("fit", "t.csv", "--target", "y", *QUICK)
    assert done.code == 1
    assert "--target: no row has a value of 'y'" in done.err
