"""The Pareto front, against its definition."""

from __future__ import annotations

import numpy as np

from rdeepsense.fitting.records import front


def test_by_hand() -> None:
    assert front([]) == []
    assert front([(1, 1)]) == [0]
    # The second is beaten by the first, the third trades one for the other.
    assert front([(1.0, 5), (1.5, 5), (0.5, 9)]) == [0, 2]
    assert front([(1, 1), (1, 1), (1, 2)]) == [0, 1]


def test_every_other_point_is_dominated_and_none_of_the_front_is() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.integers(0, 6, (rng.integers(1, 30), 3))
        found = front([tuple(point) for point in points])
        for k, point in enumerate(points):
            better = (points <= point).all(1) & (points < point).any(1)
            assert better.any() == (k not in found)
