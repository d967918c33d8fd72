"""The running way of a stream, judged on labelled windows, and its own calibration.

Recurrent layers that go on from interval to interval compute another function than the trained one.
Windows of a log are played as they came, each recording from its first sample to its last; half of
the people, or of the recordings, fit one factor by NLL, shrunk towards 1 as in `calibration.scale`,
and the other half judges. Windows that a model file kept are of no order: each is played twice in a
row, and the second time counts, when the states are those of a motion that goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Integers
from rdeepsense.calibration import PRIOR_ROWS
from rdeepsense.calibration.maps import least
from rdeepsense.deploy.c.graph.cost import Running
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.running import finished
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.quality import distribution, figures
from rdeepsense.fitting.fitted import Fitted

FEWEST = 4  # windows


def running_quality(
    folded: FoldedGraph, network: StoredGraph, fitted: Fitted, rows: LabelledRows
) -> Running | None:
    """Calibrate and judge the running way; None without a stream or windows."""
    if network.stream is None or len(rows.y) < FEWEST:
        return None
    X, y = rows.X, rows.y
    read = folded.facts.inside(X)
    trained = fitted.distribution(X)
    hop = _hop(fitted, network.stream)
    if rows.runs is None or hop is None:
        raw, played = played_twice(network, read), "each window twice"
    else:
        raw, played = played_on(network, read, rows.runs, hop), "whole recordings"
    fits, judges = _halves(rows)

    def nll(log_factor: float) -> float:
        found = finished(folded, raw[fits], X[fits], float(np.exp(log_factor)))
        return figures(distribution(trained[fits], found), y[fits])["nll"]

    log_factor = least(nll) * len(fits) / (len(fits) + PRIOR_ROWS)
    factor = float(np.exp(log_factor))
    plain, own = (
        distribution(trained[judges], finished(folded, raw[judges], X[judges], by))
        for by in (1.0, factor)
    )
    told = (figures(dist, y[judges]) for dist in (trained[judges], plain, own))
    return Running(factor, played, len(judges), *told)


def played_twice(network: StoredGraph, X: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the columns at the end of windows that are each played a second time."""
    assert network.stream is not None
    found = network.stream.found(network.graph.read(X))
    return network.stream.raw(np.concatenate([found, found], axis=1))


def played_on(
    network: StoredGraph, X: NDArray[Any], runs: Sequence[slice], hop: int
) -> NDArray[np.float64]:
    """Compute the columns at the end of each window of runs that are played without a stop.

    `hop` is the intervals from window to window. Of a window after another, only those are new.
    """
    stream = network.stream
    assert stream is not None
    parts = network.graph.read(X).reshape(len(X), stream.count, stream.read)
    found: list[NDArray[np.float64]] = []
    for run in runs:
        own = parts[run]
        played = np.concatenate([own[0], own[1:, -hop:].reshape(-1, stream.read)])
        tops = stream.tops(stream.found_of(played)[None])
        ends = stream.count + hop * np.arange(len(own))
        found.extend(stream.last_of(tops[:, :end]) for end in ends)
    return np.concatenate(found)


def _halves(rows: LabelledRows) -> tuple[Integers, Integers]:
    """Return windows that fit and windows that judge: of other people, or of other recordings."""
    for number in (_numbers(rows), _run_of(rows), np.arange(len(rows.y))):
        fits, judges = np.flatnonzero(number % 2 == 0), np.flatnonzero(number % 2)
        if min(len(fits), len(judges)) >= FEWEST // 2:
            break
    return fits, judges


def _numbers(rows: LabelledRows) -> Integers:
    if rows.group is None:
        return np.zeros(len(rows.y), np.int64)
    return np.unique(rows.group, return_inverse=True)[1].reshape(-1)


def _run_of(rows: LabelledRows) -> Integers:
    found = np.zeros(len(rows.y), np.int64)
    for number, run in enumerate(rows.runs or ()):
        found[run] = number
    return found


def _hop(fitted: Fitted, stream: Stream) -> int | None:
    """Return the intervals from window to window; None where they do not follow one another."""
    recipe = fitted.recipe
    if recipe is None:
        return None
    samples = recipe.length // stream.count
    hop = recipe.step // samples
    return hop if hop * samples == recipe.step and hop <= stream.count else None
