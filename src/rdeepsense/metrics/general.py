"""Metrics of any distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.metrics.checks import truth_of

Metric = Callable[[AnyDistribution, npt.ArrayLike], float]


def nll(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean negative log-likelihood in nats, all constants included."""
    truth = truth_of(dist, y)
    return float(-np.mean(dist.log_prob(truth)))


def per_output(metric: Metric, dist: AnyDistribution, y: npt.ArrayLike) -> Floats:
    """Return `metric` for each output, where the first axis of `dist` and `y` holds the samples.

    The result has the shape of the other axes; a single output without an axis gives one number.
    """
    truth = truth_of(dist, y)
    if truth.ndim == 0:
        raise InputError("per_output needs an axis of samples; got a distribution of one value")
    columns = [(slice(None), *output) for output in np.ndindex(truth.shape[1:])]
    # The truth as it was given: a metric encodes labels itself.
    values = [metric(dist[column], np.asarray(y)[column]) for column in columns]
    return np.array(values).reshape(truth.shape[1:] or (1,))
