"""What a reproduction found, in the sentence that a reader meets first."""

from __future__ import annotations

from collections import Counter

from rdeepsense.experiments.paper.results import StudyResults
from rdeepsense.experiments.report.cell_text import percent
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED


def finding(results: StudyResults) -> str:
    """Say how many claims hold, and how many 90 % intervals of the two main methods do."""
    words = [_claims(results), *(_intervals(results, name) for name in (RECOMMENDED, PAPER))]
    said = "; ".join(filter(None, words))
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _claims(results: StudyResults) -> str:
    if not results.claims:
        return ""
    tally = Counter(one.verdict for one in results.claims)
    return (
        f"of {len(results.claims)} claims of the paper, {tally['yes']} hold, {tally['no']} do not, "
        f"and {tally['not decidable']} cannot be decided from this run"
    )


def _intervals(results: StudyResults, method: str) -> str:
    shares = [
        f"{percent(cell.figures['coverage_90'])} % ({name})"
        for name, task in results.tasks.items()
        if (cell := task.methods.get(method)) is not None
        and cell.figures.get("coverage_90") is not None
    ]
    if not shares:
        return ""
    return f"of the 90 % intervals of {method}, {' and '.join(shares)} hold the truth"
