"""The loop: cases of every kind of file in turn, each under guard, and the table of what came."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fuzz.guard import LONGEST, MIB, Outcome, guarded
from fuzz.subject import Subject, damaged


@dataclass
class Row:
    """What came of one kind of file."""

    name: str
    cases: int = 0
    refused: int = 0
    accepted: int = 0
    foreign: int = 0
    slowest: float = 0.0
    largest: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, said: str, outcome: Outcome, size: int, believed: bool) -> None:
        """Count a case; `believed` is damage that was taken for the file."""
        self.cases += 1
        self.refused += outcome.refused is not None
        self.accepted += outcome.accepted
        self.foreign += outcome.foreign is not None
        self.slowest = max(self.slowest, outcome.seconds)
        self.largest = max(self.largest, outcome.growth)
        if outcome.foreign is not None:
            trace = traceback.format_exception(outcome.foreign)
            self.faults.append(f"{said}: {''.join(trace[-4:])[:2_000]}")
        if outcome.seconds > LONGEST:
            self.faults.append(f"{said}: took {outcome.seconds:.1f} s")
        if outcome.growth > 3 * size + 64 * MIB:
            self.faults.append(f"{said}: took {outcome.growth / MIB:.0f} MiB for {size} bytes")
        if believed:
            self.faults.append(f"{said}: was believed")


def fuzz(
    subjects: Sequence[Subject], folder: Path, seed: int, cases: int, seconds: float
) -> list[Row]:
    """Try cases of each subject in turn, until there are so many or the time is over."""
    rows = {subject.name: Row(subject.name) for subject in subjects}
    rng = np.random.default_rng(seed)
    end = time.monotonic() + seconds
    truths = {}
    for subject in subjects:
        path = folder / subject.file_name
        path.write_bytes(subject.right)
        truths[subject.name] = subject.use(path, rng)  # also imports what is imported late
    for number in range(cases):
        for subject in subjects:
            if time.monotonic() > end:
                return list(rows.values())
            path = folder / subject.file_name
            harm = subject.edit is None or number % 2 == 0
            said, data = damaged(subject.right, rng) if harm else subject.edit(rng)  # type: ignore[misc]
            path.write_bytes(data)
            outcome = guarded(lambda s=subject, p=path: s.use(p, rng))  # type: ignore[misc]
            believed = harm and subject.sealed and outcome.accepted
            if believed and truths[subject.name] is not None:
                believed = outcome.result != truths[subject.name]
            rows[subject.name].note(f"case {number}, {said}", outcome, len(data), believed)
    return list(rows.values())


def table(rows: Sequence[Row]) -> str:
    """Write what came as a table."""
    head = ("file", "cases", "refused", "accepted", "foreign", "slowest", "memory")
    lines = [head] + [
        (
            row.name,
            f"{row.cases:,}",
            f"{row.refused:,}",
            f"{row.accepted:,}",
            f"{row.foreign:,}",
            f"{row.slowest:.2f} s",
            f"{row.largest / MIB:.0f} MiB",
        )
        for row in rows
    ]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        line[0].ljust(widths[0])
        + "".join(f"  {cell:>{w}}" for cell, w in zip(line[1:], widths[1:], strict=True))
        for line in lines
    )
