"""Dropout layers whose masks a module keeps, for dense, convolutional and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import handle_torch_function, has_torch_function_unary

from rdeepsense import _torch
from rdeepsense.errors import ConversionError

# --------------------------------------------------------------------------------------------------
# Dropout layers
#
#     z ~ Bernoulli(1 - drop_prob),  y = (x * z) W + b                              (equation 2)
#
# z has the length of the layer's INPUT, biases are never dropped, and nothing is dropped after the
# output layer, so that mean and variance share the last hidden mask. The paper scales the weights
# by the keep probability at test time; here, as in torch, x is divided by it while training, which
# gives the same function at test time.
#
# A convolution's z has one entry per row and channel (Gal & Ghahramani 2015): neighbours in time or
# place are too alike for single ones to be missed.
# --------------------------------------------------------------------------------------------------


class DropoutLayer(nn.Module):
    """A torch layer that drops its own input in training mode.

    A layer becomes one of these in place, so that it stays where it is registered.
    """

    drop_prob: float

    @classmethod
    def become(cls, layer: nn.Module, drop_prob: float) -> None:
        """Turn a layer into one of these, in place."""
        layer.__class__ = cls
        layer.drop_prob = drop_prob  # type: ignore[assignment]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, drop_prob={self.drop_prob}"


def dropped(x: Tensor, drop_prob: float) -> Tensor:
    """Return x z / (1 - drop_prob), z drawn from the context's generator.

    It is torch's own dropout, which takes no generator, and like that one it can be overridden.
    """
    if has_torch_function_unary(x):
        found: Tensor = handle_torch_function(dropped, (x,), x, drop_prob)
        return found
    if not drop_prob:
        return x
    keep_prob, generator = 1 - drop_prob, _torch.current(x.device)
    if x.is_cuda:
        return torch._fused_dropout(x, keep_prob, generator)[0]
    return x * torch.empty_like(x).bernoulli_(keep_prob, generator=generator).div_(keep_prob)


def mask(like: Tensor, shape: Sequence[int], drop_prob: float) -> Tensor:
    """Draw z / (1 - drop_prob) of this shape."""
    return dropped(like.new_ones(shape), drop_prob)


class DropoutEntries(nn.Dropout):
    """A Dropout module of the user's own, whose z come from the context's generator."""

    def forward(self, x: Tensor) -> Tensor:
        return dropped(x, self.p) if self.training else x


class DropoutLinear(DropoutLayer, nn.Linear):
    """A Linear layer that drops entries of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(dropped(x, self.drop_prob) if self.training else x)


class DropoutConv1d(DropoutLayer, nn.Conv1d):
    """A convolution that drops whole channels of its input, each for all of a row's times."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.drop_prob:
            x = x * mask(x, (*x.shape[:-1], 1), self.drop_prob)
        return super().forward(x)


class DropoutConv2d(DropoutLayer, nn.Conv2d):
    """A convolution that drops whole channels of its input, each for all of a row's places."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.drop_prob:
            x = x * mask(x, (*x.shape[:-2], 1, 1), self.drop_prob)
        return super().forward(x)


# --------------------------------------------------------------------------------------------------
# Recurrent layers with one mask per sequence (Gal & Ghahramani 2016, section 4)
#
# GRU: r, u = sigmoid((x_t * z_x) W + (h_{t-1} * z_h) U),   n = tanh(.. + r ((h_{t-1} * z_h) U))
#            h_t = (1 - u) n + u h_{t-1}
#     LSTM:  i, f, g, o = ((x_t * z_x) W + (h_{t-1} * z_h) U),    c_t = f c_{t-1} + i g
#            h_t = o tanh(c_t)
#
# z_x and z_h are drawn once for a sequence, layer and direction and hold for all of its steps; what
# is carried along, u h_{t-1} and c_{t-1}, is not dropped. Biases are left out above and never
# dropped. In evaluation mode, or where nothing is dropped, torch's own fast layer runs.
#
# The products (x_t * z_x) W of all steps are one matrix product; only those of the states are a
# loop.
# --------------------------------------------------------------------------------------------------

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
