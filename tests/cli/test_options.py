"""Options of several commands: --overwrite, --quiet, --json -, and those of fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.cli.terminal import check_outputs
from rdeepsense.errors import InputError

QUICK = (
    "--quick",
    "--target",
    "y",
    "--epochs",
    2,
    "--hidden",
    4,
    "--ignore",
    "z",
    "--ignore",
    "user",
)


@pytest.fixture
def model(run: Any, csv: Path) -> Path:
    assert run("fit", csv, *QUICK, "--quiet").code == 0
    return Path("model.safetensors")


def test_files_that_are_there_are_refused(run: Any, csv: Path, model: Path) -> None:
    Path("there.json").write_text("mine")
    Path("there.csv").write_text("mine")
    Path("there.onnx").write_text("mine")
    for command, name in (
        (("fit", csv, *QUICK), "--output model.safetensors"),
        (("fit", csv, *QUICK, "-o", "new", "--json", "there.json"), "--json there.json"),
        (("predict", model, csv, "-o", "there.csv"), "--output there.csv"),
        (("evaluate", model, csv, "--json", "there.json"), "--json there.json"),
        (("inspect", model, "--json", "there.json"), "--json there.json"),
        (("compare", csv, "--target", "y", "--json", "there.json"), "--json there.json"),
        (("export", model, "--to", "folded", "-o", "there.onnx"), "--output there.onnx"),
        (("profile", model, "--json", "there.json"), "--json there.json"),
    ):
        result = run(*command)
        assert result.code == 1, command
        assert result.err == f"error: {name}: is there already; --overwrite replaces it\n"
    assert Path("there.json").read_text() == "mine"
    for command in (
        ("predict", model, csv, "-o", "there.csv"),
        ("evaluate", model, csv, "--json", "there.json"),
        ("inspect", model, "--json", "there.json"),
        ("export", model, "--to", "folded", "-o", "there.onnx"),
    ):
        result = run(*command, "--overwrite", "--quiet")
        assert (result.code, result.out, result.err) == (0, "", "")
    assert "estimator" in json.loads(Path("there.json").read_text())


def test_what_stdout_is_for(run: Any, csv: Path) -> None:
    check_outputs({"--json": Path("-"), "--output": Path("m")}, overwrite=False)
    with pytest.raises(InputError, match="--output -: cannot be stdout; give the name of a file"):
        check_outputs({"--json": Path("-"), "--output": Path("-")})
    assert "--output -: cannot be stdout" in run("fit", csv, *QUICK, "-o", "-").err
    assert not Path("-").exists()


def test_json_on_stdout_stands_alone(run: Any, csv: Path, model: Path) -> None:
    for command in (("evaluate", model, csv), ("inspect", model)):
        result = run(*command, "--json", "-")
        assert isinstance(json.loads(result.out), dict)
        assert not Path("-").exists()
        assert run(*command, "--json", "-", "--quiet").err == ""


def test_rows_in_the_file(run: Any, csv: Path, model: Path) -> None:
    kept = run("fit", csv, *QUICK, "--overwrite").out
    assert "contains 64 validation rows in plain form, to verify exports; --keep-rows 0" in kept
    none = run("fit", csv, *QUICK, "--keep-rows", 0, "-o", "private").out
    assert "in plain form" not in none
    assert len(rds.load("private").fitted_.kept_rows[0]) == 0
    assert len(rds.load("model.safetensors").fitted_.kept_rows[0]) == 64


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("isotonic", "Isotonic"), ("off", None), ("scale", "Scale"), ("conformal", "Scale")],
)
def test_calibrate(run: Any, csv: Path, asked: str, kind: str | None) -> None:
    assert run("fit", csv, *QUICK, "--calibrate", asked).code == 0
    fitted = rds.load("model.safetensors").fitted_
    found = None if fitted.calibration is None else type(fitted.calibration).__name__
    assert found == kind
    assert (fitted.conformal is not None) is (asked == "conformal")


def test_conformal_intervals_are_those_of_the_command_line(run: Any, csv: Path) -> None:
    run("fit", csv, *QUICK, "--calibrate", "conformal")
    result = run("predict", "model.safetensors", csv, "-o", "p.csv", "--coverage", 0.8)
    assert "intervals: conformal" in result.out
    model, table = rds.load("model.safetensors"), pl.read_csv(csv)
    low, high = model.predict_interval(
        table.select(model.feature_names_in_.tolist()), 0.8, method="conformal"
    )
    np.testing.assert_allclose(pl.read_csv("p.csv")["low_y"], low)
    np.testing.assert_allclose(pl.read_csv("p.csv")["high_y"], high)


def test_words_of_the_library_become_options(run: Any, csv: Path) -> None:
    wrong = run("fit", csv, *QUICK, "--calibrate", "temperature")
    assert (wrong.code, "--calibrate" in wrong.err) == (1, True)
    wrong = run("fit", csv, *QUICK, "--device", "quantum")
    assert (wrong.code, "--device" in wrong.err) == (1, True)
    assert run("fit", csv, *QUICK, "--device", "cpu").code == 0


def test_many_classes_need_a_flag(run: Any) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.normal(size=240), "y": [f"c{k % 60}" for k in range(240)]})
    table.write_csv("classes.csv")
    command = ("fit", "--quick", "classes.csv", "--target", "y", "--epochs", 1, "--hidden", 2)
    refused = run(*command)
    assert refused.code == 1
    assert "--target 'y' would have 60 classes in 240 rows" in refused.err
    assert run(*command, "--many-classes").code == 0
    folder = Path("folder")
    folder.mkdir()
    table.write_parquet(folder / "0.parquet")
    refused = run("fit", folder, *command[3:], "--quick", "-o", "m")
    assert "--target 'y' would have 51 classes" in refused.err or "60 classes" in refused.err


def test_roles_that_contradict(run: Any, csv: Path) -> None:
    for option in ("--target", "--groups", "--ignore"):
        given = ("--target", "y") if option != "--target" else ()
        result = run("fit", "--quick", csv, *given, option, "a", "--input", "a")
        assert f"column 'a' cannot be both {option} and --input" in result.err


def test_targets_are_taken_by_name(run: Any, csv: Path) -> None:
    """Swapped on the command line, they are still the model's own."""
    both = ("--target", "y", "--target", "z")
    run("fit", "--quick", csv, *both, "--epochs", 2, "--hidden", 4, "--ignore", "user", "--quiet")
    results = [
        json.loads(run("evaluate", "model.safetensors", csv, *order, "--json", "-").out)
        for order in ((), both, ("--target", "z", "--target", "y"))
    ]
    assert results[0] == results[1] == results[2]


def test_inspect(run: Any, csv: Path) -> None:
    wide = ("--hidden", "4,32,32")
    run("fit", csv, *QUICK, *wide, "--unit", "b [V]=V", "--unit", "y=m/s", "--quiet")
    shown = run("inspect", "model.safetensors").out
    for words in (
        "model     model.safetensors: RDeepSenseRegressor",
        "target    y [m/s]",
        "network   Dense (hidden [4, 32, 32]), student head, alpha 0.5, drop probability 0.05",
        "calibrated by scale, factor ",
        "trained   on 256 rows, validated on 64",
        "keeps     64 validation rows, readable",
        f"versions  rdeepsense {rds.__version__}, python ",
        "C float32 ",
        "5 inputs",
        "site is one of 2: north, south",
        "negative log-likelihood",
    ):
        assert words in shown, words
    facts = json.loads(run("inspect", "model.safetensors", "--json", "-").out)
    assert [one["name"] for one in facts["inputs"]] == ["a", "b [V]", "label", "site", "same"]
    assert facts["inputs"][1]["unit"] == "V"
    model = rds.load("model.safetensors")
    assert facts["inputs"][0]["low"] == model.fitted_.guard.low[0]
    assert facts["validation"]["nll"] == model.validation_scores_["nll"]
    assert facts["bytes"]["C int8"] < facts["bytes"]["C float16"] < facts["bytes"]["C float32"]
    assert "is not an rdeepsense model file" in run("inspect", csv).err


def test_inspect_of_classes_and_choices(run: Any, csv: Path) -> None:
    run("fit", csv, "--target", "label", "--epochs", 1, "--hidden", 4, "--alpha", "auto", "--quiet")
    shown = run("inspect", "model.safetensors").out
    assert "target    label, 3 classes: high, low, mid" in shown
    assert "chosen    of " in shown
    assert "calibrated by temperature" in shown
