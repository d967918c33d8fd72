"""A converted network: dropout while training, one deterministic pass afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from rdeepsense import randomness
from rdeepsense.dropout.layers import DropoutLayer
from rdeepsense.errors import ConversionError
from rdeepsense.heads import Head, Params
from rdeepsense.process_wide import alone


class StochasticNetwork(nn.Module):
    """A converted network: the user's own forward, then the head.

    In training mode each call draws dropout masks; in evaluation mode it is the single
    deterministic pass of section 3.3. `width` is the most numbers that a layer makes of one row,
    which bounds how many rows fit in memory; 0 where it is not known. A `noisy` network draws from
    torch's default generator in evaluation mode as well, as some modules of the user's own do.
    """

    noisy = False

    def __init__(self, body: nn.Module, head: Head, output: str, width: int = 0) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.output = output
        self.width = width

    def forward(self, x: Tensor) -> Params:
        raw = self.body(x)
        if not isinstance(raw, Tensor) or raw.ndim < 1 or raw.shape[-1] != self.head.columns:
            raise ConversionError(
                f"the network's forward must return the {self.head.columns} columns of its output "
                f"layer {self.output!r}, it returned {describe(raw)}"
            )
        params: Params = self.head(raw)
        return params

    def twin(self) -> Self:
        """Return a network with the same weights, whose modes and hooks are its own.

        Threads share fitted networks: what turns dropout on or looks inside takes a twin.
        """
        tensors = [*self.parameters(), *self.buffers()]
        return copy.deepcopy(self, {id(tensor): tensor for tensor in tensors})

    @property
    def draws_elsewhere(self) -> bool:
        """Whether a pass in the present mode may draw from torch's default generator."""
        training = any(module.training for module in self.modules())
        return self.noisy or (training and randomness.draws_elsewhere(self.modules()))

    @contextmanager
    def drawing(self, seed: int, device: torch.device) -> Iterator[None]:
        """Draw what passes in the present mode draw from this seed; see `randomness.drawing`.

        On a GPU no thread that trains sets another precision meanwhile.
        """
        # After the generators' lock, as in training: two orders would be a deadlock.
        still = alone("precision") if device.type == "cuda" else nullcontext()
        with randomness.drawing(seed, device, self.draws_elsewhere), still:
            yield

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Turn dropout on, everything else to evaluation mode: for Monte Carlo passes.

        It changes this network for whoever uses it, so that a shared one is sampled by a `twin`.
        """
        before = {module: module.training for module in self.modules()}
        self.eval()
        for module in self.modules():
            if isinstance(module, DropoutLayer | _DropoutNd):
                module.training = True
        try:
            yield
        finally:
            for module, training in before.items():
                module.training = training


def describe(value: object) -> str:
    """Describe in words what a forward returned."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
