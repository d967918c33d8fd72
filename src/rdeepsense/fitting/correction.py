"""What a model has learnt from the labels of one group, beside its frozen networks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rdeepsense.adaptation.corrections import AdaptedClasses, AdaptedNumbers, ClassPrior, Prior
from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.records import Json
from rdeepsense.modelfile.tensors import Tensors

AnyPrior = Prior | ClassPrior
TINY = 1e-300


@dataclass(frozen=True)
class GroupCorrection:
    """The state after `labels` labels, and the SHA-256 of the networks that it corrects."""

    state: AdaptedNumbers | AdaptedClasses
    projection: Floats | None
    labels: int
    source: str

    def apply(self, dist: AnyDistribution, phi: Floats, unit: Floats | None) -> AnyDistribution:
        """Correct calibrated predictions; `unit` is the scale of each output, None for classes.

        Numbers: the median is shifted and the width around it multiplied, whatever the shape.
        """
        if isinstance(self.state, AdaptedClasses):
            assert isinstance(dist, Categorical)
            return Categorical(
                softmax(logits_of(dist) + self.state.shift(phi), axis=1), dist.classes
            )
        assert not isinstance(dist, Categorical)
        assert unit is not None
        shape = dist.shape
        shift = (self.state.shift(phi) * unit).reshape(shape)
        factor = np.sqrt(self.state.kept(phi)).reshape(shape)
        return dist.affine(dist.quantile(0.5) * (1 - factor) + shift, factor)

    def arrays(self) -> Tensors:
        """Return the tensors of a model file."""
        state = self.state
        found: Tensors = {"weights": state.weights, "covariance": state.covariance}
        if isinstance(state, AdaptedNumbers):
            found["start"] = state.start
        if self.projection is not None:
            found["projection"] = self.projection
        return found

    def to_json(self) -> Json:
        return {"labels": self.labels, "source": self.source}

    @classmethod
    def restored(cls, record: Json, prior: AnyPrior, arrays: Tensors) -> GroupCorrection:
        """Build what a checked model file holds."""
        weights, covariance = arrays["weights"], arrays["covariance"]
        state: AdaptedNumbers | AdaptedClasses
        if isinstance(prior, Prior):
            state = AdaptedNumbers(prior, weights, covariance, arrays["start"])
        else:
            state = AdaptedClasses(prior, weights, covariance)
        return cls(state, arrays.get("projection"), record["labels"], record["source"])


def logits_of(dist: Categorical) -> Floats:
    """Return the logits of calibrated probabilities, which are known up to a constant."""
    found: Floats = np.log(np.maximum(dist.probs, TINY))
    return found


def prior_arrays(prior: AnyPrior) -> Tensors:
    """Return the tensors of a prior; that of classes has none."""
    if isinstance(prior, ClassPrior):
        return {}
    names = ("between", "within", "directions", "shares")
    return {name: getattr(prior, name) for name in names}


def prior_json(prior: AnyPrior) -> Json:
    """Return what the header says of a prior."""
    return {"rows": prior.rows, "groups": prior.groups}


def prior_restored(record: Json, arrays: Tensors) -> AnyPrior:
    """Build the prior of a checked model file."""
    if not arrays:
        return ClassPrior(float(record["rows"]), record["groups"])
    return Prior(float(record["rows"]), **arrays, groups=record["groups"])


def networks_digest(members: Iterable[StochasticNetwork], scales: Iterable[NDArray[Any]]) -> str:
    """Compute SHA-256 of all weights and scales: two models with the same one predict alike."""
    digest = hashlib.sha256()
    for member in members:
        for name, value in sorted(member.state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(value.cpu().numpy(), "<f8").tobytes())
    for array in scales:
        digest.update(np.ascontiguousarray(array, "<f8").tobytes())
    return digest.hexdigest()
