"""The command: what it asks for, what it refuses, what it says."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rdeepsense.cli.paper import reproduce
from rdeepsense.engines import Local
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.paper import report, run
from rdeepsense.paper.claims import ClaimVerdict
from rdeepsense.paper.run import StudyOutcome

app = typer.Typer()
app.command()(reproduce)


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    def fake(tasks: Any, preset: Any, out: Path, *more: Any) -> StudyOutcome:
        made.append((tasks, preset.name, out, *more))
        claim = ClaimVerdict("4.5", "saves", "HHAR", "yes", "", "")
        failed = [("HHAR, GP", "no memory")] if more[2] == 7 else []
        return StudyOutcome(SimpleNamespace(claims=[claim], tasks={"HHAR": None}), 14, 3, failed)

    def write(results: Any, out: Path) -> list[Path]:
        made.append(results)
        return [*(out / "figures" / f"a.{suffix}" for suffix in ("png", "svg")), out / "report.md"]

    monkeypatch.setattr(run, "run", fake)
    monkeypatch.setattr(report, "write", write)
    return made


def test_what_is_asked_for(asked: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "new"
    result = invoke("hhar,bpest", "--preset", "paper", "--methods", "SSP-1-paper,GP", "--jobs", "2",
                    "--out", str(out))  # fmt: skip
    assert result.exit_code == 0
    methods = ["SSP-1-paper", "GP"]
    assert asked[0] == (("HHAR", "BPEst"), "paper", out, None, methods, 0, Local(2), False)
    assert list(asked[1].tasks) == ["HHAR"]
    assert "3 cells run now, 14 in all" in result.stdout
    assert re.search(r"saves +yes", result.stdout)
    assert "1 verdicts: 1 yes, 0 no" in result.stdout
    wrote = [line for line in result.stdout.splitlines() if line.startswith("wrote")]
    assert wrote == [f"wrote {out / 'results.json'}", f"wrote {out / 'report.md'}",
                     f"wrote {out / 'figures'}: 2 files, a PNG and SVG of each"]  # fmt: skip


def test_a_failed_cell_is_an_error_at_the_end(asked: list[Any], tmp_path: Path) -> None:
    result = invoke("HHAR", "--seed", "7", "--out", str(tmp_path))
    assert isinstance(result.exception, RDeepSenseError)
    assert "1 cells failed" in str(result.exception)
    assert "HHAR, GP: no memory" in str(result.exception)


def test_refused(asked: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for words, message in (
        (("ECG",), "task 'ECG' is unknown"),
        (("all", "--preset", "long"), "preset 'long' is unknown"),
        (("all", "--out", str(file)), "is a file; give a folder"),
        (("all", "--data", "nowhere"), "--data nowhere: there is no such folder"),
    ):
        result = invoke(*words)
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
    assert asked == []
