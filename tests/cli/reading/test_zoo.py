"""Every awkward table is read as expected or refused with the reason; nothing is silent."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.reading.readable import READABLE
from cli.reading.refused import REFUSED
from cli.reading.zoo import ROWS, Animal, columns, csv, when

from rdeepsense.cli.reading.columns import assign
from rdeepsense.cli.reading.table import read_table

ZOO = READABLE + REFUSED
CHANGED = 7  # cells at most that an animal changes in a column
QUICK = ("--quick", "--target", "y", "--epochs", 1, "--hidden", 2, "--json", "fit.json")


def test_there_are_sixty() -> None:
    assert len(ZOO) >= 60
    assert len({animal.name for animal in ZOO}) == len(ZOO)


@pytest.mark.everyday(12, "slow")
@pytest.mark.parametrize("animal", ZOO, ids=lambda animal: animal.name)
def test_animal(run: Any, animal: Animal, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec(animal.needs) is None:
        pytest.skip(f"needs {animal.needs}")
    path = Path(animal.file)
    path.write_bytes(animal.build())
    result = run("fit", path, *QUICK, *animal.options)
    assert "Traceback" not in result.err
    shown = result.out + result.err
    assert all(words in shown for words in animal.said), shown
    if not animal.inputs:
        assert result.code == 1
        assert result.err.startswith("error: ")
        assert result.err.count("\n") == 1
        assert not Path("model.safetensors").exists()
        return
    assert result.code == 0, shown
    assert all(line.startswith("warning: ") for line in result.err.splitlines())
    written = json.loads(Path("fit.json").read_text())
    assert tuple(written["inputs"]) == animal.inputs
    # No column is lost without a word.
    assert all(f"{name}: {why}" in result.out for name, why in written["left_out"].items())
    # A model reads the table that it was fitted on, and answers every row.
    marks = animal.options[-2:] if "--missing-mark" in animal.options else ()
    again = run("predict", "model.safetensors", path, "-o", "p.csv", *marks)
    assert again.code == 0, again.err
    rows = written["rows"]
    if rows["train"] == rows["validation"]:  # few rows are cross-validated: the same rows do both
        del rows["validation"]
    assert len(Path("p.csv").read_text().splitlines()) == sum(rows.values()) + 1
    # Read in pieces of a few rows it is the same table, and the same is said of it.
    monkeypatch.setattr("rdeepsense.cli.predict.LARGE", 0)
    monkeypatch.setattr("rdeepsense.cli.predict.rows_at_once", lambda *_: 7)
    pieces = run("predict", "model.safetensors", path, "-o", "pieces.csv", *marks)
    assert pieces.code == 0, pieces.err
    assert Path("pieces.csv").read_bytes() == Path("p.csv").read_bytes()
    said = [line for line in pieces.out.splitlines() if not line.startswith(("runs ", "read "))]
    assert sorted(said) == sorted(again.out.replace("p.csv", "pieces.csv").splitlines())


@pytest.mark.parametrize("animal", READABLE[:-1], ids=lambda animal: animal.name)
def test_values_are_those_that_were_written(animal: Animal, tmp_path: Path) -> None:
    if importlib.util.find_spec(animal.needs) is None:
        pytest.skip(f"needs {animal.needs}")
    path = tmp_path / animal.file
    path.write_bytes(animal.build())
    table = read_table(path)
    roles = assign(table.frame, [], comma_separated=table.comma_separated)
    for name in {"a", "b"} & set(roles.inputs) & set(animal.inputs):
        wanted = np.array(columns()[name])
        found = roles.frame[name].cast(pl.Float64).to_numpy()
        assert (found == wanted).sum() >= ROWS - CHANGED


def test_a_model_finds_its_columns_in_another_spelling(run: Any) -> None:
    """Fitted with points and ISO dates; asked with commas, other dates, another order."""
    rng = np.random.default_rng(0)
    volt, hours = rng.normal(size=60).round(3), np.arange(60)
    days = [when(int(hour)) for hour in hours]
    fitted = pl.DataFrame({"t": [str(day) for day in days], "volt": volt, "y": volt})
    fitted.write_csv("fit.csv")
    parts = ("--datetime", "hour,weekday")
    assert run("fit", "fit.csv", *QUICK, *parts).code == 0
    texts = [f"{value:.3f}".replace(".", ",") for value in volt]
    other = {"more": hours, "volt": texts, "t": [f"{day:%d.%m.%Y %H:%M}" for day in days]}
    pl.DataFrame(other).write_csv("other.csv", separator=";")
    for name in ("fit", "other"):
        assert run("predict", "model.safetensors", f"{name}.csv", "-o", f"{name}.out.csv").code == 0
    one, two = (pl.read_csv(f"{name}.out.csv")["mean_y"] for name in ("fit", "other"))
    np.testing.assert_array_equal(one.to_numpy(), two.to_numpy())
    pl.DataFrame(other).drop("t").write_csv("less.csv", separator=";")
    lacking = run("predict", "model.safetensors", "less.csv")
    assert lacking.err == (
        "error: the model needs the column 't', for 't (hour sin)'; the table has more, volt\n"
    )


def test_a_stray_cell_at_prediction_is_missing(run: Any) -> None:
    """However many there are: the model knows that the column holds numbers."""
    Path("t.csv").write_text(csv())
    assert run("fit", "t.csv", *QUICK, "--missing", "mean").code == 0
    Path("few.csv").write_text("a,b\n1.5,0.5\nerr,0.5\nerr,0.5\n")
    found = run("predict", "model.safetensors", "few.csv", "-o", "p.csv")
    assert found.code == 0
    assert "no number a: 2 of 3 cells: row 1 'err', row 2 'err'" in found.out
    rows = pl.read_csv("p.csv")["mean_y"].to_list()
    assert rows[0] != rows[1] == rows[2]
    Path("few.csv").write_text("a,b,y\n1.5,0.5,1\nerr,0.5,2\nerr,0.5,3\n")
    strays = run("evaluate", "model.safetensors", "few.csv", "--target", "y", "--overwrite")
    assert strays.code == 0


def test_excel_without_its_library(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile("t.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    result = run("fit", "--quick", "t.xlsx", "--target", "y")
    assert (result.code, result.err) == (
        1,
        "error: openpyxl is not installed; it comes with: pip install 'rdeepsense[tables]'\n",
    )
