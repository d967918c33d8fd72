"""docs/firmware.md: every command works and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "firmware.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.M | re.S)


def without_numbers(text: str) -> list[str]:
    """Numbers differ from machine to machine, and with them the spaces of a table."""
    return re.sub(r"[+-]?\d[\d.,]*(e-?\d+)?", "#", text).split()


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    blocks = BLOCK.findall(PAGE.read_text())
    assert [kind for kind, _, _ in blocks].count("sh") == 15
    outputs, code = [], ""
    for kind, name, body in blocks:
        if name:
            (tmp_path / name).write_text(body)
        elif kind == "sh":
            done = subprocess.run(
                ["bash", "-euc", body],
                cwd=tmp_path,
                env={**os.environ, "PATH": path, "COLUMNS": "80"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, f"{body}\n{done.stdout}"
            outputs.append(done.stdout)
        elif kind == "python" and ('"watch"' in body or '"band"' in body):
            code += body  # commands below need the folders that it writes
            subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)
        elif kind == "text":
            assert without_numbers(outputs[-1]) == without_numbers(body)
    here, board = (out for out in outputs if "90 % between" in out)
    assert here == board, "the Cortex-M4 and this machine predict the same"
