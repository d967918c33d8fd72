"""Smoothing of decisions, fitted on streams whose truth is known.

The numbers `evidence` and `change` of `windowing.stream.Smoothing` minimize the NLL of b, with a
prior of standard deviation 1 on their logarithms. Windows that share samples count by what is new
in them. Where no class ever changes inside a recording, the data do not show how often classes
change, and `change` keeps its prior value.

A window that a change falls into speaks of both classes. That makes the best `change` larger than
the share of windows at which the truth changes, and the best `evidence` about hop / window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import RANGES, Smoothing

FEWEST = 20  # windows that follow another one
LONGEST = 500  # windows of a run that is fitted on: runs go on side by side, so short ones are fast


@dataclass(frozen=True)
class Streams:
    """What a model says of windows one hop apart, run by run, and the truth."""

    probs: Floats
    trusted: Booleans  # whether a window is evidence
    truth: Integers
    runs: Sequence[slice]
    prior: Floats

    def halves(self) -> tuple[Streams, Streams]:
        """Split by runs, drawn at random; a single run in the middle."""
        runs = list(self.runs)
        if len(runs) == 1:
            middle = (runs[0].start + runs[0].stop) // 2
            runs = [slice(runs[0].start, middle), slice(middle, runs[0].stop)]
            return replace(self, runs=runs[:1]), replace(self, runs=runs[1:])
        # Recordings often come in an order that repeats, of activities say.
        order = np.random.default_rng(0).permutation(len(runs))
        first, second = (np.sort(part) for part in np.array_split(order, 2))
        return (
            replace(self, runs=[runs[k] for k in first]),
            replace(self, runs=[runs[k] for k in second]),
        )

    def pieces(self, longest: int) -> Streams:
        """Cut long runs."""
        runs = [
            slice(start, min(run.stop, start + longest))
            for run in self.runs
            for start in range(run.start, run.stop, longest)
        ]
        return replace(self, runs=runs)

    @property
    def rows(self) -> Integers:
        """The windows of all runs, in order."""
        parts = [np.arange(run.start, run.stop) for run in self.runs]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    @property
    def pairs(self) -> int:
        """How many windows follow another one."""
        return sum(run.stop - run.start - 1 for run in self.runs)

    @property
    def changes(self) -> int:
        """How often the truth changes from a window to the next."""
        return sum(int((np.diff(self.truth[run]) != 0).sum()) for run in self.runs)

    def beliefs(self, smoothing: Smoothing) -> Floats:
        """Return b after each window of `rows`; all runs go on side by side."""
        lengths = np.array([run.stop - run.start for run in self.runs], np.int64)
        starts = np.array([run.start for run in self.runs], np.int64)
        places = np.cumsum(lengths) - lengths
        found = np.empty((int(lengths.sum()), len(self.prior)))
        belief = np.broadcast_to(self.prior, (len(lengths), len(self.prior))).copy()
        for step in range(int(lengths.max(initial=0))):
            going = np.flatnonzero(lengths > step)
            at = starts[going] + step
            ahead = smoothing.next(belief[going], None, self.prior)
            after = smoothing.next(belief[going], self.probs[at], self.prior)
            belief[going] = np.where(self.trusted[at, None], after, ahead)
            found[places[going] + step] = belief[going]
        return found

    def nll(self, smoothing: Smoothing) -> float:
        """Return the mean NLL of b."""
        b = self.beliefs(smoothing)
        return -float(np.log(b[np.arange(len(b)), self.truth[self.rows]]).mean())

    def labels(self, smoothing: Smoothing) -> Integers:
        """Return the label after each window of `rows`, -1 where there is none."""
        beliefs, found, at = self.beliefs(smoothing), [], 0
        for run in self.runs:
            label = -1
            for belief in beliefs[at : at + run.stop - run.start]:
                label = smoothing.label(belief, label)
                found.append(label)
            at += run.stop - run.start
        return np.array(found, np.int64)


def fit_smoothing(streams: Streams, recipe: Recipe, believed: Smoothing | None = None) -> Smoothing:
    """Return how the decisions of these streams are best taken together."""
    believed = believed or Smoothing.unseen(recipe)
    if streams.pairs < FEWEST:
        return believed
    free = 2 if streams.changes else 1
    streams = streams.pieces(LONGEST)
    first = np.log([believed.evidence, believed.change])
    # Of windows that share samples, so many are new.
    rows = len(streams.rows) * min(1.0, recipe.hop / recipe.window)

    def at(logs: Floats) -> Smoothing:
        evidence, change = np.exp([*logs, *first[free:]])
        return Smoothing(
            float(np.clip(evidence, *RANGES["evidence"])),
            float(np.clip(change, *RANGES["change"])),
            believed.at,
        )

    def loss(logs: Floats) -> float:
        return rows * streams.nll(at(logs)) + float(np.sum((logs - first[:free]) ** 2)) / 2

    found = minimize(loss, first[:free], method="Nelder-Mead", options={"xatol": 1e-3})
    return at(found.x)
