"""`rdeepsense replay`: a stream of a table, the frozen model beside the live one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.live.replay import replay


@pytest.fixture
def fitted(run: Any, csv: Path) -> Path:
    """A model of y, and `stream.csv`: rows in disorder, a sensor that drifts, some labels gone."""
    whole = pl.read_csv(csv).select("a", "b [V]", "y")
    whole.write_csv(csv)
    done = run("fit", csv, "--target", "y", "--quick", "--epochs", 15, "--quiet")
    assert done.code == 0, done.err
    frame = whole.head(200).with_row_index("k")
    hour = pl.format("2024-05-{} {}:00", *(
        part.cast(pl.String).str.zfill(2) for part in (pl.col("k") // 24 + 1, pl.col("k") % 24)
    ))  # fmt: skip
    drifting = pl.when(pl.col("k") % 9 == 4).then(None).otherwise(pl.col("y") + pl.col("k") / 40)
    frame = frame.with_columns(drifting.alias("y"), hour.alias("when"))
    frame.sample(fraction=1, shuffle=True, seed=0).write_csv(csv.parent / "stream.csv")
    return csv.parent


def test_the_table_is_the_record_in_the_order_of_time(run: Any, fitted: Path) -> None:
    done = run("replay", "model.safetensors", "stream.csv", "--target", "y", "--time", "when",
               "--label-every", 4, "--coverage", 0.8, "--report", "out.html", "--json", "r.json",
               "--state", "state.safetensors")  # fmt: skip
    assert done.code == 0, done.err
    frame = pl.read_csv(fitted / "stream.csv").sort("k")
    model: Any = rds.load(fitted / "model.safetensors")
    X, y = frame.select("a", "b [V]"), frame["y"].cast(pl.Float64).to_numpy()
    live = model.live(0.8)
    told = replay(model, X, y, 4, live=live)
    facts = json.loads((fitted / "r.json").read_text())
    assert facts["rows"] == 200
    assert facts["with_truth"] == int((~np.isnan(y)).sum()) < 200
    assert facts["labels"] == live.labels
    assert facts["alarm_row"] == told.alarm
    page = (fitted / "out.html").read_text()
    for way in ("frozen", "live"):
        assert facts["figures"][way] == told.ways[way].figures()
    for name, key in (("mean absolute error", "error"), ("coverage of 80 % intervals", "coverage"),
                      ("mean width", "width"), ("negative log-likelihood", "nll")):  # fmt: skip
        cells = [f"{facts['figures'][way][key]:.4g}" for way in ("frozen", "live")]
        assert re.search(rf"{re.escape(name)} +{cells[0]} +{cells[1]}\b", done.out), name
        assert all(f">{cell}</td>" in page for cell in cells)
    assert page.count("<svg") == 3
    assert re.search(r"^verdict   Learning from labels .*\n {10}NLL ", done.out, re.MULTILINE)
    assert "in the order of when" in page
    again = model.live(state=fitted / "state.safetensors")
    assert (again.rows, again.labels) == (200, live.labels)
    x = X[0].to_numpy()[0]
    assert again.predict(x).interval == live.predict(x).interval


def test_classes(run: Any, csv: Path) -> None:
    run("fit", csv, "--target", "label", "--quick", "--epochs", 5, "--quiet")
    done = run("replay", "model.safetensors", csv, "--json", "-", "--report", "out.html")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["task"] == "classification"
    model: Any = rds.load(csv.parent / "model.safetensors")
    frame = pl.read_csv(csv)
    right = (
        model.predict(frame.select(model.feature_names_in_.tolist())) == frame["label"].to_numpy()
    )
    assert facts["figures"]["frozen"]["accuracy"] == pytest.approx(right.mean())
    assert "mean size of the set" in done.err
    assert "Wrong answers" in (csv.parent / "out.html").read_text()


def test_what_is_refused(run: Any, fitted: Path) -> None:
    stream = ("replay", "model.safetensors", "stream.csv")
    assert "'nothing'" in run(*stream, "--target", "nothing").err
    assert "--time 'nothing': there is no such column" in run(*stream, "--time", "nothing").err
    assert "--coverage 1.0: must lie between 0 and 1" in run(*stream, "--coverage", 1).err
    frame = pl.read_csv(fitted / "stream.csv")
    words = {"north": "neither a number nor a time", "03/04/2024": "day or month could be first"}
    for word, said in words.items():
        frame.with_columns(pl.lit(word).alias("when")).write_csv(fitted / "bad.csv")
        done = run("replay", "model.safetensors", "bad.csv", "--time", "when")
        assert done.code == 1
        assert said in done.err
    late = pl.when(pl.col("k") == 7).then(None).otherwise(pl.col("when")).alias("when")
    frame.with_columns(late).write_csv(fitted / "bad.csv")
    done = run("replay", "model.safetensors", "bad.csv", "--time", "when")
    assert "--time 'when' has no time in 1 of 200 rows" in done.err
    frame.with_columns(pl.lit(None).alias("y")).write_csv(fitted / "bad.csv")
    assert "no row has a label" in run("replay", "model.safetensors", "bad.csv").err
    frame.drop("y").write_csv(fitted / "bad.csv")
    assert "--target 'y': there is no such column" in run(*stream[:2], "bad.csv").err
    (fitted / "out.html").write_text("x")
    assert "--overwrite replaces it" in run(*stream, "--report", "out.html").err
