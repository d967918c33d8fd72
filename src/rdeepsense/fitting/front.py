"""The Pareto front: networks than which no other is better in one thing and as good in all."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the numbers of the points, less is better, that no other one dominates.

    p dominates q where p <= q in every coordinate and p < q in one; of equal points all stay.
    """
    return [
        k
        for k, own in enumerate(points)
        if not any(
            all(a <= b for a, b in zip(other, own, strict=True)) and tuple(other) != tuple(own)
            for other in points
        )
    ]
