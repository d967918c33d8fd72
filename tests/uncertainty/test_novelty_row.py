"""One row at a time gives what many at once give."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.uncertainty.novelty import Novelty, RowNovelty


@pytest.mark.parametrize("kind", ["table", "windows"])
def test_as_many_at_once(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 6))
    rows[:, 1] = rng.integers(0, 3, 400)  # few values
    rows[:, 2] = 1.5  # one value
    rows[:, 3] = np.exp(2 * rows[:, 3])
    if kind == "windows":
        rows = rows[:, None, :] + 0.1 * rng.normal(size=(400, 5, 6))
    known = Novelty.fit(rows[:300], rows[300:])
    own = RowNovelty.of(known)
    for far in (0.0, 1.0, 30.0, 1e9):
        some = rows[:60] + far * rng.normal(size=rows[:60].shape)
        many = known.surprise(some)
        ones = [own.surprise(some[k : k + 1]) for k in range(60)]
        assert ones == pytest.approx(many, rel=1e-9, abs=1e-8)
    at_knots = np.repeat(known.knots[:, None, :].astype(float), 1, 1)[:, 0]
    if kind == "table":
        ones = [own.surprise(row[None]) for row in at_knots]
        assert ones == pytest.approx(known.surprise(at_knots), rel=1e-9, abs=1e-8)
