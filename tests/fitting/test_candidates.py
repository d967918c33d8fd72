"""The grid of candidates, and which of them wins."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import InputError
from rdeepsense.fitting.records import (
    ALPHAS,
    DROPS,
    PAPER_ALPHAS,
    Candidate,
    Trial,
    best,
    candidates,
)


def trial(likelihood: str, nll: float, area: float = 0.1) -> Trial:
    return Trial(Candidate(likelihood, 0.0, 0.0), nll, area, 1.0, 10)


def test_grids() -> None:
    assert candidates(("gaussian",), 0.3, 0.1) == (Candidate("gaussian", 0.3, 0.1),)
    grid = candidates(("gaussian", "student"), "auto", "auto")
    assert len(grid) == 2 * len(ALPHAS) * len(DROPS)
    assert [c.alpha for c in candidates(("gaussian",), "paper", 0.1)] == list(PAPER_ALPHAS)
    with pytest.raises(InputError, match="alpha = 'mean' is unknown"):
        candidates(("gaussian",), "mean", 0.1)


def test_the_least_nll_wins_but_a_gaussian_must_win_clearly() -> None:
    rng = np.random.default_rng(0)
    losses = [rng.normal(1.0, 1.0, 400), rng.normal(1.01, 1.0, 400)]
    trials = [trial("gaussian", losses[0].mean()), trial("student", losses[0].mean() + 0.001)]
    assert best(trials, "nll", losses) == 1
    sign = np.resize([-1.0, 1.0], 400)  # standard error 0.05
    for ahead, winner in ((0.09, 1), (0.11, 0)):
        near = [trial("gaussian", 1.0), trial("student", 1.0 + ahead)]
        assert best(near, "nll", [losses[0], losses[0] + ahead + sign]) == winner
    clear = [losses[0], losses[0] + 0.1]
    assert best([trial("gaussian", 1.0), trial("student", 1.1)], "nll", clear) == 0
    assert best([trial("gaussian", 1.1), trial("student", 1.0)], "nll", clear) == 1
    assert (
        best([trial("gaussian", 2.0, 0.01), trial("gaussian", 1.0, 0.2)], "deviation_area", []) == 0
    )
