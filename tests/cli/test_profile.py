"""`rdeepsense profile`: the table, the JSON, the plot, and what it refuses before it measures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.deploy.profile import measure

FIT: dict[str, Any] = {"hidden": (6,), "epochs": 2, "random_state": 0, "verbose": False}


@pytest.fixture
def model(tmp_path: Path, csv: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(measure, "find", lambda: None)
    frame = pl.read_csv(csv)
    y = frame.select("y", "z").to_numpy()
    rds.RDeepSenseRegressor(**FIT, effort="quick").fit(frame.select("a", "b [V]"), y).save(
        tmp_path / "model"
    )
    return tmp_path / "model"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_table_json_and_plot(run: Any, model: Path) -> None:
    forms = "folded,ctypes,c-float32,torch-mcdrop-3,ssp-2"
    files = ("--json", "found.json", "--plot", "found")
    result = run("profile", model, "--against", forms, "--rounds", 1, *files)
    assert result.code == 0, result.err
    found = json.loads(Path("found.json").read_text())
    assert found["layers"] == [2, 6, 4]
    assert [form["name"] for form in found["forms"]] == forms.split(",")
    adds = [form["multiply_adds"] for form in found["forms"]]
    assert adds == [36, 36, 36, 3 * 24, 2 * 36]  # MCDrop has no columns for the std
    for form in found["forms"]:
        assert form["available"]
        assert 0 < form["microseconds"] <= form["p99_microseconds"]
        assert form["weight_bytes"] > 0
        assert form["energy"] == "estimated"
        assert np.isclose(form["millijoules"], 1e3 * form["multiply_adds"] / 0.25e9)
    counted = shutil.which("valgrind") is not None
    assert [form["instructions"] is not None for form in found["forms"]] == [
        False, False, counted, False, counted
    ]  # fmt: skip
    assert "One prediction of 2-6-4" in result.out
    assert "energy: estimated for Intel Edison" in result.out
    assert Path("found.png").read_bytes().startswith(b"\x89PNG")
    assert Path("found.svg").exists()


def test_forms_that_cannot_run_are_listed(
    run: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    arguments = ("--against", "folded,c-int8", "--rounds", 1, "--device", "cortex-m4")
    result = run("profile", model, *arguments, "--json", "found.json")
    assert result.code == 0, result.err
    assert "c-int8: not available, this form needs a C compiler" in result.out
    assert "energy: estimated for Cortex-M4" in result.out
    found = json.loads(Path("found.json").read_text())
    assert [form["available"] for form in found["forms"]] == [True, False]
    assert found["energy"].startswith("estimated for Cortex-M4")


def test_refusals(run: Any, model: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("profile", *arguments)
        assert result.code == 1
        return str(result.err)

    assert "--against tpu is unknown; accepted: torch, " in error(model, "--against", "tpu")
    assert "--device toaster is unknown" in error(model, "--device", "toaster")
    assert "there is no folder" in error(model, "--json", "none/found.json")
    assert "there is no such file" in error("absent")
    ensemble = rds.SSPRegressor(members=2, **FIT)
    ensemble.fit(np.arange(40.0)[:, None], np.arange(40.0)).save("ensemble")
    assert "takes more than one pass, so it cannot be folded" in error("ensemble")
