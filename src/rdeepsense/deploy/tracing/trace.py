"""A network run once on one row, each layer and function noted as it runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.tracing.functions import record
from rdeepsense.deploy.tracing.layers import Rule, rule_for
from rdeepsense.deploy.tracing.simplify import simplified
from rdeepsense.deploy.tracing.tape import Tape


def trace(body: nn.Module, shape: tuple[int, ...]) -> tuple[Node, ...]:
    """Return the steps that a network takes of a scaled row of this shape.

    It runs a copy in evaluation mode, where dropout is its expectation.
    """
    body = copy.deepcopy(body).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    row = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
    tape = Tape(row)
    recorder = _Recorder(tape)
    for name, module in body.named_modules():
        module.forward = partial(recorder.layer, name, module, module.forward, rule_for(module))
    with torch.no_grad(), recorder:
        out = body(row)
    tape.where = "the network"
    return simplified(tuple(tape.nodes), tape.value(out))


class _Recorder(TorchFunctionMode):
    """Hands what runs to the tape; inside of a layer that has a rule nothing is noted."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape, self.inside = tape, 0

    # Any: whatever torch's functions take and return.
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not self.inside:
            record(self.tape, func, args, kwargs or {}, out)
        return out

    def layer(
        self,
        name: str,
        module: nn.Module,
        forward: Callable[..., Any],
        rule: Rule | None,
        *given: Any,
        **named: Any,
    ) -> Any:
        """Run a layer, and add its steps."""
        if self.inside:
            return forward(*given, **named)
        before = self.tape.where
        kind = type(module).__name__
        self.tape.where = f"layer {name!r} ({kind})" if name else kind
        if rule is None:
            out = forward(*given, **named)
        else:
            self.inside += 1
            try:
                out = forward(*given, **named)
            finally:
                self.inside -= 1
            rule(self.tape, module, (*given, *named.values()), out)
        self.tape.where = before
        return out
