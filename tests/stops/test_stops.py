"""A few rounds of each kind in CI; with RDEEPSENSE_LONG every call and 100 rounds of each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))


def said(script: str, *arguments: str) -> str:
    """Run a script in a process of its own: its children are forked, and some kill themselves."""
    path = Path(__file__).with_name(script)
    done = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_every_call() -> None:
    kinds = [] if LONG else ["folder", "model", "live", "checkpoint", "cell", "folded", "c99/13"]
    for line in said("every_call.py", *kinds).splitlines():
        kind, _, kills = line.partition(": ")
        assert int(kills.split()[0]) >= (4 if kind == "c99" else 12), line


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_rounds() -> None:
    interrupts, kills = (100, 100) if LONG else (1, 2)
    printed = said("rounds.py", "--interrupts", str(interrupts), "--kills", str(kills))
    assert f"{interrupts + kills} rounds, 0 differences" in printed
