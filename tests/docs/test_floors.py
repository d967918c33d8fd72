"""The picture of the floors is that of the present code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_is_what_the_script_draws_now() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "draw_floors.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
