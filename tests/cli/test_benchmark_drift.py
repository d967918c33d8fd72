"""`rdeepsense benchmark drift`: cells that are kept, means over seeds, the page, the refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense._progress import Silent
from rdeepsense.cli.paper import run_drift
from rdeepsense.engines import Local
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.live.replay import WAYS, Outcome, Replayed
from rdeepsense.paper import drift
from rdeepsense.paper.drift import DriftTrial, Score, Stream


def judged(folder: Path, seed: int) -> DriftTrial:
    """A study that takes no time: errors 3, 4, ... by seed."""
    if (folder / "broken").exists() and seed == 1:
        raise InputError("broken on purpose")
    with (folder / "log").open("a") as file:
        file.write(f"{seed}\n")
    told = Outcome(*np.random.default_rng(seed).random((4, 90)))
    known = np.ones(90, np.bool_)
    found = Replayed(dict.fromkeys(WAYS, told), 0.9, known, known, 12, False)
    scores = [
        Score("frozen", "every row", {"error": 3.0 + seed, "nll": 1.0}),
        Score("live", "every row", {"error": 1.0, "nll": 0.5, "alarm": 10.0 + 2 * seed}),
    ]
    return DriftTrial(0.1, {"rows": 30.0}, scores, Stream.of(found))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("data")
    study = drift.Study("A study", "ppm", ("file",), judged)
    monkeypatch.setattr(drift, "STUDIES", {"gas": study})
    return tmp_path


def test_results_report_and_picture(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = data / "out"
    (data / "broken").touch()
    with pytest.raises(RDeepSenseError, match=r"1 cells failed.*gas seed 1: broken on purpose"):
        run_drift(data, ["gas"], 3, out)
    assert "2 cells run now, 0 found finished" in capsys.readouterr().out
    written: Any = json.loads((out / "results.json").read_text())
    frozen, live = written["summary"]
    assert frozen["figures"]["error"] == {"value": 4.0, "standard_error": 1.0, "seeds": 2}
    assert live["figures"]["alarm"] == {"value": 12.0, "standard_error": None, "seeds": 2}
    page = (out / "report.html").read_text()
    assert "4.0 ± 1.0" in page
    assert "MAE, ppm" in page
    assert page.count("<svg") == 3
    assert (out / "gas-stream.png").stat().st_size > 10_000


def test_cells_are_kept_and_tried_again(data: Path) -> None:
    (data / "broken").touch()
    run = lambda seeds: drift.run_cells(  # noqa: E731
        drift.cells_of(data, ["gas"], seeds), data / "cells", Local(), Silent()
    )
    first = run(2)
    assert [cell.seed for cell, _ in first.failed] == [1]
    (data / "broken").unlink()
    again = run(3)
    assert (again.ran, again.failed) == (2, [])
    assert [cell.seed for cell, _ in again.done] == [0, 1, 2]
    assert (data / "log").read_text().split() == ["0", "1", "2"]
    (data / "file").write_text("other data")
    assert run(1).ran == 1


def test_what_is_refused(run: Any, tmp_path: Path) -> None:
    done = run("benchmark", "drift", "--data", tmp_path, "--task", "weather")
    assert "--task 'weather'; accepted: gas, people, pressure, pressure-by-record" in done.err
    done = run("benchmark", "drift", "--data", tmp_path, "--task", "gas")
    assert "there is no gassen/uci270_drift.parquet" in done.err
    assert not (tmp_path / "drift").exists()
