"""Class probabilities of uncertain logits: N(logits, variance) through a softmax."""

from __future__ import annotations

import numpy as np
from scipy import special

from rdeepsense.arrays import Floats
from rdeepsense.distributions import Categorical

DRAWS = 256
CHUNK = 1_024
TINY = 1e-300


def probit(dist: Categorical, variance: Floats) -> Categorical:
    """Return the mean of softmax(l), l ~ N(logits, v), as softmax(logits / sqrt(1 + pi v / 8)).

    MacKay's approximation (1992), class by class, of logits with a mean of 0.
    """
    logits = _logits(dist) / np.sqrt(1 + np.pi / 8 * variance)
    return Categorical(special.softmax(logits, axis=-1), dist.classes)


def mutual_information(dist: Categorical, variance: Floats, temperature: float = 1.0) -> Floats:
    """Return H[E p] - E H[p] in nats, p = softmax(l / temperature), l ~ N(logits, variance).

    What the class would tell about the weights: 0 where all networks agree, however unsure. The
    expectations are means over 256 draws, the same for every row; the network itself runs once.
    """
    noise = np.random.default_rng(0).standard_normal((DRAWS, dist.n_classes))
    logits, std = _logits(dist), np.sqrt(variance)
    found = np.empty(len(dist))
    for start in range(0, len(dist), CHUNK):
        part = slice(start, start + CHUNK)
        drawn = logits[part, None] + std[part, None] * noise
        probs = special.softmax(drawn / temperature, axis=-1)
        found[part] = special.entr(probs.mean(1)).sum(-1) - special.entr(probs).sum(-1).mean(1)
    return np.maximum(found, 0.0)


def _logits(dist: Categorical) -> Floats:
    logits = np.log(np.maximum(dist.probs, TINY))
    centred: Floats = logits - logits.mean(-1, keepdims=True)
    return centred
