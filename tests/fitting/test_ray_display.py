"""The display of workers elsewhere, with a board that is here."""

from __future__ import annotations

from typing import Any

import pytest

from rdeepsense._progress import Silent
from rdeepsense.fitting import cluster
from rdeepsense.fitting.cluster import Board, relayed


class Said:
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def start(self, title: str, total: int, done: int) -> None:
        self.lines.append((title, total, done))

    def update(self, done: int, note: str) -> None:
        self.lines.append((done, note))

    def close(self) -> None:
        self.lines.append("closed")


class Method:
    def __init__(self, call: Any) -> None:
        self.remote = call


class Actor:
    """What Ray makes of a class, in this process."""

    def __init__(self, kind: type[Board]) -> None:
        self._own = kind()
        self.pin, self.read = Method(self._own.pin), Method(self._own.read)


class FakeRay:
    killed = False

    def remote(self, **_: object) -> Any:
        return lambda kind: Method(lambda: Actor(kind))

    def get(self, value: Any) -> Any:
        return value

    def kill(self, actor: Actor) -> None:
        self.killed = True


def test_what_a_worker_says_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK_EVERY", 60.0)  # so it looks once, at the end
    shown, ray = Said(), FakeRay()
    with relayed(ray, shown, "training") as relay:
        assert relay is not None
        relay.start("elsewhere", 90, 10)
        relay.update(30, "validation NLL 1.0")
        relay.update(60, "validation NLL 0.9")
        relay.close()
    assert shown.lines == [("training", 90, 60), (60, "validation NLL 0.9"), "closed"]
    assert ray.killed


def test_nothing_is_shown_of_workers_that_never_began() -> None:
    shown = Said()
    with relayed(FakeRay(), shown, "training"):
        pass
    assert shown.lines == ["closed"]


def test_no_board_without_a_display() -> None:
    with relayed(None, Silent(), "training") as relay:
        assert relay is None
