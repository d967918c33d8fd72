"""Chunks come out in order, few of them are under way, and chunk sizes fit the memory."""

from __future__ import annotations

import threading

import pytest

from rdeepsense.errors import InputError
from rdeepsense.predict.folder import MIB, MOST_ROWS, in_order, rows_at_once


def test_in_order_and_bounded() -> None:
    taken, first = [], threading.Event()

    def items():  # type: ignore[no-untyped-def]
        for k in range(20):
            taken.append(k)
            yield k

    def make(k: int) -> int:
        if k == 0:
            assert first.wait(10)  # the first is the last of the first three to end
        elif k == 2:
            first.set()
        return k * k

    seen = []
    for value in in_order(make, items(), 3):
        seen.append(value)
        assert len(taken) - len(seen) <= 3
    assert seen == [k * k for k in range(20)]


def test_an_error_ends_it() -> None:
    def make(k: int) -> int:
        if k == 3:
            raise ValueError("three")
        return k

    found = []
    with pytest.raises(ValueError, match="three"):
        found.extend(in_order(make, range(100), 2))
    taken = in_order(make, range(3), 2)
    assert list(taken) == [0, 1, 2]


def test_rows_at_once() -> None:
    assert rows_at_once(4096 * MIB, "C", 12, 8) == MOST_ROWS
    few = rows_at_once(512 * MIB, "C", 500, 8)
    assert few == 4_096  # 352 MiB / (5 (500 32 + 8 32 bytes)) = 4,541
    assert rows_at_once(512 * MIB, "C", 10**6, 8) == 1_024
    assert rows_at_once(512 * MIB, "torch", 12, 8) == 8_192
    with pytest.raises(InputError, match="memory = 100 MiB; accepted: 256 and more"):
        rows_at_once(100 * MIB, "C", 1, 1)
