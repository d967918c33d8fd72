"""Whatever an object predicts as a distribution, as one of this package's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.distributions.base import Distribution
from rdeepsense.errors import InputError
from rdeepsense.experiments.peers.frozen import Frozen

ACCEPTED = (
    "a distribution of this package, a frozen one of scipy or NGBoost, .mean and .std as arrays, "
    "or a pair (mean, std)"
)
ASKED = ("mean", "std", "logpdf", "cdf", "ppf")


def numbers(found: Any, rows: int, whose: str) -> AnyDistribution:
    """Return a prediction of numbers; `whose` says what it came from, for errors."""
    if isinstance(found, Distribution):
        if found.is_categorical or found.shape != (rows,):
            raise InputError(f"{whose} gave {found!r}; needed: numbers of shape ({rows},)")
        return cast(AnyDistribution, found)
    params = _attribute(found, "params")
    # NGBoost's distributions hold a frozen one of scipy, from which they take their methods.
    inner = _attribute(found, "dist") if isinstance(params, Mapping) else found
    for source in (inner, found):
        if all(callable(_attribute(source, name)) for name in ASKED):
            # All that metrics ask of a distribution, though not all that ours can do.
            return _normal(source, rows) or cast(AnyDistribution, Frozen(source, rows))
    if isinstance(params, Mapping) and set(params) == {"loc", "scale"}:
        return _gaussian(params["loc"], params["scale"], rows, whose)
    if isinstance(found, tuple) and len(found) == 2:
        return _gaussian(found[0], found[1], rows, whose)
    mean, std = (_attribute(found, name) for name in ("mean", "std"))
    # Not an array of points: its mean and std are those over rows.
    if mean is not None and std is not None and _attribute(found, "__array__") is None:
        mean, std = (own() if callable(own) else own for own in (mean, std))
        return _gaussian(mean, std, rows, whose)
    raise InputError(f"{whose} gave a {type(found).__name__}; accepted: {ACCEPTED}")


def classes(found: Any, rows: int, labels: NDArray[Any], whose: str) -> Categorical:
    """Return a prediction of classes, labelled; `labels` are the classes in the object's order."""
    if isinstance(found, Categorical):
        found = found if found.classes is not None else found.probs
    elif callable(own := _attribute(found, "class_probs")):
        found = own()
    if isinstance(found, Categorical):
        return found
    probs = np.asarray(found)
    if probs.dtype.kind not in "fiu" or probs.shape != (rows, len(labels)):
        raise InputError(
            f"{whose} gave {type(found).__name__} of shape {probs.shape}; needed: probabilities "
            f"of shape ({rows}, {len(labels)}), a column for each class"
        )
    # float32 probabilities add up to 1 less exactly than a Categorical asks for.
    sums = probs.sum(axis=1, keepdims=True, dtype=np.float64)
    close = np.all(np.abs(sums - 1) < 1e-3)
    return Categorical(probs / sums if close else probs, labels)


def _normal(source: Any, rows: int) -> Gaussian | None:
    """Return a normal distribution exactly; None for all others."""
    family = _attribute(_attribute(source, "dist"), "name")
    if family != "norm":
        return None
    return Gaussian(*(np.broadcast_to(getattr(source, own)(), (rows,)) for own in ("mean", "std")))


def _gaussian(mean: Any, std: Any, rows: int, whose: str) -> Gaussian:
    shapes = {np.shape(mean), np.shape(std)}
    if not shapes <= {(rows,), ()}:
        raise InputError(
            f"{whose} gave mean and std of shape {np.shape(mean)} and {np.shape(std)}; needed: "
            f"({rows},)"
        )
    both = (np.broadcast_to(np.asarray(own, np.float64), (rows,)) for own in (mean, std))
    return Gaussian(*both)


def _attribute(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)
