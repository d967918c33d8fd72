"""Rates are chosen on streams: what each is made for wins."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.choose import MOST_GROUPS, Outcome, choose_rates, interval_score, replay
from rdeepsense.adaptation.corrections import GroupStream
from rdeepsense.adaptation.rates import Rates
from rdeepsense.errors import InputError

FEATURES = 4


def stream(seed: int, offset: float, step: float, count: int = 40) -> GroupStream:
    """A group whose last layer is off by an offset that walks on."""
    rng = np.random.default_rng(seed)
    phi = np.c_[rng.normal(size=(count, FEATURES - 1)), np.ones(count)]
    walk = offset + np.cumsum(rng.normal(scale=step, size=count))
    error = (walk + 0.3 * rng.normal(size=count))[:, None]
    return GroupStream(phi, error, np.full((count, 1), 0.3**2), 1_000 * np.eye(FEATURES), 1_000.0)


def test_what_is_chosen_is_better_than_the_defaults() -> None:
    streams = [stream(s, 3.0 * (-1) ** s, 0.0) for s in range(2)]
    chosen = choose_rates(streams)
    own, default = (
        np.mean([replay(one, rates, every).logs.mean() for one in streams for every in (1, 10)])
        for rates in (chosen, Rates())
    )
    assert own > default + 0.2


def test_walks_ask_for_forgetting() -> None:
    walking = choose_rates([stream(s, 0.0, 0.4, 100) for s in range(2)])
    assert walking.keep == (0.98,)


def test_chosen_twice_is_chosen_alike() -> None:
    streams = [stream(s, 1.0, 0.05) for s in range(2)]
    assert choose_rates(streams) == choose_rates(streams)


def test_without_streams_the_defaults() -> None:
    assert choose_rates([]) == Rates()


def test_no_label_is_seen_before_its_turn() -> None:
    one = stream(0, 2.0, 0.1)
    other = GroupStream(one.phi, one.error.copy(), one.variance, one.information, one.rows)
    other.error[30:] += 50.0
    told, changed = replay(one, Rates()), replay(other, Rates())
    assert (told.error[:30] == changed.error[:30]).all()
    assert (told.std[:31] == changed.std[:31]).all()
    assert told.error[0] == one.error[0]


def test_interval_score_by_hand() -> None:
    told = Outcome(np.array([[0.0], [10.0]]), np.ones((2, 1)), np.zeros(2))
    half = 2.1318467863266495 * np.sqrt(0.5)  # of a Student-t with 4 df and std 1, at 90 %
    second = half * np.exp(-0.1 * 0.1)
    expected = (2 * half + 2 * second + 20 * (10 - second)) / 2
    assert interval_score(told, 1, 0.9, 0.1) == pytest.approx(expected, rel=1e-9)


def test_streams_of_different_networks_are_refused() -> None:
    odd = GroupStream(np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 1)), np.eye(2), 3.0)
    with pytest.raises(InputError, match="number of features"):
        choose_rates([stream(0, 0, 0), odd])


def test_progress_ends_where_it_said() -> None:
    said: list[tuple[str, int]] = []

    class Noted:
        def start(self, title: str, total: int, done: int) -> None:
            said.append(("total", total))

        def update(self, done: int, note: str) -> None:
            said.append(("done", done))

        def close(self) -> None:
            said.append(("closed", 0))

    choose_rates([stream(0, 1.0, 0.0, 10)], progress=Noted())
    done = [number for what, number in said if what == "done"]
    assert said[0] == ("total", done[-1])
    assert done == sorted(set(done))
    assert said[-1] == ("closed", 0)


def test_of_many_groups_a_few_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def noted(one: GroupStream, *more: object) -> Outcome:
        seen.add(id(one))
        return replay(one, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("rdeepsense.adaptation.choose.replay", noted)
    streams = [stream(s, 1.0, 0.0, 4) for s in range(30)]
    choose_rates(streams)
    assert len(seen) == MOST_GROUPS
