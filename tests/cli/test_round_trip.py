"""fit, then predict and evaluate, on CSV and Parquet."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds

QUICK = ("--epochs", 12, "--hidden", "16")
NOT_INPUTS = ("--ignore", "z", "--ignore", "user")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_regression(run, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    table = request.getfixturevalue(kind)
    fitted = run(
        "fit", "--quick", table, "--target", "y", *NOT_INPUTS, *QUICK, "--json", "fit.json"
    )
    assert fitted.code == 0, fitted.err
    assert "rows      400" in fitted.out
    assert "inputs    5: a, b [V], label, site, same" in fitted.out
    assert "category  2: label, site" in fitted.out
    assert fitted.out.count("constant  ") == 1
    assert "constant  1: same" in fitted.out
    assert "missing   none" in fitted.out
    assert "regression: y is numeric" in fitted.out
    assert "256 rows to train, 64 to validate, 80 to test" in fitted.out
    assert "80 rows, not used in the fit" in fitted.out
    assert "wrote model.safetensors\n" in fitted.out
    names = ["a", "b [V]", "label", "site", "same"]
    assert rds.load("model.safetensors").feature_names_in_.tolist() == names

    held_out = json.loads((tmp_path / "fit.json").read_text())["held_out"]["y"]
    assert held_out["mae"]["value"] < 1.2  # 2.6 for the mean of y, 0.4 at best
    assert held_out["coverage_90"]["reference"] == 0.9
    assert held_out["deviation_area"]["reference"] == rds.metrics.deviation_floor(80)

    out = f"predictions.{kind}"
    predicted = run("predict", "model.safetensors", table, "-o", out, "--coverage", 0.5)
    assert predicted.code == 0, predicted.err
    assert "2 columns not used: z, user" in predicted.out
    frame = pl.read_csv(out) if kind == "csv" else pl.read_parquet(out)
    assert frame.columns == ["mean_y", "std_y", "low_y", "high_y", "status"]
    model = rds.load("model.safetensors")
    inputs = pl.read_parquet(table) if kind == "parquet" else pl.read_csv(table)
    X = inputs.select(names)
    np.testing.assert_allclose(frame["mean_y"], model.predict(X))
    np.testing.assert_allclose(frame["high_y"], model.predict_interval(X, 0.5)[1])

    evaluated = run("evaluate", "model.safetensors", table, "--target", "y", "--json", "e.json")
    assert evaluated.code == 0, evaluated.err
    figures = json.loads((tmp_path / "e.json").read_text())["figures"]["y"]
    expected = rds.metrics.evaluate(model.predict_dist(X), inputs["y"].to_numpy())
    assert figures["nll"]["value"] == pytest.approx(expected["nll"])
    assert figures["coverage_95"]["value"] == pytest.approx(expected["coverage_95"])


def test_classes_of_text(run, csv: Path, tmp_path: Path) -> None:
    options = ("--target", "label", "--ignore", "y", *NOT_INPUTS, *QUICK)
    fitted = run("fit", "--quick", csv, *options, "--json", "fit.json")
    assert fitted.code == 0, fitted.err
    assert "classification: label is not numeric" in fitted.out
    assert json.loads((tmp_path / "fit.json").read_text())["held_out"]["label"]["accuracy"][
        "value"
    ] > 0.6  # fmt: skip
    run("predict", "model.safetensors", csv, "-o", "p.csv", "--samples", 3)
    frame = pl.read_csv("p.csv")
    assert frame.columns == ["class_label", "p_high", "p_low", "p_mid", "status"]
    np.testing.assert_allclose(
        frame.select(pl.sum_horizontal(pl.exclude("class_label", "status"))), 1
    )
    assert (
        "expected calibration error"
        in run("evaluate", "model.safetensors", csv, "--target", "label").out
    )
    pl.read_csv(csv).with_columns(label="site").write_csv("strange.csv")
    wrong = run("evaluate", "model.safetensors", "strange.csv", "--target", "label")
    assert "the class 'north', which the model was not fitted on" in wrong.err


def test_groups_stay_together(run, csv: Path) -> None:
    result = run(
        "fit", "--quick", csv, "--target", "y", "--ignore", "z", "--groups", "user", *QUICK
    )
    assert result.code == 0, result.err
    assert "80 of 4 groups to test" in result.out
    assert "clustered by user" in result.out
    assert "user" not in rds.load("model.safetensors").feature_names_in_


def test_several_targets(run, csv: Path) -> None:
    options = ("--target", "z", "--target", "y", "--ignore", "user", "--likelihood", "student")
    assert run("fit", "--quick", csv, *options, *QUICK).code == 0
    run("predict", "model.safetensors", csv, "-o", "p.tsv")
    found, rows = pl.read_csv("p.tsv", separator="\t"), pl.read_csv(csv)
    assert found.columns[::4] == ["mean_z", "mean_y", "status"]
    for name in ("z", "y"):
        assert abs((found[f"mean_{name}"] - rows[name]).mean()) < 1  # their means are 10 apart
    both = run("evaluate", "model.safetensors", csv, "--target", "y", "--target", "z")
    assert both.code == 0
    one = run("evaluate", "model.safetensors", csv, "--target", "y")
    assert one.err.startswith("error: --target 'y': the model predicts 'z', 'y'; leave --target")


def test_missing_values_filled_on_request(run, csv: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(csv).with_columns(
        pl.when(pl.int_range(pl.len()) % 100 == 7).then(None).otherwise(pl.col("a")).alias("a")
    )
    frame.write_csv(csv, null_value="NA")
    refused = run("fit", "--quick", csv, "--target", "y", "--missing", "refuse", *QUICK)
    assert refused.code == 1
    assert "missing values in 4 of 400 rows, first in row 7" in refused.err
    assert "'a' (4); --missing auto" in refused.err
    filled = run("fit", "--quick", csv, "--target", "y", "--missing", "mean", *QUICK)
    assert "missing   a 4, imputed by the column's mean" in filled.out
    assert run("predict", "model.safetensors", csv).code == 0


def test_same_seed_same_file(run, csv: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(
            "fit",
            "--quick",
            csv,
            "--target",
            "y",
            "-o",
            name,
            "--seed",
            3,
            "--epochs",
            2,
            "--quiet",
        )
    one, two = rds.load("one"), rds.load("two")
    X = pl.read_csv(csv).select(one.feature_names_in_.tolist())
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_quiet_prints_nothing_and_a_replaced_model_is_told(run, csv: Path) -> None:
    first = run("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--quiet")
    assert (first.code, first.out, first.err) == (0, "", "")
    again = ("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--test-fraction", 0)
    refused = run(*again)
    assert (refused.code, refused.err) == (
        1,
        "error: --output model.safetensors: is there already; --overwrite replaces it\n",
    )
    again = run(*again, "--overwrite")
    assert "wrote model.safetensors (replaced the file that was there)" in again.out
    assert "no choice has seen" not in again.out


def test_predictions_on_the_terminal(run, csv: Path) -> None:
    run("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--quiet")
    shown = run("predict", "model.safetensors", csv).out
    assert all(name in shown for name in ("mean", "std", "low", "high"))
    assert "and 390 rows more" in shown


def test_a_model_fitted_without_names(run, csv: Path) -> None:
    frame = pl.read_csv(csv).select("a", "b [V]")
    model = rds.RDeepSenseRegressor(epochs=1, verbose=False, effort="quick")
    model.fit(frame.to_numpy(), np.arange(400.0)).save("bare")
    frame.write_csv("two.csv")
    assert run("predict", "bare", "two.csv", "-o", "p.csv").err == ""
    assert "on 2 columns; the table has 6 numeric ones" in run("predict", "bare", csv).err


def test_outputs_are_whole_or_absent(
    run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("fit", "--quick", csv, "--target", "y", "--epochs", 1, "--quiet")
    before = sorted(path.name for path in tmp_path.iterdir())

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    for args in (
        ("predict", "model.safetensors", csv, "-o", "p.csv"),
        ("evaluate", "model.safetensors", csv, "--target", "y", "--json", "e.json"),
        ("fit", "--quick", csv, "--target", "y", "--epochs", 1, "-o", "other"),
    ):
        result = run(*args)
        assert (result.code, result.err) == (1, f"error: {args[-1]}: No space left on device\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_fit_chooses_by_default(run, csv: Path) -> None:
    fixed = ("--hidden", "16")
    fitted = run("fit", csv, "--target", "y", *NOT_INPUTS, *QUICK, *fixed, "--plot", "grid")
    assert fitted.code == 0, fitted.err
    assert Path("grid.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote grid.svg" in fitted.out
    assert "best of 14 by 5-fold cross-validation" in fitted.out
    assert "320 rows to train, 5-fold cross-validation, 80 to test" in fitted.out
    refused = run("fit", csv, "--target", "y", "--alpha", "best", "--overwrite")
    assert refused.code == 1
    assert "--alpha 'best': give a number, or auto or paper" in refused.err
