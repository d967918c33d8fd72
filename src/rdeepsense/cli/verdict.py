"""The verdict on a model at the terminal: the sentences of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rdeepsense.reporting.per_target import by_target

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.reporting.overall import Overall


def judged(
    dist: AnyDistribution,
    y: NDArray[Any],
    targets: Sequence[str],
    training: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
    time: pl.Series | None = None,
) -> dict[str, Overall]:
    """Judge each target, as a page of the same rows would."""
    from rdeepsense.reporting.overall import overall_each
    from rdeepsense.reporting.subject import Subject, checked_times

    when, timed_by = None, "time"
    if time is not None:
        when, timed_by = checked_times(time, len(y)), time.name
    subjects = [
        Subject(name, "", part, own, groups, time=when, timed_by=timed_by)
        for name, part, own in by_target(dist, y, targets)
    ]
    return overall_each(subjects, training)


def report(terminal: Terminal, verdicts: Mapping[str, Overall], timed: bool = True) -> None:
    """Print each word, why, and what to do; whether a drift was found where rows are `timed`."""
    for name, verdict in verdicts.items():
        own = f"{name}: " if len(verdicts) > 1 else ""
        further = verdict.remarks if timed else verdict.points
        for place, words in enumerate([f"{verdict.word}: {verdict.why}", *further]):
            terminal.line(f"{'verdict' if place == 0 else '':10}{own}{words}")
