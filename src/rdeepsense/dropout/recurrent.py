"""Recurrent layers with one dropout mask per sequence (Gal & Ghahramani 2016, section 4).

    GRU:   r, u = sigmoid((x_t * z_x) W + (h_{t-1} * z_h) U),   n = tanh(.. + r ((h_{t-1} * z_h) U))
           h_t = (1 - u) n + u h_{t-1}
    LSTM:  i, f, g, o = ((x_t * z_x) W + (h_{t-1} * z_h) U),    c_t = f c_{t-1} + i g
           h_t = o tanh(c_t)

z_x and z_h are drawn once for a sequence, layer and direction and hold for all of its steps; what
is carried along, u h_{t-1} and c_{t-1}, is not dropped. Biases are left out above and never
dropped. In evaluation mode, or where nothing is dropped, torch's own fast layer runs.

The products (x_t * z_x) W of all steps are one matrix product; only those of the states are a loop.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from rdeepsense.dropout.layers import DropoutLayer, mask
from rdeepsense.errors import ConversionError

State = tuple[Tensor, ...]  # h, or h and c


class DropoutRNN(DropoutLayer, nn.RNNBase):
    """Base of GRU and LSTM; `drop_prob` is for the inputs, `state_drop_prob` for all the rest.

    "All the rest" is the states, and the inputs of the layers after the first of a stack.
    """

    state_drop_prob: float

    @classmethod
    def become(cls, layer: nn.Module, drop_prob: float, state_drop_prob: float = 0.0) -> None:
        super().become(layer, drop_prob)
        layer.state_drop_prob = state_drop_prob  # type: ignore[assignment]
        # Between layers torch would draw a mask per step, stacked on ours.
        layer.dropout = 0.0  # type: ignore[assignment]

    def forward(self, x: Tensor, hx: Tensor | State | None = None) -> tuple[Tensor, Tensor | State]:
        if not self.training or self.drop_prob == self.state_drop_prob == 0:
            plain: tuple[Tensor, Tensor | State] = super().forward(x, hx)
            return plain
        if isinstance(x, PackedSequence):
            raise ConversionError(
                f"a converted {self.mode} drops no part of a packed sequence; accepted: a tensor "
                "of sequences of one length"
            )
        batched = x.ndim == 3
        if not batched:
            x = x.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        out, last = self._stack(x, self._initial(x, hx, batched))
        if not batched:
            out, last = out.squeeze(1), tuple(s.squeeze(1) for s in last)
        elif self.batch_first:
            out = out.transpose(0, 1)
        return out, last if len(last) > 1 else last[0]

    def _initial(self, x: Tensor, hx: Tensor | State | None, batched: bool) -> State:
        """Return each of the states as (layers * directions, batch, hidden)."""
        kinds = 2 if self.mode == "LSTM" else 1
        if hx is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            zeros = x.new_zeros(count, x.shape[1], self.hidden_size)
            return (zeros,) * kinds
        given: State = (hx,) if isinstance(hx, Tensor) else hx
        return given if batched else tuple(s.unsqueeze(1) for s in given)

    def _stack(self, x: Tensor, start: State) -> tuple[Tensor, State]:
        """Pass x (steps, batch, features) through all layers and directions."""
        directions = 2 if self.bidirectional else 1
        last: list[State] = []
        for layer in range(self.num_layers):
            drop_prob = self.drop_prob if layer == 0 else self.state_drop_prob
            parts = []
            for direction in range(directions):
                z = mask(x, x.shape[1:], drop_prob)
                number = layer * directions + direction
                steps, state = self._direction(
                    x * z, number, tuple(s[number] for s in start), backwards=direction == 1
                )
                parts.append(steps)
                last.append(state)
            x = torch.cat(parts, -1)
        return x, tuple(map(torch.stack, zip(*last, strict=True)))

    def _direction(
        self, x: Tensor, number: int, state: State, backwards: bool
    ) -> tuple[Tensor, State]:
        """Return the states of all steps in the order of time, and the last one computed."""
        weights = self.all_weights[number]
        w_x, w_h = weights[:2]
        b_x, b_h = weights[2:] if self.bias else (None, None)
        inputs = functional.linear(x, w_x, b_x).unbind(0)
        z = mask(state[0], state[0].shape, self.state_drop_prob)
        out = []
        for step in reversed(inputs) if backwards else inputs:
            state = self._step(step, functional.linear(state[0] * z, w_h, b_h), state)
            out.append(state[0])
        return torch.stack(out[::-1] if backwards else out), state

    def _step(self, inputs: Tensor, states: Tensor, state: State) -> State:
        """Return the next state, from the products of both with their weights."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, state_drop_prob={self.state_drop_prob}"


class DropoutGRU(DropoutRNN, nn.GRU):  # type: ignore[misc]
    """A GRU that drops inputs and states, one mask per sequence."""

    def _step(self, inputs: Tensor, states: Tensor, state: State) -> State:
        width = self.hidden_size
        r, u = torch.sigmoid(inputs[:, : 2 * width] + states[:, : 2 * width]).chunk(2, 1)
        n = torch.tanh(inputs[:, 2 * width :] + r * states[:, 2 * width :])
        return (torch.lerp(n, state[0], u),)


class DropoutLSTM(DropoutRNN, nn.LSTM):  # type: ignore[misc]
    """An LSTM that drops inputs and states, one mask per sequence."""

    def _step(self, inputs: Tensor, states: Tensor, state: State) -> State:
        i, f, g, o = (inputs + states).chunk(4, 1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
