"""Small data sets in the benchmark's layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def write_set(path: Path, rows: int = 45, splits: int = 2, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    test = np.argsort(rng.random((splits, rows)), axis=1) < rows // 5
    y = x[:, 0] + 0.2 * rng.normal(size=rows)
    np.savez(path, x=x, y=y, test_mask=np.packbits(test, axis=1), n=np.array(rows))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the sets `yacht` and `wine-small`."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_set(folder / "yacht.npz")
    write_set(folder / "wine-small.npz", rows=51, seed=1)
    return folder
