"""The word for a model: five made on purpose, and how seldom a true one is blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_predictions import KINDS, classes, numbers

from rdeepsense.distributions import Gaussian, Recalibrated
from rdeepsense.reporting.overall import overall
from rdeepsense.reporting.subject import Subject


@pytest.mark.parametrize("rows", [300, 1000, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_five_models_of_numbers(kind: str, rows: int) -> None:
    found = [overall(numbers(kind, rows, seed)).word for seed in range(10)]
    assert found.count(kind) >= (9 if kind == "good" else 10)


@pytest.mark.parametrize("kind", KINDS)
def test_five_models_of_classes(kind: str) -> None:
    word = {"too wide": "too modest", "too narrow": "too sure"}.get(kind, kind)
    assert [overall(classes(kind, 1500, seed)).word for seed in range(3)] == [word] * 3


def test_true_models_are_seldom_blamed_where_rows_follow_each_other() -> None:
    """With a memory of 0.9 the rows tell as much as twenty times fewer; time says so."""
    found = [overall(numbers("good", 1000, seed, memory=0.9)).word for seed in range(60)]
    assert found.count("good") >= 48
    assert found.count("drifting") <= 1
    blind = [
        overall(replace(numbers("good", 1000, seed, memory=0.9), time=None)).word
        for seed in range(60)
    ]
    assert blind.count("good") < 40


def test_a_width_that_is_absurd_is_not_called_useless() -> None:
    """Five hundred times too narrow: NLL far above a constant's, and yet the inputs tell."""
    good = numbers("good")
    narrow = replace(good, dist=Gaussian(good.dist.mean, good.dist.std / 500), time=None)
    found = overall(narrow)
    assert found.word == "too narrow"
    assert found.gain == pytest.approx(np.log(5) / 2, abs=0.2)
    assert "no time was given" in found.remarks[-1]


def test_a_recalibrated_model_has_a_word_too() -> None:
    good = numbers("good")
    dist = Recalibrated(good.dist, np.linspace(0, 1, 5), np.linspace(0, 1, 5))
    found, plain = overall(replace(good, dist=dist)), overall(good)
    assert found.word == plain.word == "good"
    assert found.gain == pytest.approx(plain.gain, abs=1e-3)


def test_few_rows_tell_little() -> None:
    found = overall(replace(numbers("good", 24, seed=3), time=None))
    assert (found.word, found.tone) == ("too few rows", "open")


def test_a_gap_that_does_not_matter_is_no_fault() -> None:
    """0.915 of 40,000 rows is ten errors off, and good all the same."""
    rows = 40_000
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    subject = Subject("y", "", Gaussian(x, np.full(rows, 1.04)), x + rng.normal(size=rows))
    found = overall(subject)
    assert 0.91 < found.share < 0.92
    assert found.share - 0.9 > 2 * found.share_error
    assert found.word == "good"


def test_what_is_said() -> None:
    found = overall(numbers("drifting", 900))
    assert found.why == (
        "It changed about 585 (time): 90 % of the 90 % intervals held before, and 15 % since; "
        "900 rows in all."
    )
    assert found.points[1].startswith("It was worth having before the change: the NLL was 0.")
    narrow = overall(numbers("too narrow"))
    factor = float(narrow.why.partition("should be ")[2].partition(" times")[0])
    assert factor == pytest.approx(2.5, rel=0.1)
    assert "; they should be" in narrow.why
    assert overall(numbers("useless")).why.startswith("The inputs say nothing about y that 1,000")


def test_the_training_targets_are_the_constant_where_they_are_known() -> None:
    subject = numbers("good")
    own, told = overall(subject), overall(subject, np.asarray(subject.y) + 10)
    assert told.gain > own.gain + 1
