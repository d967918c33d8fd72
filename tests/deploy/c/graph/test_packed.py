"""Weights in the order of C: taken apart again, they are what they were."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.deploy.c.graph import PANEL, fours, panels
from rdeepsense.deploy.quantise import BLOCK

SHAPES = [
    ((3, 5), 1), ((130, 8), 1), ((64, 1), 1), ((4, 3, 1, 3), 1), ((6, 2, 2, 3), 3),
    ((70, 4, 3, 1), 1), ((140, 1, 1, 2), 2),
]  # fmt: skip


def test_a_matrix_by_hand() -> None:
    weight = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], np.int8)
    packed, groups = fours(weight, 1)
    assert groups == 2
    assert packed.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 5, 0, 0, 0, 10, 0, 0, 0]
    assert panels(weight, 1).tolist() == [1, 6, 2, 7, 3, 8, 4, 9, 5, 10]


@pytest.mark.parametrize(("shape", "groups"), SHAPES)
def test_every_weight_is_where_c_looks_for_it(shape: tuple[int, ...], groups: int) -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(-127, 128, shape).astype(np.int8)
    outputs = shape[0] // groups
    channels, high, wide = (*shape[1:], 1, 1)[:3]
    deep, filled = channels * high, -(-channels * high // 4) * 4
    floats, (packed, count) = panels(weight, groups), fours(weight, groups)
    assert count == wide * filled // 4
    assert len(floats) == weight.size
    assert len(packed) == shape[0] * wide * filled
    for _ in range(100):
        g, o, c, i, k = (int(rng.integers(n)) for n in (groups, outputs, channels, high, wide))
        wanted = weight.reshape(groups, outputs, channels, high, wide)[g, o, c, i, k]
        first = o // PANEL * PANEL
        n = min(outputs - first, PANEL)
        at = (g * outputs + first) * wide * deep + (k * deep + i * channels + c) * n + o - first
        assert floats[at] == wanted
        first, place = o // BLOCK * BLOCK, k * filled + i * channels + c
        n = min(outputs - first, BLOCK)
        at = 4 * count * (g * outputs + first) + 4 * (place // 4 * n + o - first) + place % 4
        assert packed[at] == wanted
