"""`rds.Stream`: decisions from samples as they arrive."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.deployed import DeployedModel, load
from rdeepsense.deploy.folded.graph import FoldedGraph, Running, finished
from rdeepsense.deploy.folded.model import MeanStd, Outputs, Probabilities, Runner
from rdeepsense.errors import InputError
from rdeepsense.status import Status
from rdeepsense.windowing.grid import FURTHEST, SECOND
from rdeepsense.windowing.stream import COVERAGE, TRUSTED, Sampler, Sampling, Smoothing, prior_of

# --------------------------------------------------------------------------------------------------
# The decision for one window
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decision:
    """One window of a stream, decided; what a model of the other kind says is None.

    Where windows begin anew, once, there is one without an answer: its status is
    `Status.NOT_ENOUGH_DATA`, and its start and end are the new stretch's first sample.

    Parameters
    ----------
    start, end : the window's first and last point, in seconds.
    status : what is the matter with it.
    probs : of each class, of this window alone.
    label : the class by all windows up to this one; None: none yet, or none is probable.
    probability : that `label` is right; without a label, of the most probable class.
    mean, std : of each output.
    low, high : the interval of 90 %.
    """

    start: float
    end: float
    status: Status
    probs: Floats | None = None
    label: Any = None
    probability: float | None = None
    mean: Floats | None = None
    std: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None


# --------------------------------------------------------------------------------------------------
# Running windows: recurrent state that continues from window to window
# --------------------------------------------------------------------------------------------------


class StatefulRunner:
    """A model whose recurrent layers go on from window to window."""

    def __init__(self, folded: FoldedGraph, running: Running, hop: int, factor: float) -> None:
        self.folded, self.running, self.hop, self.factor = folded, running, hop, factor
        self.begin()

    @classmethod
    def of(cls, runner: Runner, sampling: Sampling, factor: float) -> StatefulRunner:
        """Take a model that can be computed interval by interval."""
        stream = runner.stream if isinstance(runner, FoldedGraph) else None
        if not isinstance(runner, FoldedGraph) or stream is None:
            raise InputError(
                f"running={factor!r} is for fitted estimators whose network has intervals; a file "
                "does not keep them"
            )
        interval = sampling.length // stream.count
        if sampling.hop % interval or sampling.hop > sampling.length:
            raise InputError(
                f"running={factor!r}: a hop of {sampling.hop} samples is no multiple of "
                f"{interval}, an interval, up to {sampling.length}, a window"
            )
        return cls(runner, Running(stream), sampling.hop, factor)

    def begin(self) -> None:
        """Forget what came before."""
        self.running.begin()
        self._is_first = True

    def run(self, X: NDArray[Any]) -> Outputs:
        """Predict the next window, (1, time, channels)."""
        new = X if self._is_first else X[:, -self.hop :]
        self._is_first = False
        scaled = self.folded.graph.read(self.folded.facts.inside(new))
        for z in scaled.reshape(-1, 1, self.running.stream.read):
            self.running.push(z)
        return finished(self.folded, self.running.raw(), X, self.factor)


# --------------------------------------------------------------------------------------------------
# `rdeepsense.Stream`: samples in, decisions out
# --------------------------------------------------------------------------------------------------

Way = Runner | StatefulRunner


class Stream:
    """A model of windows that takes samples one after the other.

    It is what an export to C has as `model_stream`: samples are resampled to the model's rate, cut
    into windows as `rdeepsense.windows` cuts a log, and decided; classes are smoothed over windows.
    Memory is bounded by a window and a gap. A sample before the last one is dropped, and so is a
    sensor's second sample of the same time once a point has been told by the first; `late` and
    `repeated` count them. After a window's number of late ones in a row the clock has been set
    back, and the stream begins anew.

    Parameters
    ----------
    model : a folded file's path (numpy alone runs it), what `deploy.load` returns, or a fitted
        estimator. It was fitted on `rdeepsense.windows`, so that it knows its rate.
    smoothing : how decisions are taken together; None is what the model carries.
    hop : how far apart windows are, such as "0.5s"; None: as the model's own were.
    running : the factor of the running way (`report.stream.running.factor` of an export with
        ``stream="running"``), of a fitted estimator; None computes the window, as all other ways.
    """

    def __init__(
        self,
        model: Any,
        smoothing: Smoothing | None = None,
        hop: str | float | None = None,
        running: float | None = None,
    ) -> None:
        self._runner = _runner_of(model)
        self.facts = facts = self._runner.facts.streamed(smoothing, hop)
        if facts.recipe is None:
            raise InputError(
                "the model does not know how windows are cut; fit it on rdeepsense.windows(...)"
            )
        self.recipe = facts.recipe
        self.smoothing = facts.smoothing or Smoothing.unseen(facts.recipe)
        known = None if facts.guard is None or not facts.is_classifier else facts.guard.fallback
        self._prior = prior_of(known, facts.outputs)
        self._sampler = Sampler(Sampling.of(facts.recipe))
        self._way: Way = self._runner
        if running is not None:
            self._way = StatefulRunner.of(self._runner, self._sampler.sampling, running)
        self._stretch, self._announced = 0, False
        self._begin()

    @property
    def late(self) -> int:
        """How many samples came too late, and were dropped."""
        return self._sampler.late

    @property
    def repeated(self) -> int:
        """How many samples had a sensor that was heard at that time already."""
        return self._sampler.repeated

    def push(self, timestamp: float, values: ArrayLike) -> list[Decision]:
        """Take one sample: its time in seconds, its channels, NaN where there is none now.

        Returns the decisions that are due, in order; mostly there is none.
        """
        return list(self._decisions(_microseconds(timestamp), self._sample(values)))

    def _decisions(self, time: int, sample: NDArray[Any]) -> Iterator[Decision]:
        sampler = self._sampler
        sampler.push(time, sample)
        if sampler.stretch != self._stretch:
            self._stretch = sampler.stretch
            self._begin()
            if not self._announced:
                self._announced = True
                yield self._nothing(sampler.sampling.ticks.rounded(sampler.start) / SECOND)
        while (found := sampler.window()) is not None:
            self._announced = False
            yield self._decision(*found)

    def _begin(self) -> None:
        self._belief, self._label = self._prior, -1
        if isinstance(self._way, StatefulRunner):
            self._way.begin()

    def _sample(self, values: ArrayLike) -> NDArray[Any]:
        try:
            with np.errstate(over="ignore"):
                sample = np.asarray(values, np.float64).astype(self.recipe.dtype)
        except (TypeError, ValueError) as error:
            raise InputError(f"values hold what is no number: {error}") from error
        if sample.shape != (self.facts.inputs,):
            raise InputError(
                f"values have the shape {sample.shape}; a sample has {self.facts.inputs} channels: "
                f"{', '.join(self.recipe.channels)[:200]}"
            )
        return sample

    def _decision(self, first: int, last: int, window: NDArray[Any]) -> Decision:
        found = self._way.run(window[None])
        status = Status.OK if found.status is None else Status(int(found.status[0]))
        start, end = first / SECOND, last / SECOND
        if isinstance(found, MeanStd):
            mean, std = found.mean[0], found.std[0]
            low, high = self._interval()
            ends = (mean + low * std, mean + high * std)
            return Decision(start, end, status, None, None, None, mean, std, *ends)
        assert isinstance(found, Probabilities)
        probs = found.probs[0].astype(np.float64)
        is_evidence = not status & ~TRUSTED
        prior, smoothing = self._prior, self.smoothing
        self._belief = smoothing.next(self._belief, probs if is_evidence else None, prior)
        self._label = smoothing.label(self._belief, self._label)
        assert self.facts.classes is not None
        label = None if self._label < 0 else self.facts.classes[self._label]
        at = int(np.argmax(self._belief)) if self._label < 0 else self._label
        return Decision(start, end, status, found.probs[0], label, float(self._belief[at]))

    def _nothing(self, at: float) -> Decision:
        unknown = np.full(self.facts.outputs, np.nan)
        if self.facts.is_classifier:
            return Decision(at, at, Status.NOT_ENOUGH_DATA, unknown, None, math.nan)
        return Decision(at, at, Status.NOT_ENOUGH_DATA, None, None, None, *[unknown] * 4)

    def _interval(self) -> tuple[Floats, Floats]:
        intervals = self.facts.intervals
        assert intervals is not None
        at = intervals.row(COVERAGE)
        return intervals.low[at], intervals.high[at]


def _runner_of(model: Any) -> Runner:
    """Return what predicts windows."""
    if isinstance(model, str | os.PathLike):
        return load(model).runner
    if isinstance(model, DeployedModel):
        return model.runner
    if hasattr(model, "fitted_"):
        # Only here: an estimator has brought torch along, a folded file needs numpy alone.
        from rdeepsense.deploy.fold import check_steady, folded_form, with_adaptation_folded

        check_steady(model.fitted_, "folded")
        fitted = with_adaptation_folded(model.fitted_)
        folded = folded_form(fitted)
        # As an export has it: a fitted novelty flags windows unlike those trained on.
        return replace(folded, facts=replace(folded.facts, novelty=fitted.compact_novelty))
    if hasattr(model, "facts") and hasattr(model, "run"):
        runner: Runner = model
        return runner
    raise InputError(
        f"model = {model!r:.60}; accepted: the path of a folded file, a model of deploy.load, or a "
        "fitted estimator"
    )


def _microseconds(timestamp: float) -> int:
    try:
        time = float(timestamp) * SECOND
    except (TypeError, ValueError) as error:
        raise InputError(f"timestamp = {timestamp!r:.60} is no number of seconds") from error
    if not abs(time) <= FURTHEST:
        raise InputError(f"timestamp = {timestamp!r:.60}; accepted: seconds, up to 2e12")
    return round(time)


# --------------------------------------------------------------------------------------------------
# Public names
# --------------------------------------------------------------------------------------------------

__all__ = ["Decision", "Stream"]
