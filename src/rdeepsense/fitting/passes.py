"""From rows to distributions: one deterministic pass, or many with dropout on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Mixture, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError

# Rows (times samples) of one pass, which bounds the memory whatever the rows. A window is many
# times the work of a row.
CHUNK, CHUNK_OF_WINDOWS = 8_192, 1_024

Combine = Callable[[list[AnyDistribution]], AnyDistribution]


def single_pass(
    network: StochasticNetwork, X: NDArray[Any], scaler: Scaler, device: torch.device
) -> AnyDistribution:
    """The deterministic pass of section 3.3, on the network's own scale."""
    ready, dtype = prepared(network, device)
    parts = []
    with torch.no_grad():
        rows = _rows_at_once(X)
        for start in range(0, len(X), rows):
            x = scaler.transform(X[start : start + rows], dtype).to(device)
            part: AnyDistribution = ready(x).numpy()
            parts.append(part)
    return concatenate(parts)


def sampled_passes(
    network: StochasticNetwork,
    X: NDArray[Any],
    scaler: Scaler,
    device: torch.device,
    samples: int,
    seed: int,
    combine: Combine,
) -> AnyDistribution:
    """`samples` passes with dropout on, run as one batch and combined, chunk by chunk of rows."""
    ready, dtype = prepared(network, device)
    rows = max(1, _rows_at_once(X) // samples)
    parts = []
    forked = [device] if device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices=forked), ready.sampling():
        torch.manual_seed(seed)
        for start in range(0, len(X), rows):
            x = scaler.transform(X[start : start + rows], dtype).to(device)
            drawn = ready(x.repeat(samples, *[1] * (x.ndim - 1))).numpy()
            parts.append(combine([drawn[k * len(x) : (k + 1) * len(x)] for k in range(samples)]))
    return concatenate(parts)


def _rows_at_once(X: NDArray[Any]) -> int:
    return CHUNK if X.ndim == 2 else CHUNK_OF_WINDOWS


def matched(drawn: list[AnyDistribution]) -> AnyDistribution:
    """One distribution with the mean and the variance of the mixture of passes."""
    return Mixture(drawn).moment_matched()  # type: ignore[arg-type]


def prepared(
    network: StochasticNetwork, device: torch.device
) -> tuple[StochasticNetwork, torch.dtype]:
    """A copy to predict with, and the type of its numbers."""
    # float64 on the CPU: a row's result must not depend on which rows share its batch.
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    return copy.deepcopy(network).to(device, dtype).eval(), dtype


def choose_device(device: str) -> torch.device:
    """The device that a `device` argument names; "auto" is a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"device = {device!r} is unknown; accepted: auto, cpu, cuda, cuda:N"
        ) from error
