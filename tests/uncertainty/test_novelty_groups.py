"""Novelty across groups: 5 % is 5 % of a new group's rows, and faults are still seen."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import InputError, RDeepSenseRegressor
from rdeepsense.uncertainty.novelty import Novelty, bounded, drawn, fit_across_groups

GROUPS, EACH = 40, 40


def people(seed: int, count: int = GROUPS) -> tuple[np.ndarray, np.ndarray]:
    """Rows about a centre of each group's own."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), EACH)
    centre = rng.standard_normal((count, 6))
    return centre[group] + 0.3 * rng.standard_normal((len(group), 6)), group


def scored(X: np.ndarray, group: np.ndarray, own: int) -> np.ndarray:
    """One group's surprise at a density of the others."""
    return Novelty.fit(X[group != own], X[:0]).surprise(X[group == own])


def test_a_twentieth_of_new_groups_rows_is_flagged() -> None:
    X, group = people(0)
    new = people(1, 200)[0]
    across = fit_across_groups(X, group)
    at_random = Novelty.fit(*bounded(X, None))
    assert 0.03 < np.mean(across.novelty(new) > 0.95) < 0.08
    assert np.mean(at_random.novelty(new) > 0.95) > 0.3
    broken = new.copy()
    broken[:, 2] = 12.0
    assert np.mean(across.novelty(broken) > 0.95) > 0.99


def test_a_long_recording_does_not_outvote_the_short_ones() -> None:
    """A group has 60 % of the rows; of what is kept, every group still has an eighth."""
    X, group = people(3, 8)
    often = np.where(group == 5, 10, 1)
    X, group = X.repeat(often, axis=0), group.repeat(often)
    X += 0.1 * np.random.default_rng(4).standard_normal(X.shape)
    found = fit_across_groups(X, group)
    scores = [scored(X, group, own) for own in range(8)]
    for level in np.quantile(np.concatenate(scores), (0.05, 0.3, 0.5, 0.8, 0.95)):
        wanted = np.mean([np.mean(own <= level) for own in scores])
        assert np.mean(found.held_out <= level) == pytest.approx(wanted, abs=2 / len(X))
        assert np.mean(np.concatenate(scores) <= level) != pytest.approx(wanted, abs=2 / len(X))


def test_the_kept_scores_are_quantiles() -> None:
    X, group = people(5, 8)
    found = fit_across_groups(X, group)
    # Folds of one group each, all of the same number of rows.
    scores = [scored(X, group, own) for own in range(8)]
    assert np.array_equal(found.held_out, np.sort(np.concatenate(scores)))


def test_few_groups_and_two_ways_are_refused() -> None:
    X, group = people(6, 2)
    with pytest.raises(InputError, match="groups holds 2 of them; at least 3"):
        fit_across_groups(X, group)
    with pytest.raises(InputError, match="4 rows to learn from"):
        fit_across_groups(X[:6], np.arange(6) // 2)
    model = RDeepSenseRegressor(hidden=(4,), epochs=1, device="cpu", effort="quick")
    model.fit(X, X[:, 0])
    with pytest.raises(InputError, match="give held_out or groups, not both"):
        model.fit_novelty(X, X, groups=group)
    with pytest.raises(InputError, match="groups"):
        model.fit_novelty(X, groups=group[1:])


def test_the_estimator_passes_groups_on() -> None:
    X, group = people(7, 6)
    model = RDeepSenseRegressor(hidden=(4,), epochs=1, device="cpu", effort="quick", random_state=0)
    model.fit(X, X[:, 0]).fit_novelty(X, groups=[f"user {k}" for k in group])
    wanted = fit_across_groups(model.fitted_.scaled(X), group)
    assert model.fitted_.novelty is not None
    assert np.array_equal(model.fitted_.novelty.held_out, wanted.held_out)


def test_rows_are_drawn_in_their_order() -> None:
    assert drawn(5).tolist() == [0, 1, 2, 3, 4]
    some = drawn(100, 7)
    assert len(some) == 7
    assert np.all(np.diff(some) > 0)
