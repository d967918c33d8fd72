"""fit on a folder of Parquet files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import rdeepsense as rds

QUICK = ("--epochs", 12, "--hidden", "16", "--memory", 1)


@pytest.fixture
def folder(parquet: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tables"
    path.mkdir()
    frame = pl.read_parquet(parquet)
    for number in range(4):
        frame[number * 100 : (number + 1) * 100].write_parquet(path / f"{number}.parquet")
    return path


def test_fit_then_predict_and_evaluate(run, folder: Path, tmp_path: Path) -> None:
    not_inputs = ("--ignore", "z", "--groups", "user")
    fitted = run(
        "fit", "--quick", "tables", "--target", "y", *not_inputs, *QUICK, "--json", "fit.json"
    )
    assert fitted.code == 0, fitted.err
    assert "rows      400 in 4 Parquet files, streamed" in fitted.out
    assert "inputs    3: a, b [V], same" in fitted.out
    assert "left out  label: text\n          site: text\n" in fitted.out
    assert "regression: y is numeric" in fitted.out
    assert "below: figures on the validation rows, which had a part in the choices" in fitted.out
    assert rds.load("model.safetensors").feature_names_in_.tolist() == ["a", "b [V]", "same"]
    written = json.loads((tmp_path / "fit.json").read_text())
    assert sum(written["rows"].values()) == 400
    assert written["validation"]["mae"]["value"] < 1.2
    table = folder / "0.parquet"
    assert run("predict", "model.safetensors", table, "-o", "p.csv").code == 0
    assert run("evaluate", "model.safetensors", table, "--target", "y").code == 0


def test_classes(run, folder: Path) -> None:
    fitted = run(
        "fit", "--quick", folder, "--target", "label", "--ignore", "y", "--ignore", "z", *QUICK
    )
    assert fitted.code == 0, fitted.err
    assert "classification: label is not numeric, so its values are classes" in fitted.out
    assert rds.load("model.safetensors").classes_.tolist() == ["high", "low", "mid"]


def test_ids_are_left_out_by_their_name(run, folder: Path) -> None:
    for path in folder.iterdir():
        frame = pl.read_parquet(path)
        frame.with_columns(row_id=pl.Series(range(100)), grid=pl.Series(range(100))).write_parquet(
            path
        )
    command = ("fit", "--quick", folder, "--target", "y", "--ignore", "z", *QUICK)
    fitted = run(*command)
    assert "inputs    5: a, b [V], user, same, grid" in fitted.out
    assert "row_id: an id by its name; --input row_id takes it" in fitted.out
    assert "verdict   none without test rows" in fitted.out
    forced = run(*command, "--input", "row_id", "-o", "m")
    assert "inputs    6: a, b [V], user, same, row_id, grid" in forced.out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--target", "nope"), "--target 'nope': there is no such column; the files have a, b [V]"),
        (("--target", "y", "--groups", "nope"), "--groups 'nope': there is no such column"),
        (("--target", "y", "--ignore", "nope"), "0.parquet: has no column 'nope' to ignore"),
        (("--target", "y", "--input", "nope"), "--input 'nope': there is no such column"),
        (("--target", "y", "--datetime", "hour"), "--datetime, --missing-mark and --time are for"),
        (("--target", "y", "--test-fraction", 0.1), "--test-fraction 0.1: is for a table in mem"),
    ],
)
def test_what_a_folder_does_not_take(run, folder: Path, options: tuple, problem: str) -> None:
    result = run("fit", "--quick", folder, *options)
    assert result.code == 1
    assert problem in result.err
    assert result.err.count("\n") == 1
