"""Rows that lack values, on the command line: which are answered, and what is said then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

QUICK = ("--quick", "--target", "y", "--epochs", 2, "--hidden", 4)
ROWS = 120


@pytest.fixture
def tables(run: Any) -> pl.DataFrame:
    """Write `t.csv`, whose column a has holes, and `new.csv`, where b and the site have some."""
    table = pl.DataFrame(
        {
            "site": [["north", "south", "east"][k % 3] for k in range(ROWS)],
            "a": [None if k % 7 == 3 else k % 11 / 3 for k in range(ROWS)],
            "b": [k * k % 17 / 5 for k in range(ROWS)],
            "y": [k % 11 + k % 3 + k * k % 17 / 9 for k in range(ROWS)],
        }
    )
    table.write_csv("t.csv")
    new = pl.DataFrame(
        {
            "site": ["north", "mars", None, "east"],
            "a": [None, 1.0, 2.0, 3.0],
            "b": [1.0, 2.0, 3.0, None],
            "y": [1.0, 2.0, 3.0, 4.0],
        }
    )
    new.write_csv("new.csv")
    return new


def test_rows_without_an_answer_are_marked_and_the_others_answered(
    run: Any, tables: pl.DataFrame
) -> None:
    fitted = run("fit", "t.csv", *QUICK)
    assert "missing   a 17, imputed, with a missing-value indicator" in fitted.out
    assert "category  1: site" in fitted.out
    done = run("predict", "model.safetensors", "new.csv", "-o", "p.csv")
    assert done.code == 0, done.err
    assert "no answer 2 rows: a required value is missing" in done.out
    found = pl.read_csv("p.csv")
    assert found["status"].to_list() == ["ok", "unknown level: site", "missing: site", "missing: b"]
    assert found["mean_y"].is_null().to_list() == [False, False, True, True]
    tables[:2].write_csv("whole.csv")
    run("predict", "model.safetensors", "whole.csv", "-o", "w.csv")
    assert pl.read_csv("w.csv").equals(found[:2])
    shown = run("predict", "model.safetensors", "new.csv").out
    assert "missing: site" in shown
    assert "None" not in shown


def test_only_rows_with_an_answer_are_scored(run: Any, tables: pl.DataFrame) -> None:
    run("fit", "t.csv", *QUICK)
    done = run("evaluate", "model.safetensors", "new.csv")
    assert "no answer 2 rows" in done.out
    assert "Figures on 2 rows of new.csv" in done.out
    tables[2:].write_csv("none.csv")
    refused = run("predict", "model.safetensors", "none.csv")
    assert refused.code == 1
    assert "missing values in all 2 rows, where the training rows had none" in refused.err


def test_a_hole_in_a_test_row_alone_costs_that_row(run: Any) -> None:
    table = pl.DataFrame(
        {"a": [float(k * k % 23) for k in range(ROWS)], "y": [k % 5 for k in range(ROWS)]}
    )
    table.write_csv("t.csv")
    for row in range(ROWS):
        holed = table.with_columns(
            pl.when(pl.int_range(pl.len()) == row).then(None).otherwise(pl.col("a")).alias("a"),
            b=pl.int_range(pl.len()) * 7 % 31,
        )
        holed.write_csv("t.csv")
        done = run("fit", "t.csv", *QUICK, "--overwrite", "--epochs", 1)
        assert done.code == 0, done.err
        if "no answer 1 row: a required" in done.out:
            assert Path("model.safetensors").exists()
            return
    pytest.fail("no row was kept for the test")
