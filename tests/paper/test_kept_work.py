"""Cells written by whoever runs them: before anybody is told, once, and of the same code alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from rdeepsense.engines import Failure, Local, attempt
from rdeepsense.paper.cells import KeptWork, read_cell, run_kept, write_cell

VERSION = ["1"]  # of "the code", on the machine that asks


@dataclass(frozen=True)
class Square:
    number: int
    log: Path

    @cached_property
    def key(self) -> dict[str, object]:
        return {"number": self.number, "code": VERSION[0]}

    def run(self) -> int:
        with self.log.open("a") as file:
            file.write(f"{self.number} ")
        return self.number**2

    def _path(self, folder: Path) -> Path:
        return folder / f"{self.number}-{self.key['code']}.json"

    def read(self, folder: Path) -> int | None:
        return read_cell(self._path(folder), self.key, lambda record: record["found"])

    def write(self, folder: Path, found: int) -> None:
        write_cell(self._path(folder), self.key, {"found": found})


class Lost:
    """An engine whose driver is lost after some results: it tells of none of the later ones."""

    def __init__(self, tells: int) -> None:
        self.tells = tells

    def run_each(self, work: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for number, piece in enumerate(work):
            found = attempt(piece)
            if number < self.tells:
                yield number, found


def test_what_was_finished_is_there_though_nobody_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [Square(number, tmp_path / "log") for number in range(4)]
    assert list(run_kept(cells, Path(), Lost(1))) == [(0, 0)]
    assert [cell.read(tmp_path) for cell in cells] == [0, 1, 4, 9]
    assert list(run_kept(cells, Path(), Local())) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert (tmp_path / "log").read_text() == "0 1 2 3 "  # each once


def test_the_folder_does_not_follow_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    class Elsewhere:
        def run_each(self, work: Sequence[Any]) -> Iterator[tuple[int, Any]]:
            monkeypatch.chdir(tmp_path / "elsewhere")
            yield from Local().run_each(work)

    (tmp_path / "cells").mkdir()
    cell = Square(3, tmp_path / "log")
    assert list(run_kept([cell], Path("cells"), Elsewhere())) == [(0, 9)]
    assert cell.read(tmp_path / "cells") == 9


def test_other_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Square(2, tmp_path / "log")
    assert cell.key["code"] == "1"
    monkeypatch.setattr(f"{__name__}.VERSION", ["2"])
    found = attempt(KeptWork(cell, tmp_path))
    assert isinstance(found, Failure)
    assert "has other code than the machine that gave out the work" in found.reason
    assert list(tmp_path.iterdir()) == []
    assert attempt(KeptWork(Square(2, tmp_path / "log"), tmp_path)) == 4
