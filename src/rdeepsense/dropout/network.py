"""A converted network: dropout while training, one deterministic pass afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from rdeepsense.dropout.layers import DropoutLayer
from rdeepsense.errors import ConversionError
from rdeepsense.heads import Head, Params


class StochasticNetwork(nn.Module):
    """A converted network: the user's own forward, then the head.

    In training mode each call draws dropout masks; in evaluation mode it is the single
    deterministic pass of section 3.3. `width` is the most numbers that a layer makes of one row,
    which bounds how many rows fit in memory; 0 where it is not known.
    """

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

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Turn dropout on, everything else to evaluation mode: for Monte Carlo passes."""
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
