"""Calls of a page's script under Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RUN = Path(__file__).with_name("run_page.mjs")


def call(node: str, folder: Path, calls: list[list[Any]]) -> list[Any]:
    text = json.dumps(calls)
    done = subprocess.run([node, str(RUN), str(folder)], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def predicted(node: str, folder: Path, X: NDArray[Any], *more: Any) -> list[Any]:
    rows = np.asarray(X, dtype=np.float64)
    return call(node, folder, [["predict", row.ravel().tolist(), *more] for row in rows])
