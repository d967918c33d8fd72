"""`rdeepsense adapt`: a few rows of a table, a model file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rdeepsense as rds


@pytest.fixture
def fitted(run: Any, csv: Path) -> Path:
    """A model of y, and `few.csv`: eight rows of a sensor that reads 4 too much."""
    done = run("fit", csv, "--target", "y", "--quick", "--epochs", 15, "--quiet")
    assert done.code == 0, done.err
    few = pl.read_csv(csv).head(8).with_columns(pl.col("y") + 4)
    few.write_csv(csv.parent / "few.csv")
    return csv.parent


def test_a_shifted_sensor(run: Any, fitted: Path) -> None:
    done = run(
        "adapt", "model.safetensors", "few.csv", "-o", "mine.safetensors", "--json", "a.json"
    )
    assert done.code == 0, done.err
    assert "labels    8" in done.out
    assert "prior     a default: the model was fitted without groups" in done.out
    assert "y: shifted by +" in done.out
    assert "learnt from these very rows" in done.out
    assert "wrote mine.safetensors" in done.out
    facts = json.loads((fitted / "a.json").read_text())
    assert 1 < facts["shift"]["y"] < 4
    assert facts["labels"] == facts["rows"] == 8
    rows = facts["these_rows"]
    assert rows["after"]["y"]["mae"]["value"] < rows["before"]["y"]["mae"]["value"]
    mine: Any = rds.load(fitted / "mine.safetensors")
    assert mine.fitted_.correction.labels == 8
    again = run("adapt", "mine.safetensors", "few.csv", "-o", "more.safetensors", "--json", "-")
    assert json.loads(again.out)["labels"] == 16
    assert "8 after 8 that it had learnt from before" in again.err
    for command in (("predict", "mine.safetensors", "few.csv"), ("inspect", "mine.safetensors")):
        said = run(*command)
        assert said.code == 0, said.err
    assert "adapted   by 8 labels" in run("inspect", "mine.safetensors").out


def test_classes(run: Any, csv: Path) -> None:
    run("fit", csv, "--target", "label", "--quick", "--epochs", 5, "--quiet")
    done = run("adapt", "model.safetensors", csv, "-o", "mine.safetensors")
    assert done.code == 0, done.err
    assert "accuracy" in done.out
    assert "shifted" not in done.out


def test_what_is_refused(run: Any, fitted: Path) -> None:
    model = ("adapt", "model.safetensors", "few.csv", "-o")
    assert "would overwrite the input" in run(*model, "model.safetensors", "--overwrite").err
    (fitted / "there").write_text("x")
    assert "is there already; --overwrite replaces it" in run(*model, "there").err
    assert (fitted / "there").read_text() == "x"
    assert run(*model, "there", "--overwrite", "--quiet").out == ""
    assert "'nothing'" in run(*model, "mine", "--target", "nothing").err
    assert not (fitted / "mine").exists()
    assert run("export", "there", "--to", "folded", "-o", "f").code == 0
