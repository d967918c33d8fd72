"""A command line to call in-process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rdeepsense.cli import main

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run `rdeepsense ARGS` in an empty folder; returns what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args: object) -> tuple[str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        assert not exit_.value.code, captured.err
        return captured.out, captured.err

    return call
