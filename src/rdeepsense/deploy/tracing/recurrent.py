"""Recurrent layers of torch as steps: products of the inputs first, then the states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rdeepsense.deploy.folded.graph.recurrent import Gru, Lstm
from rdeepsense.deploy.folded.graph.shaping import Concatenated, Strided
from rdeepsense.deploy.folded.graph.weighted import Linear
from rdeepsense.deploy.tracing.tape import Tape, floats


# Any: out is (states, last) of a GRU, (states, (last, cells)) of an LSTM.
def recurrent(tape: Tape, layer: nn.GRU | nn.LSTM, given: tuple[Any, ...], out: Any) -> None:
    """Add a stack of layers, each reading all states of the one before it."""
    if getattr(layer, "proj_size", 0):
        raise tape.refusal(f"proj_size={layer.proj_size}")
    for start in _tensors(given[1:]):
        if tape.knows(start) or bool(start.any()):
            raise tape.refusal("it begins with states that are not zero")
    n, steps = layer.hidden_size, given[0].shape[int(layer.batch_first and given[0].ndim == 3)]
    value, ends = tape.value(given[0]), []
    weights = list(layer.all_weights)
    for _ in range(layer.num_layers):
        forwards = _direction(tape, layer, value, weights.pop(0))
        ends.append(tape.add(Strided((forwards,), n * (steps - 1), (n,), (1,))))
        if not layer.bidirectional:
            value = forwards
            continue
        backwards = _direction(tape, layer, value, weights.pop(0), steps)
        ends.append(tape.add(Strided((backwards,), 0, (n,), (1,))))
        both = tape.add(Concatenated((forwards, backwards)))
        value = tape.add(Strided((both,), 0, (steps, 2, n), (n, steps * n, 1)))
    states, last = out
    tape.note(value, states)
    # The cells of an LSTM are no step's value: what reads them is refused.
    whole = ends[0] if len(ends) == 1 else tape.add(Concatenated(tuple(ends)))
    tape.note(whole, last if isinstance(last, Tensor) else last[0])


def _direction(
    tape: Tape,
    layer: nn.GRU | nn.LSTM,
    value: int,
    weights: Sequence[Tensor],
    turned: int = 0,
) -> int:
    """Add one layer in one direction; with `turned` steps it reads them from the last on."""
    w_x, w_h = (floats(weight) for weight in weights[:2])
    zeros = np.zeros(len(w_x))
    b_x, b_h = (floats(b) for b in weights[2:]) if layer.bias else (zeros, zeros)
    value = tape.add(Linear((value,), False, w_x, b_x))
    if turned:
        value = tape.add(_turned(value, turned, len(w_x)))
    kind = Gru if isinstance(layer, nn.GRU) else Lstm
    value = tape.add(kind((value,), w_h, b_h))
    return tape.add(_turned(value, turned, layer.hidden_size)) if turned else value


def _turned(value: int, steps: int, width: int) -> Strided:
    return Strided((value,), (steps - 1) * width, (steps, width), (-width, 1))


def _tensors(given: tuple[Any, ...]) -> list[Tensor]:
    """List the tensors among arguments."""
    found: list[Tensor] = []
    for one in given:
        found += _tensors(tuple(one)) if isinstance(one, tuple | list) else []
        found += [one] if isinstance(one, torch.Tensor) else []
    return found
