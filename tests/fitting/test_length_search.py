"""Other lengths of training for a winner."""

from __future__ import annotations

from rdeepsense.fitting.records import Candidate, Trial
from rdeepsense.fitting.search import WORTH, LengthSearch
from rdeepsense.fitting.trainer import Length
from rdeepsense.training import Schedule


def trial(nll: float, step: int) -> Trial:
    return Trial(Candidate("student", 0.0, 0.0), nll, 0.1, 1.0, step)


def test_the_allowance_for_longer_training_is_counted_in_networks() -> None:
    schedule = Schedule.of(10_000, 1_000, 5e-3, 0)
    first = trial(1.0, step=schedule.steps)
    tried = {}
    for networks in (1, 5, 25):
        longer = LengthSearch(schedule, 10_000, networks, first)
        tried[networks] = 0
        while (length := longer.next()) is not None:
            tried[networks] += 1
            better = trial(1.0 - tried[networks], step=schedule.steps)
            assert longer.accept(better, schedule)
            assert longer.kept == length
    assert tried == {1: 3, 5: 1, 25: 0}  # 3 + 9 + 27 trainings of one network, 15 of five
    early = LengthSearch(schedule, 10_000, 1, trial(1.0, step=schedule.steps // 2 - 1))
    assert early.next() is None
    longer = LengthSearch(schedule, 10_000, 1, first)
    length = longer.next()
    assert length is not None
    assert length == Length(3 * longer.first.epochs, 2 * schedule.batch_size)
    assert not longer.accept(trial(1.0 - WORTH / 2, step=schedule.steps), schedule)
    assert longer.next() is None
    assert longer.kept is None


def test_early_winners_are_trained_for_half_as_long_and_never_longer_after_that() -> None:
    schedule = Schedule.of(10_000, 1_000, 5e-3, 0)
    early = trial(1.0, step=schedule.steps // 4)
    shorter = LengthSearch(schedule, 10_000, 1, early, shorter=True)
    length = shorter.next()
    assert length is not None
    assert (length.epochs, length.batch_size) == (shorter.first.epochs // 2, schedule.batch_size)
    assert shorter.accept(trial(0.5, step=schedule.steps), schedule)
    assert shorter.next() is None
    half = LengthSearch(schedule, 10_000, 1, trial(1.0, step=schedule.steps // 2), True)
    longer = half.next()
    assert longer is not None
    assert longer.epochs == 3 * half.first.epochs
