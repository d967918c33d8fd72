"""Recurrent layers: torch's own function in one pass, one mask per sequence in many."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from rdeepsense import ConversionError, convert
from rdeepsense.dropout import DropoutGRU, DropoutLSTM
from rdeepsense.dropout import layers as module

KINDS = [(nn.GRU, DropoutGRU), (nn.LSTM, DropoutLSTM)]
SHAPES: list[dict[str, Any]] = [
    {},
    {"batch_first": True},
    {"num_layers": 3, "dropout": 0.4},
    {"bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bidirectional": True, "bias": False},
]


def pair(kind: Any, form: Any, options: dict[str, Any], drop: float = 0.5) -> tuple[Any, Any]:
    torch.manual_seed(0)
    plain = kind(3, 4, **options)
    ours = copy.deepcopy(plain)
    form.become(ours, drop, drop)
    return plain, ours


def flat(result: Any) -> list[Tensor]:
    out, last = result
    return [out, *(last if isinstance(last, tuple) else (last,))]


@pytest.mark.parametrize(("kind", "form"), KINDS)
@pytest.mark.parametrize("options", SHAPES)
def test_equal_to_torch_in_evaluation_and_with_masks_of_ones(
    kind: Any, form: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, ours = pair(kind, form, options)
    plain.eval()
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h = torch.randn(layers, 5, 4)
    start: Any = (h, torch.randn(layers, 5, 4)) if kind is nn.LSTM else h
    x = torch.randn(5, 7, 3) if options.get("batch_first") else torch.randn(7, 5, 3)
    one: Any = tuple(s[:, 0] for s in start) if kind is nn.LSTM else h[:, 0]
    calls = [(x,), (x, start), (torch.randn(7, 3),), (torch.randn(7, 3), one)]
    for call in calls:
        for found, wanted in zip(flat(ours.eval()(*call)), flat(plain(*call)), strict=True):
            assert torch.equal(found, wanted)
    monkeypatch.setattr(module, "mask", lambda like, shape, p: like.new_ones(shape))
    for call in calls:
        for found, wanted in zip(flat(ours.train()(*call)), flat(plain(*call)), strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    # and the gradients
    ours(x)[0].square().sum().backward()
    plain(x)[0].square().sum().backward()
    for a, b in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "form"), KINDS)
def test_one_mask_per_sequence_on_inputs_and_states(
    kind: Any, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is multiplied with W and U at every step, for inputs of ones."""
    options = {"num_layers": 2, "bidirectional": True}
    _, ours = pair(kind, form, options)
    seen: list[Tensor] = []

    def linear(x: Tensor, *rest: Any) -> Tensor:
        seen.append(x.detach())
        return torch.nn.functional.linear(x, *rest)

    monkeypatch.setattr(module, "functional", SimpleNamespace(linear=linear))
    steps, rows = 6, 40
    out, _ = ours.train()(torch.ones(steps, rows, 3))
    assert len(seen) == 4 * (1 + steps)  # layers and directions: all inputs, then each state
    masks = []
    for begin in range(0, len(seen), 1 + steps):
        inputs, states = seen[begin], torch.stack(seen[begin + 1 : begin + 1 + steps])
        dropped = inputs == 0
        assert torch.equal(dropped, dropped[:1].expand_as(dropped))
        assert 0.3 < dropped[0].float().mean() < 0.7
        masks.append(dropped[0, :, :3])
        # The first state is 0 by itself; from then on an entry is 0 exactly where it is dropped.
        zero = states[1:] == 0
        assert torch.equal(zero, zero[:1].expand_as(zero))
        assert 0.3 < zero[0].float().mean() < 0.7
        masks.append(zero[0, :, :3])
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
    for k, one in enumerate(masks):  # drawn anew for each layer, direction and kind, and each row
        assert not any(torch.equal(one, other) for other in masks[:k])
        assert len({tuple(row) for row in one.tolist()}) > 1
    assert out.shape == (steps, rows, 8)


def test_the_state_that_is_carried_along_is_not_dropped() -> None:
    """With the update gate shut, a GRU keeps its state whatever the masks."""
    _, ours = pair(nn.GRU, DropoutGRU, {})
    with torch.no_grad():
        ours.bias_hh_l0[4:8] = 50.0  # u = 1
    start = torch.randn(1, 6, 4)
    out, last = ours.train()(torch.randn(5, 6, 3), start)
    torch.testing.assert_close(last, start)
    torch.testing.assert_close(out, start.expand_as(out))


class Reader(nn.Module):
    def __init__(self, kind: Any = nn.GRU) -> None:
        super().__init__()
        self.turn = kind(3, 16, num_layers=2, batch_first=True)
        self.last = nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.turn(x)[0].mean(1))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_one_pass_is_close_to_the_mean_of_many(kind: Any) -> None:
    """Only close: gates are not linear. The gap is in units of the spread of the passes."""
    torch.manual_seed(0)
    x = torch.randn(4, 20, 3)
    converted = convert(Reader(kind), drop_prob=0.2, input_drop_prob=0.1, example=x).eval()
    single = converted(x).mean
    with torch.no_grad(), converted.sampling():
        drawn = torch.stack([converted(x).mean for _ in range(300)])
    gap = (drawn.mean(0) - single).abs() / drawn.std(0)
    print(f"{kind.__name__}: gap of the single pass {gap.max():.2f} of the passes' std")
    assert drawn.std(0).min() > 0
    assert gap.max() < 1
    assert torch.equal(converted(x).mean, single)


def test_a_first_recurrent_layer_takes_the_next_probability_for_its_states() -> None:
    body = convert(Reader(), drop_prob=0.3, input_drop_prob=0.1).body
    assert (body.turn.drop_prob, body.turn.state_drop_prob) == (0.1, 0.3)
    assert "drop_prob=0.1, state_drop_prob=0.3" in repr(body)
    body = convert(Reader(), drop_prob=0.0, input_drop_prob=0.0).train().body
    x = torch.randn(2, 5, 3)
    assert torch.equal(body(x), body(x))


def test_copies_and_pickles_keep_the_weights() -> None:
    x = torch.randn(2, 5, 3)
    converted = convert(Reader(), drop_prob=0.3, example=x).eval()
    again = pickle.loads(pickle.dumps(copy.deepcopy(converted)))
    assert torch.equal(again(x).mean, converted(x).mean)
    assert again.body.turn.state_drop_prob == 0.3


def test_packed_sequences_are_refused_where_masks_are_drawn() -> None:
    _, ours = pair(nn.GRU, DropoutGRU, {})
    packed = pack_sequence([torch.randn(4, 3), torch.randn(2, 3)])
    assert ours.eval()(packed)[1].shape == (1, 2, 4)
    with pytest.raises(ConversionError, match="GRU drops no part of a packed sequence"):
        ours.train()(packed)
