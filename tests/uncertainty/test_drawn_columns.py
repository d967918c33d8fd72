"""Columns drawn from a novelty are like those that it was fitted on."""

from __future__ import annotations

import numpy as np

from rdeepsense.uncertainty.novelty import Novelty, drawn_columns


def test_columns_are_drawn_from_the_density() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    x[:, 1] = np.exp(x[:, 1])
    novelty = Novelty.fit(x[:3_000], x[3_000:])
    drawn = drawn_columns(novelty)
    assert np.array_equal(drawn, drawn_columns(novelty))
    levels = np.linspace(0.05, 0.95, 10)
    own, known = (np.quantile(part, levels, axis=0) for part in (drawn, x))
    assert np.abs(own - known).max() < 0.25
    ranks = [np.argsort(np.argsort(part, axis=0), axis=0) for part in (drawn, x)]
    tied = [np.corrcoef(rank.T)[0, 1] for rank in ranks]
    assert abs(tied[0] - tied[1]) < 0.05
