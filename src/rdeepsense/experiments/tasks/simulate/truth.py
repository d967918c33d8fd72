"""The distance of a prediction from the known truth of simulated rows."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions.base import Seed, count, generator
from rdeepsense.errors import InputError
from rdeepsense.experiments.tasks.task import Truth


class Density(Protocol):
    """Any distribution with a density."""

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Return the log density (log probability for classes) of each entry of y."""


def kl_from_truth(
    truth: Truth, predicted: Density, rng: Seed, draws: int = 20
) -> tuple[float, float]:
    """Return KL(truth || prediction) = E[log p_true(y) - log p_pred(y)] in nats, and its error.

    y is drawn from the truth, `draws` times for every entry. Outputs of one row are averaged, and
    the standard error is that of the mean over rows. The estimate is unbiased: close to a perfect
    prediction it may fall below 0 by a few standard errors.
    """
    source = generator(rng)
    total = np.zeros(())
    for _ in range(count(draws)):  # one draw at a time: twenty of all waveforms fill the memory
        y = truth.sample(1, source)[0]
        gain, stated = truth.log_prob(y), predicted.log_prob(y)
        if gain.shape != stated.shape:
            raise InputError(f"the truth has shape {gain.shape}, the prediction {stated.shape}")
        total = total + (gain - stated).reshape(len(gain), -1).mean(axis=1)
    per_row = total / draws
    if len(per_row) < 2:
        raise InputError("a standard error needs two rows or more; got 1")
    return float(per_row.mean()), float(per_row.std(ddof=1) / np.sqrt(len(per_row)))
