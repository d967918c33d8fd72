"""A cluster of four nodes that loses parts: a round of each kind, behind RDEEPSENSE_LONG."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not os.environ.get("RDEEPSENSE_LONG"), reason="RDEEPSENSE_LONG is not set")
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_no_finished_cell_is_lost() -> None:
    pytest.importorskip("ray")
    program = Path(__file__).with_name("cluster.py")
    done = subprocess.run(
        [sys.executable, program, "--rounds", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 runs of 40 cells, 0 differences" in done.stdout
