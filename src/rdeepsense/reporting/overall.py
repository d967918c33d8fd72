"""The word for a model on one target, and why: good, too wide, too narrow, useless, drifting.

Pages and the terminal say the sentences that are made here.

The rules, in this order; n is the number of rows, s a standard error (between groups, where there
are groups):

0. Rows that follow each other are alike: without groups, and with a time, s is between the blocks
   of time that `drift` looks at.
1. *useless*: the inputs say nothing. With the model's spread (of classes, its temperature) set
   right by one factor on these very rows, so that a wrong width is not blamed here, the mean gain
   g over a constant in nats is at most 2 s, or at most 0.01. The constant is the Gaussian, or the
   frequencies, of the training targets where they are known, else of these rows. Of a model that
   drifts, the rows before the change are asked.
2. *drifting*: what the model says holds less, or otherwise, since some time (`drift`).
3. *too narrow*, *too wide*: the share of 90 % intervals that hold is off 0.9 by more than 2 s and
   by more than 0.02; of classes *too sure*, *too modest*, of the accuracy beside the mean stated
   probability.
4. *unclear*: 2 s is more than 0.1, so that rows are too few to tell.
5. *good* otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rdeepsense import calibration
from rdeepsense.arrays import Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.experiments.records import Record
from rdeepsense.reporting.drift import Drift, blocks_of, find_drift
from rdeepsense.reporting.shares import moment
from rdeepsense.reporting.subject import Subject
from rdeepsense.reporting.verdict import ERRORS, UNCLEAR, Verdict, judge

LEAST_GAIN = 0.01  # nats
LEAST_GAP = 0.02
TONES = {"good": "good", "too wide": "open", "too modest": "open", UNCLEAR: "open"}  # else bad


@dataclass(frozen=True)
class Overall(Record):
    """A word, a sentence that begins with it, what to do, and whether a drift was found."""

    word: str
    why: str
    points: list[str]
    no_drift: str | None  # how far that can be told; None where it drifts
    worth: str  # of `verdict.WORTH`, of a model whose spread is set right
    holds: str  # as of all rows
    share: float
    share_error: float
    nominal: float
    gain: float
    gain_error: float
    factor: float | None
    drift_errors: float | None  # of the largest change over time; None without time

    @property
    def tone(self) -> str:
        """How a page colours it."""
        return TONES.get(self.word, "bad")

    @property
    def remarks(self) -> list[str]:
        """What is to be said after the sentence."""
        return [*self.points, *([] if self.no_drift is None else [self.no_drift])]


def overall(subject: Subject, training: NDArray[Any] | None = None) -> Overall:
    """Judge one target; `training` are the targets that the model was trained on."""
    known = subject.y if training is None else training
    between = subject.groups if subject.groups is not None else blocks_of(subject)
    name, drift = subject.name, find_drift(subject)
    verdict = judge(subject.dist, subject.y, [name], known, between)[name]
    rows = slice(None) if drift is None or not drift.drifts else subject.order[: drift.row]
    groups = None if between is None else between[rows]
    mended = judge(_mended(subject, rows), subject.y[rows], [name], known, groups)[name]
    word = word_of(verdict, mended, drift)
    return Overall(
        word,
        _why(word, subject, verdict, mended, drift),
        _points(word, subject, verdict, mended),
        _no_drift(subject, drift),
        mended.worth,
        verdict.holds,
        verdict.share,
        verdict.share_error,
        verdict.nominal,
        mended.gain,
        mended.gain_error,
        verdict.factor,
        None if drift is None else drift.errors,
    )


def overall_each(
    subjects: Sequence[Subject], training: NDArray[Any] | None = None
) -> dict[str, Overall]:
    """Judge several targets by name; `training` are their columns, or the values of the one."""
    return {
        one.name: overall(
            one, training if training is None or training.ndim == 1 else training[:, place]
        )
        for place, one in enumerate(subjects)
    }


def word_of(verdict: Verdict, mended: Verdict, drift: Drift | None) -> str:
    """Apply the rules in their order."""
    if mended.gain <= max(ERRORS * mended.gain_error, LEAST_GAIN):
        return "useless"
    if drift is not None and drift.drifts:
        return "drifting"
    if verdict.holds == "hold" or abs(verdict.share - verdict.nominal) <= LEAST_GAP:
        return "good"
    return verdict.holds


def _mended(subject: Subject, rows: slice | Integers) -> AnyDistribution:
    """Return predictions of some rows, their spread, or temperature, set right on these rows."""
    kind = "temperature" if isinstance(subject.dist, Categorical) else "scale"
    dist = subject.dist[rows]
    return calibration.fit(kind, dist, subject.truth[rows]).apply(dist)


def _why(
    word: str, subject: Subject, verdict: Verdict, mended: Verdict, drift: Drift | None
) -> str:
    rows = f"{len(subject.truth):,} rows"
    share, error = 100 * verdict.share, 100 * verdict.share_error
    if subject.is_classes:
        held = f"{share:.1f} ± {error:.1f} % of {rows} are right where {100 * verdict.nominal:.1f}"
        held += " % is stated"
    else:
        held = f"90 % intervals hold {share:.1f} ± {error:.1f} % of {rows}"
    if word == "useless":
        return (
            f"The inputs say nothing about {subject.name} that {rows} can show: the NLL is "
            f"{mended.gain:.2g} ± {mended.gain_error:.1g} nats below that of a constant."
        )
    if word == "drifting":
        assert drift is not None
        what = "rows were right" if subject.is_classes else "90 % intervals held"
        return (
            f"It changed about {moment(drift.at)} ({subject.timed_by}): {100 * drift.before:.0f} % "
            f"of the {what} before, and {100 * drift.after:.0f} % since; {rows} in all."
        )
    factor = verdict.factor
    if word == "too narrow" and factor is not None:
        return f"{held}; they should be {factor:.2f} times as wide."
    if word == "too wide" and factor:
        return f"{held}; they could be {100 * (1 - factor):.0f} % narrower."
    if word == UNCLEAR:
        return f"{held}, which says little about a model that may hold 90 % or 80 %."
    return f"{held}."


def _points(word: str, subject: Subject, verdict: Verdict, mended: Verdict) -> list[str]:
    cures = {
        "useless": "Are the inputs of the same rows as the target? Is the cause among them? A "
        "constant does as well.",
        "drifting": "Adapt it with a few labels (adapt), let it learn on in life (live), or fit it "
        "again with rows of the new time. Until then its intervals are not to be trusted.",
        "too narrow": 'Calibrate with rows like these: calibrate="conformal" at the next fit, '
        "groups where rows belong together, or conformalise(X, y) now.",
        "too wide": 'It is on the safe side. calibrate="isotonic", or a fit with effort "full", '
        "may make it sharper.",
        "too sure": "Calibrate with rows like these: groups where rows belong together, or "
        "conformalise(X, y) for sets that hold.",
        "too modest": "It is on the safe side. A fit with more rows may make it surer.",
        UNCLEAR: "Collect more labelled rows: a few hundred tell.",
    }
    points = [cures[word]] if word in cures else []
    if word != "useless":
        was, when = ("was", " before the change") if word == "drifting" else ("is", "")
        points.append(
            f"It {was} worth having{when}: the NLL {was} {mended.gain:.2g} ± "
            f"{mended.gain_error:.1g} nats below that of a constant."
        )
    if word in ("useless", "drifting") and verdict.holds not in ("hold", UNCLEAR):
        what = "probabilities are" if subject.is_classes else "intervals are"
        points.append(f"Over all rows, its {what} {verdict.holds}.")
    return points


def _no_drift(subject: Subject, drift: Drift | None) -> str | None:
    if drift is None:
        why = "no time was given" if subject.time is None else "too few rows"
        return f"Whether it drifts cannot be told: {why}."
    if drift.drifts:
        return None
    return f"No drift was found in {drift.blocks} blocks by {subject.timed_by}."
