"""The demo, smaller: its files, their keys, and figures that correct code reaches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rdeepsense as rds
from rdeepsense.cli import demo
from rdeepsense.cli.demo import TASK, known_truth_tour, task_tour
from rdeepsense.cli.terminal import Terminal
from rdeepsense.engines import Local
from rdeepsense.paper.demo import SensorResults
from rdeepsense.paper.study import PRESETS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    known_truth_tour(out, seed=0, terminal=Terminal(quiet=True), test_rows=5_000)
    return out


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return loaded


def test_files(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["demo.png", "demo.svg", "model.safetensors", "results.json"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert rds.load(folder / "model.safetensors").n_features_in_ == 4


def test_keys(results: dict[str, Any]) -> None:
    assert results["simulated"] is True
    assert results["data"].startswith("simulated")
    assert results["rows"] == {"train": 3_200, "validation": 800, "test": 5_000}
    assert list(results["predictors"]) == ["truth", "RDeepSense", "RDeepSense-MC10"]
    for predictor in results["predictors"].values():
        assert set(predictor) == {
            "kl_from_truth", "nll", "deviation_area", "deviation_area_signed", "rmse_log_std",
            "rmse_mean", "coverage_50", "coverage_80", "coverage_90", "coverage_95", "passes",
            "seconds",
        }  # fmt: skip
    assert {"seed", "deviation_floor", "fit_seconds", "machine", "versions"} < set(results)


def test_uncertainty_is_close_to_the_truth(results: dict[str, Any]) -> None:
    once, truth = results["predictors"]["RDeepSense"], results["predictors"]["truth"]
    assert once["kl_from_truth"] <= 0.06
    assert once["deviation_area"] <= 0.03
    assert once["rmse_log_std"] <= 0.18
    assert abs(once["coverage_90"] - 0.9) <= 0.03
    assert truth["kl_from_truth"] == truth["rmse_mean"] == 0
    assert truth["deviation_area"] <= 4 * results["deviation_floor"]
    assert once["nll"] > truth["nll"]
    assert results["predictors"]["RDeepSense-MC10"]["passes"] == 10


def test_out_must_not_be_a_file(run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert run("demo", "--out", "taken").err == "error: --out taken: is a file; give a folder\n"


def test_table_says_simulated(results: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    from rdeepsense.cli.demo import _table

    Terminal().table(_table(SensorResults.from_json(results)))
    shown = capsys.readouterr().out
    assert "Simulated data, 5,000 test rows" in shown
    assert "RDeepSense-MC10" in shown
    assert "KL from the truth" in shown


@pytest.mark.slow
def test_the_task_by_all_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = replace(PRESETS["quick"], hidden=(4,), seeds=1, rows={TASK: 1_000}, steps=4, gp_rows=40,
                   gp_steps=2, rounds=1, kl_draws=2)  # fmt: skip
    study = task_tour(tmp_path, 0, Terminal(), tiny, engine=Local(), quiet=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        "cells", "figures", "report.html", "report.md", "results.json", ".report.json",
    }  # fmt: skip
    assert study.to_json() == json.loads((tmp_path / "results.json").read_text())
    assert set(study.tasks[TASK].methods) >= {"RDeepSense", "MCDrop-3-paper"}
    shown = capsys.readouterr().out
    assert "Simulated data" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert [line[1] for line in lines if line[:1] == ["SSP-10-paper"]] == ["10"]
    assert shown.splitlines()[-1].startswith(f"wrote {tmp_path / 'report.html'}")


def test_the_whole_demo_says_where_to_go_on(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    for name in ("known_truth_tour", "task_tour"):
        monkeypatch.setattr(demo, name, lambda out, *_, **__: made.append(out))
    result = run("demo", "--out", "tour")
    assert result.code == 0
    assert made == [Path("tour"), Path("tour") / TASK]
    assert "rdeepsense reproduce all" in result.out
    assert run("demo", "--out", "tour", "--quiet").out == ""
