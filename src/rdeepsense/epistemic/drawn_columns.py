"""Columns like those that a novelty was fitted on, drawn from its density: it keeps no rows."""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.epistemic.novelty import Novelty, column_scores

DRAWN = 4_096
FAR = 100.0  # standard deviations beyond the knots


def drawn_columns(novelty: Novelty, rows: int = DRAWN, seed: int = 0) -> Floats:
    """Draw scaled columns (rows, columns).

    Of the components h = (t - centre) axes, with orthogonal axes, t = centre + h axes / |axes|^2;
    a column is where its score, which rises all along, is t.
    """
    rng = np.random.default_rng(seed)
    shares = novelty.shares.astype(np.float64)
    which = rng.choice(len(shares), rows, p=shares / shares.sum())
    noise = rng.standard_normal((rows, novelty.means.shape[1]))
    h = np.empty_like(noise)
    for k, factor in enumerate(novelty.factors.astype(np.float64)):
        own = which == k
        h[own] = novelty.means[k] + np.linalg.solve(factor.T, noise[own].T).T
    axes = novelty.axes.astype(np.float64)
    t = novelty.centre + (h / np.square(axes).sum(0)) @ axes.T
    reach = FAR * novelty.std
    places = np.vstack([novelty.knots[0] - reach, novelty.knots, novelty.knots[-1] + reach])
    scores = column_scores(places.astype(np.float64), novelty.mean, novelty.std, novelty.knots)
    return np.column_stack(
        [np.interp(own, known, at) for own, known, at in zip(t.T, scores.T, places.T, strict=True)]
    )
