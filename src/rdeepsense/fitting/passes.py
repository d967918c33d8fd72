"""The forward passes of a prediction, and the features before the last layer."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.adaptation.choose import leading, of_last_layer, projecting
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Gaussian, LocationScale, Mixture, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.uncertainty import Laplace, features

# --------------------------------------------------------------------------------------------------
# Forward passes of a prediction: single, sampled, or an ensemble
# --------------------------------------------------------------------------------------------------

# Rows (times samples) of one pass, which bounds the memory whatever the rows. A window is many
# times the work of a row.
CHUNK, CHUNK_OF_WINDOWS = 8_192, 1_024
VARIANCE_FLOOR = 1e-6  # of a standardised target: with ReLU, k passes can agree to the last bit

Combine = Callable[[Sequence[AnyDistribution]], AnyDistribution]


@dataclass(frozen=True)
class Forward:
    """Where networks run and how their inputs are scaled; `seed` is that of sampled masks."""

    scaler: Scaler
    device: torch.device
    seed: int
    chunk: int | None = None  # rows (times samples) of one pass; None follows the kind of rows

    def rows_at_once(self, X: NDArray[Any]) -> int:
        """Return how many rows of X one pass takes."""
        if self.chunk is not None:
            return self.chunk
        return CHUNK if X.ndim == 2 else CHUNK_OF_WINDOWS


@dataclass(frozen=True)
class Single:
    """The deterministic pass of the first network (section 3.3)."""

    def run(
        self, networks: Sequence[StochasticNetwork], X: NDArray[Any], forward: Forward
    ) -> AnyDistribution:
        """Predict on the network's own scale, some rows at a time."""
        ready, dtype = prepared(networks[0], forward.device)
        parts = []
        with torch.no_grad(), ready.drawing(forward.seed, forward.device):
            rows = forward.rows_at_once(X)
            for start in range(0, len(X), rows):
                x = forward.scaler.transform(X[start : start + rows], dtype).to(forward.device)
                part: AnyDistribution = ready(x).numpy()
                parts.append(part)
        return concatenate(parts)


@dataclass(frozen=True)
class Sampled:
    """`count` passes of the first network with dropout on, as one batch, and their combination."""

    count: int
    combine: Combine

    def run(
        self, networks: Sequence[StochasticNetwork], X: NDArray[Any], forward: Forward
    ) -> AnyDistribution:
        """Predict on the network's own scale, some rows at a time."""
        ready, dtype = prepared(networks[0], forward.device)
        samples, device = self.count, forward.device
        rows = max(1, forward.rows_at_once(X) // samples)
        parts = []
        with torch.no_grad(), ready.sampling(), ready.drawing(forward.seed, device):
            for start in range(0, len(X), rows):
                x = forward.scaler.transform(X[start : start + rows], dtype).to(device)
                drawn = ready(x.repeat(samples, *[1] * (x.ndim - 1))).numpy()
                own = [drawn[k * len(x) : (k + 1) * len(x)] for k in range(samples)]
                parts.append(self.combine(own))
        return concatenate(parts)


@dataclass(frozen=True)
class Members:
    """One pass of each network of an ensemble, or of its first `count`, as a mixture."""

    count: int | None = None

    def run(
        self, networks: Sequence[StochasticNetwork], X: NDArray[Any], forward: Forward
    ) -> AnyDistribution:
        """Predict on the networks' own scale."""
        if self.count is not None and self.count > len(networks):
            raise InputError(
                f"samples = {self.count}, but the ensemble has {len(networks)} members"
            )
        parts: Any = [Single().run([one], X, forward) for one in networks[: self.count]]
        mixture = Mixture(parts)
        return mixture.moment_matched() if mixture.is_categorical else mixture


Passes = Single | Sampled | Members


def matched(drawn: Sequence[AnyDistribution]) -> AnyDistribution:
    """Return one distribution with the mean and the variance of the mixture of passes."""
    return Mixture(drawn).moment_matched()  # type: ignore[arg-type]


def moments_of_values(drawn: Sequence[AnyDistribution]) -> Gaussian:
    """Return mean and population variance of the values that k passes gave (section 4.3)."""
    return _moments(drawn)[0]


def moments_without_noise(drawn: Sequence[AnyDistribution]) -> Gaussian:
    """Return the same, and warn of variances that had to be raised to the floor."""
    found, low = _moments(drawn)
    if low.any():
        warnings.warn(
            f"{low.sum()} of {low.size} variances of the passes are below "
            f"{VARIANCE_FLOOR:g} of the target's; that floor is used for them",
            stacklevel=2,
        )
    return found


def _moments(drawn: Sequence[AnyDistribution]) -> tuple[Gaussian, Booleans]:
    values = np.array([d.mean for d in drawn if isinstance(d, LocationScale)])
    var = values.var(axis=0)
    found = Gaussian(values.mean(axis=0), np.sqrt(np.maximum(var, VARIANCE_FLOOR)))
    return found, var < VARIANCE_FLOOR


def prepared(
    network: StochasticNetwork, device: torch.device
) -> tuple[StochasticNetwork, torch.dtype]:
    """Return a copy to predict with, and the type of its numbers."""
    # float64 on the CPU: a row's result must not depend on which rows share its batch.
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    return copy.deepcopy(network).to(device, dtype).eval(), dtype


def choose_device(device: str) -> torch.device:
    """Return the device that a `device` argument names; "auto" is a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"device = {device!r} is unknown; accepted: auto, cpu, cuda, cuda:N"
        ) from error
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (found.index or 0) >= count:
            raise InputError(f"device = {device!r}: torch finds {count or 'no'} GPUs here")
    return found


# --------------------------------------------------------------------------------------------------
# Inputs of the last layer, and their information matrix on training rows
#
# phi is the last hidden layer's numbers and a 1. Laplace's matrix also has the inputs, whose rows
# and columns are left out of the information. Where phi has more than 128 numbers they are
# projected on the 64 directions that the training rows tell most about.
# --------------------------------------------------------------------------------------------------

HIDDEN_CHUNK = 1_024


@dataclass(frozen=True)
class LastHidden:
    """The information of all training rows about phi, projected where there is a projection."""

    information: Floats
    projection: Floats | None

    @classmethod
    def of(cls, network: StochasticNetwork, laplace: Laplace) -> LastHidden:
        """Take the information out of the Laplace part."""
        whole = of_last_layer(laplace.root, hidden_size(network))
        axes = leading(whole)
        if axes is None:
            return cls(whole, None)
        onto = projecting(axes)
        return cls(onto.T @ whole @ onto, axes)


def hidden_size(network: StochasticNetwork) -> int:
    """Return how many numbers the last layer reads."""
    layer = network.body.get_submodule(network.output)
    assert isinstance(layer, torch.nn.Linear)
    return layer.in_features


def last_hidden(
    network: StochasticNetwork, forward: Forward, X: NDArray[Any], projection: Floats | None
) -> Floats:
    """Return phi of rows, (rows, features), the 1 last."""
    hidden = hidden_size(network)
    network, dtype = prepared(network, forward.device)
    parts = []
    with torch.no_grad(), network.drawing(forward.seed, forward.device):
        for start in range(0, len(X), HIDDEN_CHUNK):
            x = forward.scaler.transform(X[start : start + HIDDEN_CHUNK], dtype).to(forward.device)
            parts.append(features(network, x)[1][:, :hidden].cpu().double().numpy())
    phi = np.concatenate(parts)
    phi = phi if projection is None else phi @ projection
    return np.column_stack([phi, np.ones(len(phi))])
