"""Bad tables, columns, options and files: one line that names them, and exit code 1."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.cli.reading.table import read_table
from rdeepsense.errors import InputError


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\n", "is empty"),
        ("header.csv", b"a,b,y\n", "has a header but no rows"),
        (
            "junk.csv",
            bytes(range(256)) * 20,
            "neither text nor Parquet, Arrow, Excel or JSON lines",
        ),
        ("short.csv", b"a,b,y\n1,2,3\n4,5\n", "line 3 has 2 fields, the header has 3"),
        ("long.csv", b"a,b,y\n1,2,3\n4,5,6,7\n", "line 3 has 4 fields, the header has 3"),
        ("twice.csv", b"a,a,y\n1,2,3\n", "has two columns named 'a'"),
        ("bare.csv", b"1,2\n3,4\n", "the first row holds numbers"),
        ("cut.parquet", b"PAR1 and then nothing", "cannot be read as Parquet"),
    ],
)
def test_files_that_are_no_tables(run, name: str, content: bytes, problem: str) -> None:
    Path(name).write_bytes(content)
    result = run("fit", "--quick", name, "--target", "y")
    assert result.code == 1
    assert result.err.startswith(f"error: {name}: ")
    assert problem in result.err
    assert result.err.count("\n") == 1


def test_a_model_a_folder_and_nothing_as_a_table(run, csv: Path, tmp_path: Path) -> None:
    run("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--quiet")
    for table, problem in (
        ("model.safetensors", "is a safetensors file (a model?), not a table"),
        (".", "is a folder, not a table"),
        ("nowhere.csv", "there is no such file"),
    ):
        for command in (("fit",), ("predict", "model.safetensors")):
            target = ("--target", "y") if command[0] == "fit" else ()
            result = run(*command, table, *target)
            hint = "; no *.parquet is in it" * ((table, command[0]) == (".", "predict"))
            assert (result.code, result.err) == (1, f"error: {table}: {problem}{hint}\n")


def test_semicolons_a_byte_order_mark_and_blank_lines_at_the_end(run, tmp_path: Path) -> None:
    rows = "".join(f"{i};{i % 7}\n" for i in range(40))
    Path("data.csv").write_text("\ufeffa;y\n" + rows + "\n\n", encoding="utf-8")
    result = run("fit", "--quick", "data.csv", "--target", "y", "--epochs", 1)
    assert result.code == 0, result.err
    assert "rows      40" in result.out
    assert "inputs    1: a" in result.out


@pytest.mark.parametrize("option", ["--target", "--groups", "--ignore"])
def test_unknown_columns(run, csv: Path, option: str) -> None:
    target = () if option == "--target" else ("--target", "y")
    result = run("fit", "--quick", csv, *target, option, "speed")
    columns = "a, b [V], y, z, label, user, site, same"
    assert result.err == (
        f"error: {option} 'speed': there is no such column; the table has {columns}\n"
    )
    assert result.code == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--target", "y", "--alpha", "1"], "alpha"),
        (["--target", "y", "--drop-prob", "1"], "drop_prob"),
        (["--target", "y", "--hidden", "64,x"], "--hidden '64,x': give whole numbers"),
        (["--target", "y", "--test-fraction", "1"], "--test-fraction 1.0: must be at least 0"),
        (["--target", "y", "--plot", "grid"], "--plot grid: nothing is chosen; leave --quick"),
        (["--target", "y", "--groups", "y"], "cannot be both --target and --groups"),
        (["--target", "y", "--ignore", "y"], "cannot be both --target and --ignore"),
        (["--target", "y", "--target", "y"], "--target 'y': is named twice"),
        (["--target", "y", "--target", "label"], "all must be numbers; 'label' is not"),
        (["--target", "same"], "constant"),
        (["--target", "label", "--likelihood", "student"], "is for regression"),
        (["--target", "site", "--task", "regression"], "'site' holds text, such as"),
        (["--target", "y", "--task", "classification"], "whole numbers, yes/no or text are needed"),
        (["--target", "y", "--groups", "same"], "--groups has only one value"),
        (["--target", "y", "-o", "no/model"], "there is no folder no; create it first"),
        (["--target", "y", "-o", "."], "is a folder; give the name of a file"),
        (["--target", "y", "-o", "data.csv"], "would overwrite the input"),
        (["--target", "y", "--json", "model.safetensors"], "must be different files"),
    ],
)
def test_options(run, csv: Path, tmp_path: Path, options: list[str], problem: str) -> None:
    result = run("fit", "--quick", csv, *options)
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert problem in result.err
    assert "Traceback" not in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (pl.lit(None).cast(pl.Float64).alias("y"), "no row has a value of 'y'"),
        (
            pl.when(pl.col("a") > 2).then(float("inf")).otherwise(pl.col("a")).alias("a"),
            "infinity in",
        ),
    ],
)
def test_values(run, parquet: Path, change: pl.Expr, problem: str) -> None:
    pl.read_parquet(parquet).with_columns(change).write_parquet("changed.parquet")
    result = run("fit", "--quick", "changed.parquet", "--target", "y")
    assert result.code == 1
    assert problem in result.err


def test_too_few_rows_and_no_inputs(run, csv: Path) -> None:
    pl.read_csv(csv).head(11).write_csv("few.csv")
    assert (
        "9 are left, and at least 10 are needed to fit"
        in run("fit", "--quick", "few.csv", "--target", "y").err
    )
    dates = pl.date_range(pl.date(2024, 1, 1), pl.date(2025, 2, 3), eager=True)
    pl.read_csv(csv).select("y", day=dates).write_csv("dates.csv")
    assert "no column is left as an input" in run("fit", "dates.csv", "--target", "y").err
    pl.read_csv(csv).select("site", "y").write_csv("text.csv")
    fitted = run("fit", "--quick", "text.csv", "--target", "y", "--epochs", 1)
    assert (fitted.code, "category  1: site" in fitted.out) == (0, True)


def test_predict(run, csv: Path) -> None:
    run("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--quiet")
    pl.read_csv(csv).drop("a").write_csv("less.csv")
    columns = "b [V], y, z, label, user, site, same"
    assert run("predict", "model.safetensors", "less.csv").err == (
        f"error: the model needs the column 'a'; the table has {columns}\n"
    )
    pl.read_csv(csv).with_columns(a=pl.lit("x")).write_csv("text.csv")
    assert (
        "column 'a' holds text, such as 'x'" in run("predict", "model.safetensors", "text.csv").err
    )
    for options, problem in (
        (["-o", "p.xlsx"], "must end in one of .csv, .tsv, .parquet"),
        (["-o", "data.csv"], "would overwrite the input"),
        (["-o", "no/p.csv"], "there is no folder no"),
        (["--coverage", "1"], "--coverage 1.0: must lie between 0 and 1"),
    ):
        assert problem in run("predict", "model.safetensors", csv, *options).err


def test_model_files(run, csv: Path) -> None:
    assert "nothing: there is no such file" in run("predict", "nothing", csv).err
    assert "data.csv: is not an rdeepsense model file" in run("predict", csv, csv).err
    with pytest.raises(rds.ModelFileError):
        rds.load(csv)


ODD = {
    "lists": pl.Series([[k % 6] for k in range(60)]),
    "structs": pl.Series([{"a": k % 6} for k in range(60)]),
    "durations": pl.Series([dt.timedelta(seconds=k % 6) for k in range(60)]),
    "dates or times": pl.Series([dt.date(2020, 1, 1 + k % 6) for k in range(60)]),
    "bytes": pl.Series([bytes([250 + k % 6]) for k in range(60)]),
}


@pytest.mark.parametrize("where", ["odd/odd.parquet", "odd"])
@pytest.mark.parametrize("kind", ODD)
def test_columns_that_are_no_labels(run, kind: str, where: str) -> None:
    Path("odd").mkdir()
    a = [float(k) for k in range(60)]
    pl.DataFrame({"a": a, "y": a, "odd": ODD[kind]}).write_parquet("odd/odd.parquet")
    result = run("fit", "--quick", where, "--target", "odd")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert f"column 'odd', holds {kind} (" in result.err
    assert "accepted: text, yes/no or whole numbers" in result.err
    result = run("fit", "--quick", where, "--target", "odd", "--task", "regression")
    assert result.code == 1
    assert "column 'odd' holds" in result.err
    assert "numbers are needed" in result.err
    result = run(
        "fit", "--quick", where, "--target", "y", "--groups", "odd", "--epochs", 1, "--quiet"
    )
    if kind in ("lists", "structs"):
        assert result.code == 1
        assert f"column 'odd', holds {kind} (" in result.err
    else:
        assert result.code == 0, result.err


@pytest.mark.parametrize("where", ["odd/odd.parquet", "odd"])
def test_decimals_are_numbers_and_labels(run, where: str) -> None:
    Path("odd").mkdir()
    a = pl.Series([k % 5 for k in range(60)]).cast(pl.Decimal(20, 2))
    pl.DataFrame({"a": [float(k) for k in range(60)], "y": a}).write_parquet("odd/odd.parquet")
    result = run("fit", "--quick", where, "--target", "y", "--epochs", 1, "--quiet")
    assert (result.code, result.err) == (0, "")
    assert not hasattr(rds.load("model.safetensors"), "classes_")
    options = ("--task", "classification", "--epochs", 1, "--quiet", "--overwrite")
    assert run("fit", "--quick", where, "--target", "y", *options).code == 0
    assert rds.load("model.safetensors").classes_.tolist() == [0, 1, 2, 3, 4]
    assert run("evaluate", "model.safetensors", "odd/odd.parquet", "--target", "y").code == 0


def test_whole_numbers_beyond_64_bits_are_no_labels(run) -> None:
    Path("big.csv").write_text("a,y\n" + "".join(f"{k},{k % 2}e150\n" for k in range(60)))
    result = run("fit", "--quick", "big.csv", "--target", "y", "--task", "classification")
    assert result.code == 1
    assert "column 'y', holds 1e+150; accepted: text, yes/no or whole numbers" in result.err


def test_a_damaged_parquet_table_is_refused(tmp_path: Path) -> None:
    path, rng = tmp_path / "t.parquet", np.random.default_rng(0)
    pl.DataFrame({"a": rng.normal(size=30), "b": ["x", "yy", None] * 10}).write_parquet(path)
    content = path.read_bytes()
    refused = 0
    for position in rng.integers(4, len(content), 300):
        damaged = bytearray(content)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert read_table(path).frame.width >= 1
        except InputError:
            refused += 1
    assert refused > 50


def test_a_field_that_never_ends(tmp_path: Path) -> None:
    """Found by fuzzing: a quote that is not closed makes the rest of a table one field."""
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n3,4,5\n1,"2\n' + "1,2\n" * 50_000)
    with pytest.raises(InputError, match="line 3 has 3 fields|cannot be read|field larger"):
        read_table(path)
    path.write_text('a,b\n1,"2\n' + "1,2,3\n" * 50_000)
    with pytest.raises(InputError):
        read_table(path)
