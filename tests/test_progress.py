"""Plain lines of progress: one at once, more while a unit lasts, one at the end."""

from __future__ import annotations

import io
import re
import threading

import pytest

from rdeepsense._progress import Lines, Silent, progress_for


class Stream(io.StringIO):
    """A stream that says when it has so many lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._wanted, self.full = lines, threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.getvalue().count("\n") >= self._wanted:
            self.full.set()
        return written


def test_the_first_note_is_shown_at_once_and_the_last() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.start("comparing", 4, 0)
    for done in range(4):
        lines.update(done, f"fit {done}")
    lines.update(4, "done")
    lines.close()
    first, *_, last = stream.getvalue().splitlines()
    assert re.fullmatch(r"comparing:   0 %, \d+ s so far, fit 0", first)
    assert last == "comparing: 100 %, 0 s left, done"


def test_a_long_unit_is_still_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lines, "still", 0.001)
    stream = Stream(lines=4)
    lines = Lines(stream)
    lines.start("comparing", 2, 0)
    lines.update(1, "fitting one")
    assert stream.full.wait(60)
    lines.close()
    said = stream.getvalue()
    first, *others = said.splitlines()
    assert re.fullmatch(r"comparing:  50 %, \d+ s left, fitting one", first)
    assert len(others) >= 3
    for line in others:
        assert re.fullmatch(r"comparing:  50 %, \d+ s so far, fitting one", line)
    lines.close()
    assert stream.getvalue() == said  # nobody speaks after the end


def test_lines_of_a_pipe_come_late_and_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("rdeepsense._progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Lines, "still", 10.0)
    stream = io.StringIO()
    lines = progress_for(True, stream)
    assert isinstance(lines, Lines)
    monkeypatch.setattr(lines, "_keep_saying", lambda: None)  # no thread: the clock stands still
    for run in range(3):  # of 8 seconds each, one after the other
        lines.start(f"run {run}", 8, 0)
        for done in range(1, 9):
            now[0] += 1
            lines.update(done, "")
        lines.close()
    assert stream.getvalue().splitlines() == [
        "run 0:  25 %, 6 s left",
        "run 1:  50 %, 4 s left",
        "run 2:  75 %, 2 s left",
    ]


def test_a_long_unit_of_a_pipe_is_heard_of() -> None:
    stream = Stream(lines=1)
    lines = Lines(stream, after=0.01)
    lines.start("fitting", 2, 0)
    assert stream.full.wait(60)
    lines.close()
    assert re.match(r"fitting:   0 %, \d+ s so far\n", stream.getvalue())


def test_without_verbose_nothing_is_shown() -> None:
    assert isinstance(progress_for(False, io.StringIO()), Silent)
