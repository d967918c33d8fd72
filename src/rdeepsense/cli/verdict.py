"""The verdict on a model at the terminal: the same sentences as on its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.findings import Finding
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.reporting.verdict import Constant, Verdict
    from rdeepsense.status import Statuses


def judged(
    dist: AnyDistribution,
    y: NDArray[Any],
    targets: Sequence[str],
    constants: Sequence[Constant] | None = None,
    groups: NDArray[Any] | None = None,
    time: pl.Series | None = None,
    status: Statuses | None = None,
    trees: Mapping[str, AnyDistribution] | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Verdict]:
    """Judge each target, as a page of the same rows would."""
    from rdeepsense.data.splits import checked_times
    from rdeepsense.reporting.verdict import judge_each, subjects_of

    when, timed_by = None, "time"
    if time is not None:
        when, timed_by = checked_times(time, len(y)), time.name
    subjects = subjects_of(dist, y, targets, groups, when, timed_by)
    return judge_each(subjects, constants, status, trees, findings)


def report(terminal: Terminal, verdicts: Mapping[str, Verdict], timed: bool = True) -> None:
    """Print the two words of each target, and the sentences behind them.

    Rows that were drawn at random are not `timed`: nothing is said of a drift.
    """
    for name, verdict in verdicts.items():
        own = f"{name}: " if len(verdicts) > 1 else ""
        told = [text for text in verdict.sentences if timed or text != verdict.drift]
        for place, words in enumerate([verdict.headline, *told]):
            terminal.line(f"{'verdict' if place == 0 else '':10}{own}{words}")
