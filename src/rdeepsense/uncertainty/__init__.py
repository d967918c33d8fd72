"""Epistemic variance: the variance of a network's mean that is not noise of the data.

`delta`, `moments` and `sample` find the variance that dropout masks give the mean (the logits of
classes), `laplace` the variance that the training rows leave to the last layer's weights.
"""

from __future__ import annotations

from torch import Tensor

from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.uncertainty.laplace import Laplace, by_laplace, features
from rdeepsense.uncertainty.masks import by_delta, by_moments, by_sampling

METHODS = ("delta", "moments", "laplace", "sample")

__all__ = [
    "METHODS",
    "Laplace",
    "by_delta",
    "by_laplace",
    "by_moments",
    "by_sampling",
    "epistemic_variance",
    "features",
]


def epistemic_variance(
    network: StochasticNetwork,
    x: Tensor,
    method: str = "delta",
    fitted: Laplace | None = None,
    samples: int = 100,
    seed: int = 0,
) -> Tensor:
    """Return the epistemic variance (rows, outputs) of a converted network's mean, or logits, at x.

    "delta" is one forward and one backward pass, "moments" one pass with two numbers for each unit,
    "laplace" one pass and one matrix (`fitted` by `Laplace.fit`), "sample" the reference:
    `samples` passes with dropout on.
    """
    if method == "delta":
        return by_delta(network, x)[1]
    if method not in METHODS:
        raise InputError(f"method = {method!r} is unknown; accepted: {', '.join(METHODS)}")
    if method == "moments":
        return by_moments(network, x)[1]
    if method == "sample":
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
            raise InputError(f"samples = {samples!r} is not a whole number of at least 2")
        return by_sampling(network, x, samples, seed)[1]
    if fitted is None:
        raise InputError('method = "laplace" needs fitted=Laplace.fit(network, batches)')
    return by_laplace(network, x, fitted)[1]
