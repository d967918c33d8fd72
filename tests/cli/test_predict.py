"""`rdeepsense predict`: the columns that are asked for, large tables in pieces, folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from predict.models import classifier, regressor, table

from rdeepsense.deploy.c.build import compiler
from rdeepsense.predict import plan
from rdeepsense.predict.plan import CRunner


@pytest.fixture
def frame(run: Any) -> pl.DataFrame:
    """Write the model m and the table t.csv, with ids and a row that has no answer."""
    regressor().save("m")
    rows = (
        table(60, seed=3)
        .drop("site")
        .with_columns(
            id=pl.int_range(60).cast(pl.String).str.zfill(3),
            a=pl.when(pl.int_range(60) == 7).then(None).otherwise(pl.col("a")),
        )
    )
    rows.write_csv("t.csv")
    rows.write_parquet("t.parquet", row_group_size=25)
    return rows


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdeepsense.cli.predict.LARGE", 0)
    monkeypatch.setattr("rdeepsense.cli.predict.rows_at_once", lambda *_: 9)
    monkeypatch.setattr(plan, "WORTH_IT", 0)


def test_columns_that_are_asked_for(run: Any, frame: pl.DataFrame) -> None:
    options = ("--id", "id", "--quantiles", "0.05,0.5", "--with", "status,novelty,epistemic,reject")
    done = run("predict", "m", "t.csv", "-o", "-", *options)
    assert done.code == 0, done.err
    assert "no answer 1 row: a required value is missing" in done.err
    found = pl.read_csv(done.out.encode(), schema_overrides={"id": pl.String})
    figures = [f"{name}_heat" for name in ("mean", "std", "low", "high", "q0.05", "q0.5")]
    assert found.columns == ["id", *figures, "epistemic_heat", "novelty", "reject", "status"]
    assert found["id"].to_list() == frame["id"].to_list()
    assert found.row(7, named=True)["status"] == "missing, unsure: a"
    assert set(found.drop("id", "status").row(7)) == {None}
    answered = pl.int_range(60, eager=True) != 7
    X, model = frame.filter(answered).select("a", "b"), regressor()
    rest, dist = found.filter(answered), model.predict_dist(X)
    np.testing.assert_allclose(rest["mean_heat"], dist.mean, rtol=1e-12)
    np.testing.assert_allclose(rest["q0.05_heat"], dist.quantile(0.05), rtol=1e-12)
    np.testing.assert_allclose(rest["epistemic_heat"], model.epistemic_std(X), rtol=1e-12)
    np.testing.assert_allclose(rest["novelty"], model.novelty(X), rtol=1e-12)


def test_status_is_there_unless_it_is_not_wanted(run: Any, frame: pl.DataFrame) -> None:
    run("predict", "m", "t.parquet", "-o", "p.parquet", "--with", "none", "--id", "id")
    found = pl.read_parquet("p.parquet")
    assert found.columns == ["id", "mean_heat", "std_heat", "low_heat", "high_heat"]
    assert found["id"].to_list() == frame["id"].to_list()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--id", "nothing"), "--id 'nothing': there is no such column; the table has a, b, id"),
        (("--quantiles", "0.5,x"), "--quantiles 0.5,x: numbers with commas are needed"),
        (("--quantiles", "0.5,2"), "--quantiles 2: each must lie between 0 and 1"),
        (("--coverage", "1.5"), "--coverage 1.5: must lie between 0 and 1"),
        (("--with", "colour"), "--with colour is unknown; accepted: status, novelty"),
        (("--address", "auto"), "--engine and --address are for a folder"),
        (("-o", "s3://bucket/x.csv"), "is for a folder of Parquet"),
    ],
)
def test_refused(run: Any, frame: pl.DataFrame, options: tuple[str, ...], words: str) -> None:
    done = run("predict", "m", "t.csv", *options)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert words in done.err


def test_what_the_model_has_not(run: Any, frame: pl.DataFrame) -> None:
    classifier().save("c")
    assert (
        "--with novelty: the model has learnt none"
        in run("predict", "c", "t.csv", "--with", "novelty").err
    )
    assert "classes have none" in run("predict", "c", "t.csv", "--quantiles", "0.5").err


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("source", ["t.csv", "t.parquet"])
def test_in_pieces_by_c_it_is_the_same(
    run: Any, frame: pl.DataFrame, request: pytest.FixtureRequest, kind: str, source: str
) -> None:
    options = ("--id", "id", "--quantiles", "0.25")
    whole = run("predict", "m", source, "-o", f"whole.{kind}", *options)
    request.getfixturevalue("in_pieces")
    pieces = run("predict", "m", source, "-o", f"pieces.{kind}", *options, "--runner", "C")
    assert pieces.code == 0, pieces.err
    assert pieces.out.startswith("runs      C\n")
    assert pieces.out.removeprefix("runs      C\n").replace("pieces", "whole") == whole.out
    one, two = (_read(f"{name}.{kind}") for name in ("whole", "pieces"))
    assert one.columns == two.columns
    assert one.select("id", "status").equals(two.select("id", "status"))
    std = one["std_heat"]
    for name in one.columns[1:-1]:
        assert one[name].is_null().equals(two[name].is_null())
        assert ((one[name] - two[name]).abs() / std).max() < 1e-5


def _read(path: str) -> pl.DataFrame:
    if path.endswith("parquet"):
        return pl.read_parquet(path)
    texts = {"id": pl.String}
    return pl.read_csv(path, separator="\t" if "tsv" in path else ",", schema_overrides=texts)


@pytest.mark.usefixtures("in_pieces")
def test_the_first_rows_are_shown(run: Any, frame: pl.DataFrame) -> None:
    done = run("predict", "m", "t.csv", "--runner", "torch")
    assert done.code == 0, done.err
    assert "and 50 rows more; -o FILE writes all" in done.out


@pytest.mark.usefixtures("in_pieces")
def test_stdout_is_not_written_twice(run: Any, frame: pl.DataFrame) -> None:
    """A line far down that only the whole can decide on comes after rows are written."""
    lines = Path("t.csv").read_text().splitlines()
    head, *rows = (f"{line},x" for line in lines)
    rows[50] = '1,2,"050",'  # in quotes with an empty last cell: the row could be short
    Path("t.csv").write_text("\n".join([head, *rows, ""]))
    done = run("predict", "m", "t.csv", "-o", "-", "--id", "id", "--runner", "torch")
    assert done.code == 0, done.err
    assert "read      at once, whatever memory that takes: a line is not like" in done.err
    found = pl.read_csv(done.out.encode(), schema_overrides={"id": pl.String})
    assert found["id"].to_list() == frame["id"].to_list()


@pytest.mark.usefixtures("in_pieces")
def test_rows_that_all_lack_a_value_are_refused(run: Any, frame: pl.DataFrame) -> None:
    frame.with_columns(a=pl.lit("NA")).write_csv("none.csv")
    done = run("predict", "m", "none.csv", "-o", "p.csv")
    assert "missing values in all 60 rows, where the training rows had none" in done.err
    assert not Path("p.csv").exists()


def test_infinity_is_marked(run: Any, frame: pl.DataFrame) -> None:
    frame.with_columns(a=pl.when(pl.col("id") == "003").then(np.inf).otherwise("b")).write_csv("i")
    done = run("predict", "m", "i", "-o", "p.csv")
    assert "no answer 1 row: a value is infinite" in done.out
    found = pl.read_csv("p.csv").row(3, named=True)
    assert (found["mean_heat"], found["status"]) == (None, "out of range: a")


def test_a_folder(run: Any, frame: pl.DataFrame) -> None:
    Path("in").mkdir()
    for k in range(3):
        frame[20 * k : 20 * k + 20].write_parquet(f"in/{k}.parquet")
    done = run("predict", "m", "in", "-o", "out", "--id", "id")
    assert done.code == 0, done.err
    assert "wrote out: 60 rows in 3 files\n" in done.out
    assert "no answer 1 row" in done.out
    run("predict", "m", "t.csv", "-o", "p.csv", "--id", "id")
    found = pl.read_parquet("out/*.parquet")
    np.testing.assert_allclose(
        found["mean_heat"].drop_nulls(), _read("p.csv")["mean_heat"].drop_nulls()
    )
    assert found["id"].to_list() == frame["id"].to_list()
    os.unlink("out/1.parquet")
    again = run("predict", "m", "in", "-o", "out", "--id", "id")
    assert "wrote out: 60 rows in 3 files, 2 of them there already" in again.out
    other = run("predict", "m", "in", "-o", "out")
    assert "out/0.parquet: is there already" in other.err
    for target, words in (
        ((), "needs another folder to write to"),
        (("-o", "in"), "would overwrite the input"),
        (("-o", "m"), "is a file; give a folder"),
        (("-o", "o", "--id", "x"), "--id 'x': there is no such column"),
        (("-o", "o", "--memory", "9"), "--memory 9 MiB; accepted: 256 and more"),
    ):
        assert words in run("predict", "m", "in", *target).err, words


def test_a_folder_by_url(run: Any, frame: pl.DataFrame) -> None:
    pytest.importorskip("fsspec")
    from rdeepsense._files import Remote

    for name, file in (("in/1.parquet", "t.parquet"), ("m", "m")):
        with Remote.of(f"memory://predict/{name}").replacing() as target:
            target.write(Path(file).read_bytes())
    done = run("predict", "memory://predict/m", "memory://predict/in", "-o", "memory://predict/out")
    assert done.code == 0, done.err
    assert "wrote memory://predict/out: 60 rows in 1 files" in done.out
    found = pl.read_parquet(bytes(Remote.of("memory://predict/out/1.parquet").read()))
    assert found["mean_heat"].null_count() == 1
    again = run(
        "predict", "memory://predict/m", "memory://predict/in", "-o", "memory://predict/out"
    )
    assert "1 of them there already" in again.out
    secret = run("predict", "m", "s3://key:hidden@bucket/in", "-o", "out")
    assert "has credentials in it" in secret.err
    assert "hidden" not in secret.err


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_evaluate_takes_the_same_road(
    run: Any, frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame.with_columns(heat=3 * pl.col("a")).fill_null(0.0).write_csv("t.csv")
    command = ("evaluate", "m", "t.csv", "--report", "page.html", "--overwrite", "--json", "e.json")
    by_torch, figures = run(*command).out, json.loads(Path("e.json").read_text())["figures"]
    monkeypatch.setattr(plan, "WORTH_IT", 0)
    monkeypatch.setattr("rdeepsense.predict.prepare._seconds", lambda own, rows: len(own.name))
    ran = list[int]()
    run_c = CRunner.run
    monkeypatch.setattr(CRunner, "run", lambda own, X: ran.append(len(X)) or run_c(own, X))
    done = run(*command)
    assert done.code == 0, done.err
    assert done.out == by_torch  # every digit that is printed
    assert ran.count(60) == 2  # the table's figures, and the page's
    found = json.loads(Path("e.json").read_text())["figures"]["heat"]
    for name, score in found.items():
        assert score["value"] == pytest.approx(figures["heat"][name]["value"], rel=1e-5), name
