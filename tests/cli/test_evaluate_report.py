"""`rdeepsense evaluate --report`: from a model file and a table to a page, and what is refused."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds

QUICK = ("--quick", "--epochs", 15, "--hidden", 8, "--device", "cpu", "--overwrite", "--quiet")
PAGE = ("--report", "page.html", "--overwrite")


@pytest.fixture
def fitted(run: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    a, b, e = rng.normal(size=(3, 600))
    start = np.datetime64("2024-01-01", "ms")
    frame = pl.DataFrame({
        "when": start + np.arange(600) * np.timedelta64(3_600_000, "ms"),
        "a": a, "b": b, "user": np.arange(600) // 60, "y": 3 * a - b + 0.5 * e,
    })  # fmt: skip
    frame.write_csv("t.csv")
    told = run("fit", "t.csv", "--target", "y", "--ignore", "user", "--unit", "y=mm", *QUICK)
    assert told.code == 0, told.err
    return frame


def test_a_page_from_a_file_and_a_table(run: Any, fitted: pl.DataFrame) -> None:
    done = run("evaluate", "model.safetensors", "t.csv", "--groups", "user", *PAGE,
               "--json", "e.json")  # fmt: skip
    assert done.code == 0, done.err
    assert "wrote page.html" in done.out
    html = Path("page.html").read_text()
    assert "<h1>model.safetensors: can you trust its predictions of y?</h1>" in html
    for words in ("Rows of t.csv (SHA-256 ", "mean absolute error (mm)",
                  "coverage by when", "coverage by user"):  # fmt: skip
        assert words in html
    told = json.loads(Path("e.json").read_text())
    found = told["verdict"]["y"]
    words = f"kill {found['skill']}, calibration {found['calibration']}"
    assert f"verdict   s{words}\n          {found['skill_sentence']}\n" in done.out
    assert f"<strong>S{words}</strong>" in html


@pytest.mark.slow
def test_the_simple_models_are_those_of_the_fit_or_of_train(run: Any, fitted: pl.DataFrame) -> None:
    kept = rds.load("model.safetensors").fitted_.peers
    assert kept is not None
    assert [one.method for one in kept.records] == ["this model", "a constant", "boosted trees"]
    run("evaluate", "model.safetensors", "t.csv", *PAGE)
    assert "rows held out by the fit, not those of this page" in Path("page.html").read_text()
    done = run("evaluate", "model.safetensors", "t.csv", *PAGE, "--train", "t.csv")
    assert done.code == 0, done.err
    assert "the simple ones fitted on the training rows given" in Path("page.html").read_text()


def test_a_wrong_target_is_refused(run: Any, fitted: pl.DataFrame) -> None:
    done = run("evaluate", "model.safetensors", "t.csv", "--target", "b", *PAGE)
    assert done.err == (
        "error: --target 'b': the model predicts 'y'; leave --target out, or rename the column of "
        "the truth\n"
    )
    assert not Path("page.html").exists()


@pytest.mark.slow
def test_times_are_found_named_or_refused(run: Any, fitted: pl.DataFrame) -> None:
    fitted.with_columns(also=pl.col("when"), n=pl.int_range(600)).write_csv("two.csv")
    run("evaluate", "model.safetensors", "two.csv", *PAGE)
    assert "no time was given" in Path("page.html").read_text()  # which of the two?
    run("evaluate", "model.safetensors", "two.csv", *PAGE, "--time", "n")
    assert "coverage by n" in Path("page.html").read_text()
    done = run("evaluate", "model.safetensors", "two.csv", *PAGE, "--time", "no")
    assert "--time 'no'" in done.err


def test_terminal_and_page_say_the_same_of_a_model_that_drifted(
    run: Any, fitted: pl.DataFrame
) -> None:
    late = pl.int_range(pl.len()) >= 300
    drifted = fitted.with_columns(y=pl.when(late).then(pl.col("y") + 40).otherwise(pl.col("y")))
    drifted.write_csv("d.csv")
    plain = run("evaluate", "model.safetensors", "d.csv", "--json", "e.json")
    told = json.loads(Path("e.json").read_text())["verdict"]["y"]
    assert (told["skill"], told["calibration"]) == ("strong", "drifting")
    sentences = [told["skill_sentence"], told["calibration_sentence"], *told["remarks"]]
    lines = ["verdict   skill strong, calibration drifting", *(f"          {s}" for s in sentences)]
    assert "\n".join(lines) in plain.out
    assert "It changed about 2024-01-13" in told["calibration_sentence"]  # 300 hours later
    done = run("evaluate", "model.safetensors", "d.csv", *PAGE)
    assert "\n".join(lines) in done.out
    html = unescape(Path("page.html").read_text())
    assert all(words in html for words in sentences)
    blind = run("evaluate", "model.safetensors", "d.csv", "--groups", "user", "--time", "a")
    assert "drifting" not in blind.out  # in the order of an input nothing changes


def test_rows_without_an_answer_keep_the_numbers_of_the_others(
    run: Any, fitted: pl.DataFrame
) -> None:
    """The most surprising row is called by its place in the table, not among those answered."""
    rows = pl.int_range(pl.len())
    fitted.with_columns(
        a=pl.when(rows < 50).then(None).otherwise(pl.col("a")),
        y=pl.when(rows == 333).then(500.0).otherwise(pl.col("y")),
    ).write_csv("holes.csv")
    done = run("evaluate", "model.safetensors", "holes.csv", *PAGE)
    assert "no answer 50 rows: a required" in done.out
    html = Path("page.html").read_text()
    table = html[html.index("The most surprising rows") :]
    assert table.index('<th scope="row">333</th>') < table.index("</tr>\n<tr>", 400)
