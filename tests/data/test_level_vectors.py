"""Vectors of levels that are learnt: by hand, without a row's own target, without effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdeepsense.data.level_vectors import FOLDS, with_vectors
from rdeepsense.data.rows import FitRows, split_rows
from rdeepsense.encoding import Category, Encoding

LEVELS = 30


def fit_rows(X: Any, y: Any, groups: Any = None, classes: int | None = None) -> FitRows:
    """Rows whose first column is a category of thirty levels."""
    rows = split_rows(X.copy(), y, None, groups, classes is not None, False, seed=0)
    names = tuple(f"{k:02}" for k in range(LEVELS))
    encoding = Encoding(X.shape[1], (), (Category(0, names, np.zeros((0, 0))),))
    return with_vectors(rows, encoding, classes)


def drawn(rows: int = 3_000, noise: float = 0.5) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    level, x, effect = rng.integers(LEVELS, size=rows), rng.normal(size=rows), rng.normal(size=30)
    return np.column_stack([level, x]), level, (effect, x, noise * rng.normal(size=rows))


def vectors_of(rows: FitRows) -> Any:
    assert rows.encoding is not None
    return rows.encoding.settled.categories[0].vectors


def test_means_are_those_of_a_random_effect() -> None:
    X, level, (effect, _, noise) = drawn()
    y = effect[level] + noise
    z = (y - y.mean()) / y.std()
    count = np.bincount(level)
    mean = np.bincount(level, z) / count
    within = ((z - mean[level]) ** 2).sum() / (len(z) - LEVELS)
    apart = (count * mean**2).sum() - (LEVELS - 1) * within
    between = apart / (len(z) - (count**2).sum() / len(z))
    wanted = count / (count + within / between) * mean
    found = vectors_of(fit_rows(X, y))
    assert found.shape[0] == LEVELS + 2
    np.testing.assert_allclose(found[:LEVELS, 0], wanted, atol=5e-3)  # less the linear fit of x
    assert not found[LEVELS:].any()


def test_spreads_tell_noisy_levels() -> None:
    X, level, (_, _, noise) = drawn()
    y = noise * np.where(level < 15, 1.0, 3.0)
    spread = vectors_of(fit_rows(X, y))[:LEVELS, 1]
    ratio = np.exp(spread[15:].mean() - spread[:15].mean())
    assert 2.3 < ratio < 3.2


def test_slopes_tell_levels_that_turn_an_input() -> None:
    X, level, (effect, x, noise) = drawn()
    y = effect[level] * x + noise
    found = vectors_of(fit_rows(X, y))[:LEVELS]
    assert found.shape[1] == 3
    assert abs(np.corrcoef(found[:, 2], effect)[0, 1]) > 0.98
    assert vectors_of(fit_rows(X, effect[level] + noise)).shape[1] <= 3


def test_a_level_without_an_effect_is_about_nothing() -> None:
    X, _, (_, x, noise) = drawn()
    assert np.abs(vectors_of(fit_rows(X, x + noise))[:, 0]).max() < 0.1


def test_no_row_reads_its_own_target() -> None:
    X, level, (effect, _, noise) = drawn(600)
    y = effect[level] + noise
    before = fit_rows(X, y)
    assert before.encoding is not None
    assert before.encoding.categories[0].vectors.shape[0] == (1 + FOLDS) * (LEVELS + 2)
    read = before.encoding.expand(before.X)
    settled = before.encoding.settled_codes(before.X)
    np.testing.assert_array_equal(settled, X)
    for row in (3, 77, 500):
        other = y.copy()
        other[row] += 0.7
        after = fit_rows(X, other)
        assert after.encoding is not None
        # It moves the others of its level far more than itself, by scales alone.
        moved = np.abs(after.encoding.expand(after.X) - read)[:, 1]
        assert moved[row] < 0.2 * moved[(level == level[row]) & (moved > moved[row])].max()


def test_a_level_of_one_group_alone_is_unknown_to_it() -> None:
    X, level, (effect, _, noise) = drawn(900)
    rows = fit_rows(X, effect[level] + noise, groups=level)
    assert rows.encoding is not None
    assert not rows.encoding.expand(rows.X)[:, 1:].any(1).all()
    # Whoever trains on whole groups must not learn to trust what new groups will not have.
    assert np.abs(rows.encoding.expand(rows.X)[:, 1]).max() == 0


def test_classes_have_their_frequencies() -> None:
    X, level, _ = drawn()
    for classes in (2, 3):
        y = (level * classes // LEVELS).astype(np.int64)
        found = vectors_of(fit_rows(X, y, classes=classes))[:LEVELS]
        width = 1 if classes == 2 else 3
        assert (found[:, :width].argmax(1) if classes > 2 else found[:, 0] > 0).tolist() == (
            (np.arange(LEVELS) * classes // LEVELS).tolist()
        )


def test_many_targets_are_turned_to_eight_axes() -> None:
    X, level, _ = drawn()
    y = np.random.default_rng(1).normal(size=(LEVELS, 12))[level]
    assert vectors_of(fit_rows(X[:, :1], y)).shape[1] == 8
