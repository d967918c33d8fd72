"""What the check of a table found: findings, each with a severity, a sentence and a cure."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

from numpy.typing import NDArray

from rdeepsense.errors import DataWarning

Severity = Literal["info", "warning", "error"]

LEAKS = ("target-copy", "leak")
IDENTIFIERS = ("row-id", "names")
DEPENDENT = ("recordings", "entities", "near-copies", "overlapping-windows")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault of the data.

    Parameters
    ----------
    code : a stable name of the kind of fault.
    severity : "info" is good to know, "warning" makes metrics misleading, "error" makes a fit
        impossible.
    message : what was found, in one sentence.
    columns : the columns it is about; numbers as text where they have no names.
    cure : what to do about it.
    option : what does it on the command line.
    """

    code: str
    severity: Severity
    message: str
    columns: tuple[str, ...] = ()
    cure: str = ""
    option: str = ""

    @property
    def sentence(self) -> str:
        """The message as a sentence of its own."""
        return f"{self.message[:1].upper()}{self.message[1:]}."

    def to_json(self) -> dict[str, Any]:
        """Return the finding as what JSON can hold."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "columns": list(self.columns),
            "cure": self.cure,
            "option": self.option,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Finding:
        """Return a finding from what `to_json` returned."""
        return cls(**{**value, "columns": tuple(value["columns"])})

    @property
    def overrules(self) -> bool:
        """Whether metrics on held-out rows say nothing: an input gives the target away, say."""
        return self.severity == "error" or (self.code in LEAKS and self.severity == "warning")

    def as_known(self, columns: Collection[str]) -> Finding:
        """Return the finding as information, where its columns are said to be known."""
        known = bool(self.columns) and set(self.columns) <= set(columns)
        return replace(self, severity="info") if known and self.severity == "warning" else self

    def __str__(self) -> str:
        return f"{self.severity} ({self.code}): {self.message}. {self.cure}".rstrip()


@dataclass(frozen=True, kw_only=True)
class CheckReport(Sequence[Finding]):
    """The findings about a table, the most severe first; `str(report)` lists them.

    Parameters
    ----------
    findings : what was found.
    rows, inputs : the size of the table.
    task : "regression" or "classification"; None without a target.
    groups : for each row the entity, recording or block of near-copies that it belongs to, where
        rows are not independent; None where they are. A split should keep these together.
    group_column : the column that `groups` is; None where it is none.
    kept : whether a window may be used: those that reach from one group into the next may not;
        None where all may.
    group_categories : categories of which each level is in one group, so that a new group has
        unknown levels.
    time : of each row, where rows are in the order of a clock or it was given; else None.
    time_column : the column that `time` is; None where it is none.
    leave_out : columns that say nothing about new rows.
    """

    findings: tuple[Finding, ...]
    rows: int
    inputs: int
    task: str | None
    groups: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    group_column: str | None = None
    kept: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    group_categories: tuple[str, ...] = ()
    time: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    time_column: str | None = None
    leave_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def without(self, left_out: Collection[str]) -> CheckReport:
        """Return the report without what it says of identifiers that are left out already."""
        kept = tuple(
            one
            for one in self.findings
            if one.code not in IDENTIFIERS or not set(one.columns) <= set(left_out)
        )
        names = tuple(name for name in self.leave_out if name not in left_out)
        return replace(self, findings=kept, leave_out=names)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are more than information."""
        return tuple(one for one in self.findings if one.severity != "info")

    def warn(self, stacklevel: int = 2) -> None:
        """Warn (`DataWarning`) of each finding that is more than information."""
        warn_of(self.findings, self.groups is not None, stacklevel + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the report, without `groups`, as what JSON can hold."""
        return {
            "task": self.task,
            "rows": self.rows,
            "inputs": self.inputs,
            "findings": [one.to_json() for one in self.findings],
            "group_column": self.group_column,
            "group_categories": list(self.group_categories),
            "time_column": self.time_column,
            "leave_out": list(self.leave_out),
        }

    def __str__(self) -> str:
        if not self.findings:
            return f"nothing found in {self.rows:,} rows"
        return "\n".join(map(str, self.findings))


def warn_of(findings: Sequence[Finding], together: bool = False, stacklevel: int = 2) -> None:
    """Warn of findings; `together` where a fit keeps dependent rows together."""
    for one in findings:
        if one.severity != "info":
            more = " This fit keeps them together." if together and one.code in DEPENDENT else ""
            text = f"{one.sentence} {one.cure}{more}"
            warnings.warn(text, DataWarning, stacklevel=stacklevel + 1)
