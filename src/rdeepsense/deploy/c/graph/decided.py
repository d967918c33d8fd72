"""The smoothing of decisions that an export carries, fitted and judged on labelled streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Integers
from rdeepsense.calibration.decisions import Streams, fit_smoothing
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.runner import Probabilities, Runner
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.quality import Figures, figures
from rdeepsense.distributions import Categorical
from rdeepsense.windowing.stream import TRUSTED, Smoothing, prior_of


@dataclass(frozen=True)
class Decided:
    """Windows alone and taken together, on streams that chose nothing.

    `labelled` is the share of windows with a label, `right` that of the labels that are right,
    `stated` the mean probability that comes with them.
    """

    windows: int
    alone: Figures
    together: Figures
    labelled: float
    right: float
    stated: float
    changes_of_label: int
    changes_of_truth: int


def decided_quality(
    runner: Runner, facts: Facts, rows: LabelledRows, given: Smoothing | None
) -> tuple[Smoothing | None, Decided | None]:
    """Return the smoothing, fitted on half of the runs unless it is given, and judged."""
    if facts.recipe is None or not facts.is_classifier:
        return None, None
    if rows.runs is None or max(run.stop - run.start for run in rows.runs) < 2:
        return given or facts.smoothing, None
    streams = _streams(runner, facts, rows)
    if given is not None:
        return given, _judged(streams, given)
    fits, judges = streams.halves()
    smoothing = fit_smoothing(fits, facts.recipe, facts.smoothing)
    return smoothing, None if not len(judges.rows) else _judged(judges, smoothing)


def _streams(runner: Runner, facts: Facts, rows: LabelledRows) -> Streams:
    found = runner.run(rows.X)
    assert isinstance(found, Probabilities)
    assert rows.runs is not None
    trusted = np.ones(len(rows.y), np.bool_)
    if found.status is not None:
        trusted = (found.status & ~np.uint8(TRUSTED)) == 0
    prior = prior_of(None if facts.guard is None else facts.guard.fallback, facts.outputs)
    probs = np.asarray(found.probs, np.float64)
    return Streams(probs, trusted, rows.y.astype(np.int64), rows.runs, prior)


def _judged(streams: Streams, smoothing: Smoothing) -> Decided:
    at, labels = streams.rows, streams.labels(smoothing)
    truth, beliefs = streams.truth[at], streams.beliefs(smoothing)
    has = labels >= 0
    stated = beliefs[np.arange(len(labels)), labels][has]
    return Decided(
        len(at),
        figures(Categorical(streams.probs[at]), truth),
        figures(Categorical(beliefs), truth),
        float(has.mean()),
        float((labels == truth)[has].mean()) if has.any() else 0.0,
        float(stated.mean()) if has.any() else 0.0,
        _changes(streams, labels),
        streams.changes,
    )


def _changes(streams: Streams, labels: Integers) -> int:
    found, at = 0, 0
    for run in streams.runs:
        own = labels[at : at + run.stop - run.start]
        found += int((np.diff(own[own >= 0]) != 0).sum())
        at += run.stop - run.start
    return found
