"""Weights of experts that change over time: likelihood, and a fixed share back to the prior.

    v_e = w_e exp(l_e) / sum,        w_e <- (1 - share) v_e + share prior_e

with l_e the log likelihood that expert e gave to what came (Herbster & Warmuth 1998). The mixture's
own log likelihood, L = sum_t log sum_e w_e exp(l_e), is after T steps at least that of every single
expert less a constant and a cost by step, whatever came:

    L >= sum_t l_e + log prior_e + (T - 1) log(1 - share + share prior_e)

and where the best expert changes k times, less k log(1 / (share prior)) instead of a cost that
grows with the number of steps after the change.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats


def updated(weights: Floats, logs: Floats, prior: Floats, share: float) -> Floats:
    """Return the weights after log likelihoods `logs`, of which some may be -inf, not all."""
    likely = weights * np.exp(logs - logs.max())
    found: Floats = (1 - share) * likely / likely.sum() + share * prior
    return found


def regret_bound(prior: float, share: float, steps: int) -> float:
    """Return the most that a mixture can lose in `steps` steps against an expert, in nats."""
    return float(-np.log(prior) - (steps - 1) * np.log1p(-share * (1 - prior)))
