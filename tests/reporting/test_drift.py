"""Where a model changed: the place, the rules' bounds, and how seldom there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_predictions import classes, numbers

from rdeepsense.distributions import Gaussian
from rdeepsense.reporting.subject import Subject, find_drift, time_blocks


def test_the_place_of_a_step() -> None:
    found = find_drift(numbers("drifting", 1200))
    assert found is not None
    assert found.drifts
    assert found.row == pytest.approx(800, abs=60)  # to a block
    assert (found.before, found.after) == (
        pytest.approx(0.9, abs=0.03),
        pytest.approx(0.1, abs=0.1),
    )


def test_rows_need_not_be_in_order() -> None:
    subject = numbers("drifting", 1200)
    order = np.random.default_rng(0).permutation(1200)
    assert subject.time is not None
    mixed = replace(subject, dist=subject.dist[order], y=subject.y[order], time=subject.time[order])
    assert find_drift(mixed) == find_drift(subject)


def test_no_time_or_few_rows() -> None:
    assert find_drift(replace(numbers("good"), time=None)) is None
    assert find_drift(numbers("good", 199)) is None
    assert find_drift(numbers("good", 200)) is not None


def test_blocks_hold_every_row_once() -> None:
    parts = time_blocks(numbers("good", 530))
    assert parts is not None
    assert len(parts) == 20
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(530))
    assert {len(part) for part in parts} == {26, 27}


def test_intervals_that_grow_too_wide_are_a_drift_too() -> None:
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 2000))
    late = np.arange(2000) >= 1000
    subject = Subject("y", "", Gaussian(x, np.ones(2000)), x + np.where(late, 0.3, 1.0) * e,
                      time=np.arange(2000))  # fmt: skip
    found = find_drift(subject)
    assert found is not None
    assert (found.drifts, found.kind) == (True, "u")
    assert found.difference < -0.2


def test_a_true_model_does_not_drift() -> None:
    made = [find_drift(numbers("good", 500, seed)) for seed in range(200)]
    made += [find_drift(classes("good", 300, seed)) for seed in range(30)]
    assert not any(one is None or one.drifts for one in made)
