"""Distributions from a network that was trained with dropout for a point estimate alone.

Nothing is trained again. A regressor gets the variance of its dropout masks, found in one pass, and
observation noise; both are scaled on validation rows:

    y ~ N(f(x), factor^2 Var_masks[f(x)] + noise)

A classifier gets a last-layer Laplace approximation, probit-corrected probabilities and, after
that, a temperature.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from rdeepsense.arrays import Floats, Integers
from rdeepsense.calibration import PRIOR_ROWS, Noise, Temperature, weighted_nll
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.heads.categorical import CategoricalHead
from rdeepsense.heads.point import PointHead
from rdeepsense.uncertainty import Laplace, by_delta, by_laplace, by_moments
from rdeepsense.uncertainty.laplace import mutual_information, probit

CHUNK = 1_024
METHODS = {"delta": by_delta, "moments": by_moments}
LOG_FACTOR = (-4.0, 4.0)
VARIANCE_FLOOR = 1e-30  # with ReLU the masks may change nothing at all


def wrap(
    network: nn.Module, X_val: ArrayLike, y_val: ArrayLike, method: str = "delta"
) -> WrappedRegressor | WrappedClassifier:
    """Turn a trained network into one that returns distributions, without training it again.

    `X_val` is what the network takes (rows first), `y_val` the truth in the units of its output,
    both of rows that it was not trained on. Whole numbers, one per row, for a network of two or
    more outputs are class indices, and the network then returns logits; anything else is
    regression, with as many columns as the network has outputs.

    A regressor needs Dropout modules in the network, as it was trained with; dropout called as a
    function is not seen. `method` finds their variance: "delta", or "moments" for Sequential
    networks. The network itself stays as it is.
    """
    if not isinstance(network, nn.Module):
        raise InputError(f"network is a {type(network).__name__}, not a torch.nn.Module")
    if method not in METHODS:
        raise InputError(f"method = {method!r} is unknown; accepted: {', '.join(METHODS)}")
    body = copy.deepcopy(network).eval().requires_grad_(False)
    X = _checked("X_val", X_val)
    y = np.asarray(y_val)
    if len(y) != len(X) or len(X) < 2:
        raise InputError(f"y_val has {len(y)} rows, X_val {len(X)}; accepted: as many, 2 or more")
    body, layer, outputs = _with_columns(body, next(_batches(X, body)))
    if y.ndim == 1 and y.dtype.kind in "iu" and outputs > 1:
        return WrappedClassifier.fit(body, layer, outputs, X, y)
    y = _checked("y_val", y)
    if y.shape not in ((len(X), outputs), (len(X),) if outputs == 1 else ()):
        raise InputError(
            f"y_val has shape {y.shape}, the network {outputs} outputs; accepted: one column per "
            "output, or class indices (whole numbers, one per row)"
        )
    return WrappedRegressor.fit(body, outputs, X, y, method)


@dataclass(frozen=True)
class WrappedRegressor:
    """Means of a trained network with the variance of its masks and the noise of its data."""

    network: StochasticNetwork
    method: str
    factor: float
    noise: Floats
    column: bool  # whether y has an axis of outputs

    @classmethod
    def fit(
        cls, body: nn.Module, outputs: int, X: NDArray[Any], y: Floats, method: str
    ) -> WrappedRegressor:
        """Find the factor of the masks and the noise of least validation NLL."""
        stochastic = StochasticNetwork(body, PointHead(outputs), "")
        blank = cls(stochastic, method, 1.0, np.zeros(()), y.ndim > 1)
        mean, variance = blank._passes(X)

        def noise(factor: float) -> tuple[Gaussian, Noise]:
            masks = Gaussian(mean, np.sqrt(np.maximum(factor**2 * variance, VARIANCE_FLOOR)))
            return masks, Noise.fit(masks, y)

        def loss(log_factor: float) -> float:
            masks, fitted = noise(float(np.exp(log_factor)))
            return weighted_nll(fitted.apply(masks), y)

        best = minimize_scalar(loss, bounds=LOG_FACTOR, method="bounded", options={"xatol": 1e-2})
        factor = float(np.exp(best.x * len(y) / (len(y) + PRIOR_ROWS)))
        return cls(stochastic, method, factor, noise(factor)[1].variance, y.ndim > 1)

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> Floats: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Floats, Floats]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Return the network's own output; with `return_std`, also the standard deviation."""
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_dist(self, X: ArrayLike) -> Gaussian:
        """Return the predictive distribution of each row and output."""
        mean, variance = self._passes(_checked("X", X))
        return Gaussian(mean, np.sqrt(self.factor**2 * variance + self.noise))

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return the central interval that should hold the truth with probability `coverage`."""
        return self.predict_dist(X).interval(coverage)

    def epistemic_std(self, X: ArrayLike, method: str | None = None) -> Floats:
        """Return the part of the standard deviation that the masks give, uncertainty of the mean.

        `method` is that of `wrap`, which the scale was fitted for; another one is refused.
        """
        _check_method(method, self.method)
        std: Floats = self.factor * np.sqrt(self._passes(_checked("X", X))[1])
        return std

    def _passes(self, X: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return mean and variance of the masks."""
        find, parts = METHODS[self.method], []
        for x in _batches(X, self.network):
            params, variance = find(self.network, x)
            mean: Tensor = next(iter(params))
            parts.append(torch.stack([mean, variance]).cpu().double().numpy())
        mean_and_variance = np.concatenate(parts, axis=1)
        if not self.column:
            mean_and_variance = mean_and_variance[..., 0]
        return mean_and_variance[0], mean_and_variance[1]


@dataclass(frozen=True)
class WrappedClassifier:
    """Classes of a trained network, with what the rows leave open about its last layer.

    The rows are the validation rows, fewer than those it was trained on, so that the uncertainty of
    the logits is overstated; the temperature that is fitted after makes up for it on average.
    """

    network: StochasticNetwork
    laplace: Laplace
    temperature: Temperature

    @classmethod
    def fit(
        cls, body: nn.Module, layer: str | None, outputs: int, X: NDArray[Any], y: NDArray[Any]
    ) -> WrappedClassifier:
        """Find what the rows leave open about the last layer, and the temperature."""
        if layer is None:
            raise InputError(
                "a classifier's forward must return the logits of its last Linear layer as they "
                "are; leave out what comes after it"
            )
        if y.min() < 0 or y.max() >= outputs:
            raise InputError(
                f"y_val has the class {int(y.max() if y.max() >= outputs else y.min())}; accepted: "
                f"0 to {outputs - 1}, the columns of the network's output"
            )
        stochastic = StochasticNetwork(body, CategoricalHead(outputs), layer)
        fitted = Laplace.fit(stochastic, ((x, x.new_ones(len(x))) for x in _batches(X, body)))
        blank = cls(stochastic, fitted, Temperature())
        return cls(stochastic, fitted, Temperature.fit(blank.predict_dist(X), y))

    def predict(self, X: ArrayLike) -> Integers:
        """Return the most probable class of each row."""
        return self.predict_dist(X).mode

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class."""
        return self.predict_dist(X).probs

    def predict_dist(self, X: ArrayLike) -> Categorical:
        """Return probit-corrected probabilities after the temperature."""
        return self.temperature.apply(probit(*self._passes(X)))

    def epistemic_std(self, X: ArrayLike, method: str | None = None) -> Floats:
        """Return the standard deviation of the logits, (rows, classes); `method` is "laplace"."""
        _check_method(method, "laplace")
        std: Floats = np.sqrt(self._passes(X)[1])
        return std

    def mutual_information(self, X: ArrayLike, method: str | None = None) -> Floats:
        """Return what the true class would tell about the network, in nats."""
        _check_method(method, "laplace")
        return mutual_information(*self._passes(X), self.temperature.factor)

    def _passes(self, X: ArrayLike) -> tuple[Categorical, Floats]:
        """Return the network's own probabilities, and the variance of its logits."""
        probs, variances = [], []
        for x in _batches(_checked("X", X), self.network):
            params, variance = by_laplace(self.network, x, self.laplace)
            said = params.numpy()
            assert isinstance(said, Categorical)
            probs.append(said.probs)
            variances.append(variance.cpu().double().numpy())
        return Categorical(np.concatenate(probs)), np.concatenate(variances)


class _Columns(nn.Module):
    """A network that returns (rows,), with the axis of outputs that it leaves out."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x)
        return out[:, None]


def _with_columns(body: nn.Module, x: Tensor) -> tuple[nn.Module, str | None, int]:
    """Return the network as (rows, outputs), its last Linear layer and the number of outputs.

    The layer is None where the network does not return its numbers as they are.
    """
    seen: list[tuple[str, Tensor]] = []
    hooks = [
        module.register_forward_hook(lambda _m, _a, out, name=name: seen.append((name, out)))
        for name, module in body.named_modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        with torch.no_grad():
            out = body(x)
    finally:
        for hook in hooks:
            hook.remove()
    if isinstance(out, Tensor) and out.shape == (len(x),):
        return _Columns(body), None, 1
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != len(x):
        what = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise InputError(
            f"the network returned {what} for {len(x)} rows; accepted: a tensor (rows, outputs)"
        )
    same = [name for name, value in seen if value.shape == out.shape and torch.equal(value, out)]
    return body, (same[-1] if same else None), out.shape[1]


def _check_method(given: str | None, own: str) -> None:
    """Refuse another method than the network was wrapped by."""
    if given not in (None, own):
        raise InputError(
            f'method = {given!r} is not how this network was wrapped; accepted: "{own}", or none'
        )


def _checked(name: str, values: ArrayLike) -> NDArray[Any]:
    """Check that values are a finite array with rows."""
    array = np.asarray(values)
    if array.ndim < 1 or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise InputError(f"{name} must be an array of finite numbers with one row or more")
    return array


def _batches(X: NDArray[Any], network: nn.Module) -> Iterator[Tensor]:
    """Yield rows as the network takes them."""
    like = next(network.parameters())
    for start in range(0, len(X), CHUNK):
        yield torch.as_tensor(np.ascontiguousarray(X[start : start + CHUNK])).to(like)
