"""A command line to call in-process, and small tables to call it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rdeepsense.cli import main


@dataclass
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run `rdeepsense ARGS` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RDEEPSENSE_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*args: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Result(int(exit_.value.code or 0), captured.out, captured.err)

    return call


def sensor_frame(rows: int = 400) -> pl.DataFrame:
    """Inputs a and "b [V]", two targets, a class, a user, and columns that are no use."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, rows))
    y = 10 + 3 * a - b + 0.5 * rng.normal(size=rows)
    return pl.DataFrame(
        {
            "a": a,
            "b [V]": b,
            "y": y,
            "z": -2 * a + 0.3 * rng.normal(size=rows),
            "label": np.where(y > 11, "high", np.where(y > 8.5, "mid", "low")),
            "user": np.repeat(np.arange(rows // 20), 20),
            "site": np.where(b > 0, "north", "south"),
            "same": np.ones(rows),
        }
    )


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    sensor_frame().write_csv(path)
    return path


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    sensor_frame().write_parquet(path)
    return path
