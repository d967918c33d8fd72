"""Periodic embeddings in 32 bits, operation by operation as the C computes them.

Angles are counted in periods, so that whole ones are taken off exactly; a sine is a polynomial of
the quarter that is left. No operation but a product and its sum could be fused: where a compiler
does not, the numbers here are those of the C to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.folded.embedding import NUMBERS, Embedding
from rdeepsense.guard import EMBEDDING_REACH

# sin(2 pi t) = t (a_0 + a_1 t^2 + ...) for |t| <= 1/4, of least greatest error (3.4e-9).
SINE = (6.283185005, -41.34165573, 81.60100555, -76.5497818, 39.53670502)


@dataclass(frozen=True)
class StoredEmbedding:
    """c (inputs, frequencies), the W_j transposed (inputs, 2 frequencies, width), b as it was."""

    frequency: Singles
    weight: Singles
    bias: Singles

    @property
    def outputs(self) -> int:
        return self.bias.size

    def beside(self, z: Singles) -> Singles:
        """Compute what the first layer reads, [z, e]; z is finite."""
        each = max(1, NUMBERS // self.weight[:, :, 0].size)
        parts = [self._values(z[k : k + each]) for k in range(0, len(z), each)]
        e = np.concatenate(parts) if parts else np.empty((0, self.outputs), np.float32)
        return np.hstack([z, e])

    def _values(self, z: Singles) -> Singles:
        reach = np.float32(EMBEDDING_REACH)
        waves = sines_cosines(np.clip(z, -reach, reach)[:, :, None] * self.frequency)
        sums = np.repeat(self.bias[None], len(z), 0)
        sine, cosine = np.split(waves, 2, axis=2)
        of_sine, of_cosine = np.split(self.weight, 2, axis=1)
        for f in range(sine.shape[2]):
            sums += sine[:, :, f, None] * of_sine[:, f] + cosine[:, :, f, None] * of_cosine[:, f]
        return np.maximum(sums, np.float32(0)).reshape(len(z), -1)


def sines_cosines(periods: Singles) -> Singles:
    """Compute [sin, cos] of these many periods along the last axis."""
    half, quarter = np.float32(0.5), np.float32(0.25)
    rest = periods - np.trunc(periods + np.copysign(half, periods))
    size = np.abs(rest)
    sine = _sine(quarter - np.abs(size - quarter))
    return np.concatenate([np.where(rest < 0, -sine, sine), _sine(quarter - size)], axis=-1)


def _sine(t: Singles) -> Singles:
    """Compute sin(2 pi t) for |t| <= 1/4."""
    terms, square = [np.float32(a) for a in SINE], t * t
    total = np.full_like(t, terms[-1])
    for term in terms[-2::-1]:
        total = total * square + term
    return total * t


def stored(embedding: Embedding, off: Floats, per: Floats) -> StoredEmbedding:
    """Round an embedding of z to one of z' in 32 bits, where z = z' per + off.

    Only the frequencies hold `per`; with phi = 2 pi c off, which a centre in 32 bits may make
    large, sin(a + phi) = sin(a) cos(phi) + cos(a) sin(phi) goes into the weights. Beyond the reach
    it is z' that is held there: the sines are then those of a row `off` further out.
    """
    phase = 2 * np.pi * (embedding.frequency * off[:, None])[:, None]
    sine, cosine = np.split(embedding.matrices, 2, axis=2)
    turned = np.concatenate(
        [
            sine * np.cos(phase) - cosine * np.sin(phase),
            sine * np.sin(phase) + cosine * np.cos(phase),
        ],
        axis=2,
    )
    return StoredEmbedding(
        (embedding.frequency * per[:, None]).astype(np.float32),
        np.ascontiguousarray(turned.transpose(0, 2, 1), dtype=np.float32),
        embedding.bias.astype(np.float32),
    )
