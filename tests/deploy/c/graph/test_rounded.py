"""Numbers that layers of bytes read: how they are rounded, and which have two bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rdeepsense.deploy.c.inputs import RoundedGru, RoundedLinear, levels_of, reads_of, rounded
from rdeepsense.deploy.folded.graph import Convolution, Linear
from rdeepsense.deploy.tracing import trace
from rdeepsense.networks import DeepSense


def test_numbers_without_signs_have_255_steps() -> None:
    x = np.array([0.0, 0.4, 0.5, 100.2, 255.0])
    np.testing.assert_array_equal(rounded(x), [0, 0, 1, 100, 255])
    np.testing.assert_array_equal(rounded(4 * x), [0, 0, 4, 400, 1020])


def test_numbers_with_signs_have_127_steps_on_either_side() -> None:
    x = np.array([-127.0, -0.6, -0.5, 0.5, 3.4, 90.0])
    np.testing.assert_array_equal(rounded(x), [-127, -1, 0, 1, 3, 90])


def test_each_vector_has_its_own_step_and_zeros_stay() -> None:
    x = np.array([[255.0, 1.4], [-12.7, 0.26], [0.0, 0.0], [1e-31, 0.0]])
    np.testing.assert_allclose(rounded(x), [[255, 1], [-12.7, 0.3], [0, 0], [0, 0]], rtol=1e-6)


def test_two_bytes_have_the_levels_that_are_given() -> None:
    x = np.array([-1.0, 0.0, 0.00126, 1.0])
    np.testing.assert_allclose(rounded(x, 1_000), [-1, 0, 0.001, 1], rtol=1e-6)


def test_no_number_moves_by_more_than_half_a_step() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.normal(rng.normal(), 1, 1 + rng.integers(40)) * 10.0 ** rng.integers(-9, 9)
        step = np.abs(x).max() / (127 if (x < 0).any() else 255)
        assert np.abs(rounded(x) - x).max() <= step * 0.5001
        assert np.abs(rounded(x, 9_000) - x).max() <= np.abs(x).max() / 9_000 * 0.51


def test_sums_of_two_bytes_fit_32_bits() -> None:
    for inputs in (1, 9, 258, 259, 720, 65_535):
        assert 127 * inputs * (2 * levels_of(inputs) + 1) < 1 << 31
        assert levels_of(inputs) >= 127
    assert levels_of(9) == 32_767


def test_only_layers_that_read_no_layer_have_two_bytes() -> None:
    """Of two sensors the first convolutions; those after them read what has no signs."""
    torch.manual_seed(0)
    nodes = trace(DeepSense((2, 1), interval=4, filters=5).build((24, 3), 2, 0), (24, 3))
    reads = reads_of(nodes, True)
    layers = [own for node, own in zip(nodes, reads, strict=True) if isinstance(node, Convolution)]
    assert [own.raw for own in layers] == [True, False, True, False, False, False]
    assert [own.signed for own in layers] == [True, False, True, False, False, False]
    linear = [own for node, own in zip(nodes, reads, strict=True) if isinstance(node, Linear)]
    assert [own.raw for own in linear] == [False, False, False]
    assert [own.signed for own in linear] == [False, True, True]
    assert not any(own.raw for own in reads_of(nodes, False))


@pytest.mark.parametrize("levels", [0, 500])
def test_a_linear_layer_rounds_each_of_its_rows(levels: int) -> None:
    rng = np.random.default_rng(1)
    weight, bias, x = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(2, 5, 4))
    layer = RoundedLinear((0,), relu=True, weight=weight, bias=bias, levels=levels)
    wanted = np.maximum(rounded(x, levels) @ weight.T + bias, 0)
    np.testing.assert_allclose(layer.run(x.reshape(2, -1)), wanted.reshape(2, -1))


def test_a_recurrent_layer_goes_on_with_states_that_are_not_rounded() -> None:
    layer = RoundedGru((0,), weight=np.zeros((6, 2)), bias=np.zeros(6))
    x = np.array([[0.0, 0.0, 0.0, 0.0, 0.3, -0.7]])
    found = layer.run(np.tile(x, 2)).reshape(2, 2)
    new = np.tanh([0.3, -0.7])
    np.testing.assert_allclose(found, [new / 2, new * 0.75])
