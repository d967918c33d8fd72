"""A short, seeded part of `make fuzz`: nothing foreign, nothing slow, nothing believed."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest
from fuzz import data_files, hostile_files, model_files
from fuzz.guard import MIB, guarded
from fuzz.loop import Row, fuzz, table
from fuzz.subject import Subject, damaged

CASES = 600 if os.environ.get("RDEEPSENSE_LONG") else 6  # of each kind of file


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", [model_files, data_files], ids=["models", "data"])
def test_files_are_refused_or_what_they_say(kinds: object, tmp_path: Path) -> None:
    rows = fuzz(kinds.subjects(tmp_path), tmp_path, 0, CASES, np.inf)  # type: ignore[attr-defined]
    assert [f"{row.name}, {fault}" for row in rows for fault in row.faults] == []
    assert all(row.cases == CASES == row.refused + row.accepted for row in rows)
    assert sum(row.refused for row in rows) > 0.5 * CASES * len(rows)


def test_the_loop_finds_what_it_looks_for(tmp_path: Path) -> None:
    def use(path: Path, rng: np.random.Generator) -> object:
        data = path.read_bytes()
        if data == b"large":
            with mmap.mmap(-1, 80 * MIB) as fresh:  # malloc may hand out what is resident already
                for _ in range(80):
                    fresh.write(bytes(MIB))
        if data == b"foreign":
            raise KeyError("field")
        return None

    def of(content: bytes) -> Row:
        subject = Subject("file", b"right", use, lambda rng: ("edit", content))
        return fuzz([subject], tmp_path, 0, 2, np.inf)[0]

    assert [fault.split(": ")[1] for fault in of(b"right").faults] == ["was believed"]
    assert "KeyError: 'field'" in of(b"foreign").faults[1]
    assert of(b"foreign").foreign == 1
    if Path("/proc/self/clear_refs").exists():
        assert "took 8" in of(b"large").faults[1]
    assert table([Row("file", 3, 2, 1)]).splitlines()[1].split()[:4] == ["file", "3", "2", "1"]


def test_damage_is_never_the_same_file() -> None:
    rng = np.random.default_rng(0)
    assert all(damaged(b"abcabc", rng)[1] != b"abcabc" for _ in range(500))


def test_edits_do_not_change_the_values_that_later_edits_draw() -> None:
    before = repr(hostile_files.VALUES)
    rng, tensors = np.random.default_rng(0), {str(k): np.ones(3) for k in range(9)}
    for _ in range(1_000):
        file = hostile_files.File({"a": 1, "b": {"c": [1, 2]}, "d": [{}]}, dict(tensors))
        for _ in range(3):
            hostile_files.mutate(file, rng)
    assert repr(hostile_files.VALUES) == before


def test_a_panic_that_is_no_exception_is_foreign() -> None:
    class Panic(BaseException):
        pass

    def panic() -> None:
        raise Panic

    assert isinstance(guarded(panic).foreign, Panic)
