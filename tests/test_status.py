"""The one vocabulary of statuses: its numbers are a promise, also to generated C."""

from __future__ import annotations

import numpy as np

import rdeepsense as rds
from rdeepsense.status import status_words


def test_the_numbers() -> None:
    assert {flag.name: int(flag) for flag in rds.Status} == {
        "MISSING": 1,
        "OUT_OF_RANGE": 2,
        "UNKNOWN_LEVEL": 4,
        "UNSURE": 8,
        "UNLIKE": 16,
        "DRIFTING": 32,
        "NOT_ENOUGH_DATA": 64,
    }
    assert rds.Status.OK == 0


def test_words() -> None:
    assert rds.Status.OK.words == "ok"
    assert (rds.Status.OUT_OF_RANGE | rds.Status.MISSING).words == "missing, out of range"
    assert status_words(np.array([0, 2, 64], np.uint8)) == ["ok", "out of range", "not enough data"]
