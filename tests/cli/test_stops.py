"""Ctrl-C: exit code 130, one line that says what is kept, and no finished model replaced."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from stopping import Steps

import rdeepsense as rds
from rdeepsense.training import loop

FIT = ("--target", "y", "--epochs", "20", "--hidden", "4", "--ignore", "z", "--overwrite")


def press(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(loop, "accelerate", Steps(step).accelerate)


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_a_partial_model_is_kept_beside_and_the_same_command_goes_on(
    run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("fit", "--quick", csv, *FIT, "--checkpoint", "run.ckpt")
    assert run(*command[:-2], "-o", "whole").code == 0
    assert run(*command[:-2], "--seed", "3").code == 0
    finished = Path("model.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        press(patch, 25)
        result = run(*command)
    assert result.code == 130
    assert last_line(result.err) == (
        "interrupted: model.partial.safetensors holds the best step so far; "
        "the same command goes on from run.ckpt"
    )
    assert "wrote" not in result.out
    assert Path("model.safetensors").read_bytes() == finished
    assert rds.load("model.partial.safetensors").training_["interrupted"]
    result = run(*command)
    assert result.code == 0
    resumed, whole = rds.load("model.safetensors"), rds.load("whole")
    assert resumed.training_["resumed_at"] == 25
    for a, b in zip(resumed.network_.parameters(), whole.network_.parameters(), strict=True):
        assert a.equal(b)


def test_a_partial_model_takes_the_place_of_another_where_asked(
    run, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("m").write_text("a finished one")
    press(monkeypatch, 25)
    result = run("fit", "--quick", csv, *FIT[:-1], "-o", "m", "--partial", "--quiet")
    assert (result.code, result.out) == (130, "")
    assert last_line(result.err) == (
        "interrupted: m holds the best step so far; the same command begins again; "
        "with --checkpoint FILE it would go on"
    )
    assert rds.load("m").training_["interrupted"]


def test_a_second_ctrl_c_while_saving_leaves_no_half_files(
    run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("model.safetensors").write_text("a finished one")
    before = {path.name for path in tmp_path.iterdir()}
    replace = os.replace

    def press_again(*paths: str) -> None:
        if ".model.partial" in str(paths[0]):
            os.kill(os.getpid(), signal.SIGINT)
        replace(*paths)

    monkeypatch.setattr(os, "replace", press_again)
    press(monkeypatch, 25)
    result = run("fit", "--quick", csv, *FIT, "--checkpoint", "run.ckpt")
    assert result.code == 130
    assert last_line(result.err) == "interrupted: the same command goes on from run.ckpt"
    assert {path.name for path in tmp_path.iterdir()} == {*before, "run.ckpt"}


def test_ctrl_c_after_the_model_is_written(run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rdeepsense.cli.sources.score_model", stopped)
    result = run("fit", "--quick", csv, *FIT)
    assert result.code == 130
    assert last_line(result.err).startswith("interrupted: model.safetensors is the finished model")
    assert not rds.load("model.safetensors").training_["interrupted"]


def test_a_full_disk_names_the_file(run, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("fit", "--quick", csv, *FIT, "-o", "m")
    assert (result.code, last_line(result.err)) == (1, "error: m: No space left on device")


def test_cells_that_are_finished_are_kept(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of `benchmark`, `reproduce` and `demo`; here by cells that are no results at all."""
    from rdeepsense.cli import demo
    from rdeepsense.cli import paper as benchmark
    from rdeepsense.paper import run as paper_run

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "run_uci", stopped)
    monkeypatch.setattr(paper_run, "run", stopped)
    monkeypatch.setattr(demo, "known_truth_tour", lambda *_: None)
    for command, out in (
        (("benchmark", "uci", "--data", ".", "--out", "o"), Path("o")),
        (("reproduce", "GasSen", "--out", "o"), Path("o")),
        (("demo", "--out", "o"), Path("o/NYCommute")),
    ):
        result = run(*command)
        assert result.code == 130
        none = "interrupted: no cell was finished; the same command begins again"
        assert last_line(result.err) == none
        (out / "cells").mkdir(parents=True, exist_ok=True)
        for number in range(2):
            (out / "cells" / f"{number}.json").touch()
        assert last_line(run(*command).err) == (
            f"interrupted: 2 finished cells are kept in {out}/cells; "
            "the same command goes on from there"
        )
        for cell in (out / "cells").iterdir():
            cell.unlink()


def test_the_sensor_of_the_demo_is_whole_or_not_written(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(monkeypatch, 30)
    result = run("demo", "--out", "demo")
    assert result.code == 130
    assert list((tmp_path / "demo").iterdir()) == []
