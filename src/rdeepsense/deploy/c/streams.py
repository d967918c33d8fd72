"""Streams in C: cost of a hop, quality of decisions, networks that run on each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Integers
from rdeepsense.calibration import PRIOR_ROWS
from rdeepsense.calibration.decisions import Streams, fit_smoothing
from rdeepsense.calibration.maps import least
from rdeepsense.deploy.c.graph import WAYS, Sampled, whole_hop
from rdeepsense.deploy.c.inputs import StoredGraph
from rdeepsense.deploy.folded.graph import FoldedGraph, Stream, finished
from rdeepsense.deploy.folded.model import Facts, Probabilities, Runner
from rdeepsense.deploy.options import LabelledRows
from rdeepsense.deploy.quality import Figures, distribution, figures
from rdeepsense.distributions import Categorical
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing.stream import TRUSTED, Smoothing, prior_of

# --------------------------------------------------------------------------------------------------
# Cost of a stream of windows for each method of computation
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Running:
    """Recurrent layers that go on: its own calibration, and figures on windows not used for it.

    `before` are the figures of whole windows, `uncalibrated` those without the factor.
    """

    factor: float  # of logits, or of standard deviations
    played: str  # whole recordings, or each window twice
    rows: int
    before: Figures
    uncalibrated: Figures
    after: Figures


@dataclass(frozen=True)
class StreamCost:
    """Multiply-adds of a decision and bytes of state: whole window, exact, running."""

    times_of_an_interval: int
    intervals: int
    multiply_adds: dict[str, int]
    state_bytes: dict[str, int]
    running: Running | None  # None where there are no labelled windows

    @classmethod
    def of(
        cls, stream: Stream, channels: int, running: Running | None, summary: int = 0
    ) -> StreamCost:
        interval, step, last = stream.multiply_adds
        count, (found, top, _) = stream.count, stream.sizes
        kept = 4 * count * channels * summary  # of each interval, for a novelty
        flags = -(-count // 4) * 4 + 4
        tops = top * (count if stream.mean else 1)
        return cls(
            stream.read // channels,
            count,
            {
                "window": count * (interval + step) + last,
                "exact": interval + count * step + last,
                "running": interval + step + last,
            },
            {
                "window": 0,
                "exact": 4 * count * found + kept + flags,
                "running": 4 * (stream.states + tops) + kept + flags,
            },
            running,
        )


# --------------------------------------------------------------------------------------------------
# Smoothing of decisions, fitted and evaluated on labeled streams
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Cost of a stream of samples on the device
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampledCost:
    """Of the way that was chosen, and of the others that this model and hop allow.

    Multiply-adds are those of a decision, with all that was computed since the one before. Bytes
    are those of `model_stream` where 64-bit numbers are aligned to 8 bytes. `decided` is None
    where no labelled streams were given; the smoothing is then the model's own.
    """

    way: str
    samples: int
    hop: int
    rate: float
    gap_in_microseconds: int
    multiply_adds: dict[str, int]
    ram_stream: dict[str, int]
    advice: str | None  # where another hop would be much cheaper
    smoothing: Smoothing | None
    decided: Decided | None

    @classmethod
    def of(
        cls,
        sampled: Sampled,
        multiply_adds: int,
        stream: Stream | None,
        states: Mapping[str, int],
        outputs: int,
        decided: Decided | None,
    ) -> SampledCost:
        """Count; `multiply_adds` are those of a whole window, `states` bytes that a way keeps."""
        own = sampled.sampling
        work, ram = dict[str, int](), dict[str, int]()
        for way in WAYS:
            try:
                one = Sampled.of(own, sampled.smoothing, stream, way)
            except InputError:
                continue  # not with this network and hop
            work[way] = multiply_adds if stream is None else _work(one, stream)
            ram[way] = stream_bytes(one, states.get(way, 0), outputs)
        advice = None
        if stream is not None and len(work) == 1:
            advice = _advice(sampled, stream)
        return cls(
            sampled.way,
            own.length,
            own.hop,
            own.rate,
            own.gap,
            work,
            ram,
            advice,
            sampled.smoothing,
            decided,
        )


def stream_bytes(sampled: Sampled, state: int, outputs: int) -> int:
    """Return the size of `model_stream`, which has a state of so many bytes inside."""
    channels, sensors = sampled.sampling.firsts[-1], len(sampled.sampling.sensors)
    parts = [(4, (sampled.points + 1) * channels), (8, sensors), (8, 2 * sensors)]
    parts += [(4, sensors), (1, 2 * sensors), (8, 2), (8, 1), (4, 1), (1, 3)]
    if sampled.way != "window":
        parts += [(4, 1), (4, state // 4)]
    if sampled.smoothing is not None:
        parts += [(4, outputs), (4, 1)]
    parts.append((4, 3))
    total = 0
    for size, count in parts:
        total = -(-total // size) * size + size * count
    return -(-total // 8) * 8


def _advice(sampled: Sampled, stream: Stream) -> str | None:
    """Name the next hop by which intervals can be kept, where that saves a quarter of the work."""
    own = sampled.sampling
    hop = whole_hop(own, own.length // stream.count)
    one = Sampled.of(replace(own, hop=hop), sampled.smoothing, stream, "exact")
    whole, kept = _work(sampled, stream), _work(one, stream)
    if 4 * kept > 3 * whole:
        return None
    return (
        f"hop={hop / own.rate:.6g} is a multiple of an interval: its exact way would take "
        f"{kept:,} multiply-adds a decision in place of {whole:,}"
    )


def _work(sampled: Sampled, stream: Stream) -> int:
    interval, step, last = stream.multiply_adds
    if sampled.way == "window":
        return stream.count * (interval + step) + last
    new = sampled.sampling.hop // sampled.read
    again = stream.count if sampled.way == "exact" else new
    return new * interval + again * step + last


# --------------------------------------------------------------------------------------------------
# Quality and calibration of running recurrent layers, on labeled windows
#
# Recurrent layers that go on from interval to interval compute another function than the trained
# one. Windows of a log are played as they came, each recording from its first sample to its last;
# half of the people, or of the recordings, fit one factor by NLL, shrunk towards 1 as in
# `calibration.maps`, and the other half judges. Windows that a model file kept are of no order:
# each is played twice in a row, and the second time counts, when the states are those of a motion
# that goes on.
# --------------------------------------------------------------------------------------------------

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
