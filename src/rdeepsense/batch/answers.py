"""The columns of answers to some rows, and what is to be said of all rows together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans
from rdeepsense.batch.known import Known, Predicted, Runner, Values
from rdeepsense.batch.wanted import EPISTEMIC, NOVELTY, REJECT, STATUS, Wanted
from rdeepsense.refusal import Refusal
from rdeepsense.status import DOUBTS, Status, Statuses, status_words

LISTED = 20  # inputs named one by one before "and N more"


@dataclass
class Tally:
    """How many rows there were; those without an answer; flagged ones among the others, and why."""

    rows: int = 0
    missing: int = 0  # rows without an answer that lack a value
    infinite: int = 0  # and others that hold infinity
    flagged: int = 0
    inputs: Counter[str] = field(default_factory=Counter)

    @property
    def answered(self) -> int:
        """How many rows have an answer."""
        return self.rows - self.missing - self.infinite

    def add(self, other: Tally) -> None:
        """Count further rows."""
        self.rows += other.rows
        self.missing += other.missing
        self.infinite += other.infinite
        self.flagged += other.flagged
        self.inputs.update(other.inputs)


@dataclass(frozen=True)
class Coded:
    """A column of few distinct values: the values, and which of them each row has."""

    values: NDArray[Any]
    codes: NDArray[np.intp]
    masked: bool = True  # whether a row without an answer has none here either


Columns = dict[str, NDArray[Any] | Coded]


@dataclass(frozen=True)
class Answer:
    """The columns of some rows, in order; those without an answer hold numbers of no meaning."""

    columns: Columns
    unanswered: Booleans
    tally: Tally


@dataclass(frozen=True)
class Answers:
    """A model, a runner of it and what is wanted: rows in, columns out."""

    known: Known
    wanted: Wanted
    runner: Runner

    def of(self, X: Values) -> Answer:
        """Answer rows of numbers and codes."""
        predicted, status = self.runner.run(X)
        at = np.flatnonzero(status)
        missing = status[at] & Status.MISSING.value != 0
        infinite = np.isinf(X[at]).any(1) & ~missing
        unanswered = np.zeros(len(X), np.bool_)
        unanswered[at] = missing | infinite
        columns = self._numbers(predicted)
        if self.known.classes is not None:
            columns = self._classes(self.known.classes, predicted.mean)
        refused = np.zeros(len(X), np.bool_)
        if self.known.refusal is not None:
            refused = _refused(self.known.refusal, predicted) | unanswered
            status = status | refused * np.uint8(Status.UNSURE)
        columns |= self._further(predicted, refused)
        tally = Tally(len(X), int(missing.sum()), int(infinite.sum()))
        told = int(np.count_nonzero(status & ~DOUBTS))
        tally.flagged = told - tally.missing - tally.infinite
        words, beyond = self._words(X, status)
        if STATUS in self.wanted.further:
            columns[STATUS] = words
        counts, names = beyond[~unanswered[status != 0]].sum(0), self.known.input_names
        tally.inputs.update({names[k]: int(counts[k]) for k in np.flatnonzero(counts)})
        return Answer(columns, unanswered, tally)

    def _numbers(self, predicted: Predicted) -> Columns:
        """Return mean, std, low, high and quantiles of each target; nothing of classes."""
        mean, std, quantile = predicted.mean, predicted.std, predicted.quantile
        if std is None or quantile is None or predicted.interval is None:
            return {}
        figures = {"mean": mean, "std": std}
        if self.known.reach is not None:
            half = self.known.reach.astype(std.dtype) * std
            figures |= {"low": mean - half, "high": mean + half}
        else:
            low, high = predicted.interval(self.wanted.coverage)
            figures |= {"low": low, "high": high}
        figures |= {f"q{level:g}": quantile(level) for level in self.wanted.quantiles}
        return {
            f"{name}{target}": values[:, k]
            for k, target in enumerate(self.known.suffixes)
            for name, values in figures.items()
        }

    def _classes(self, classes: NDArray[Any], probs: Values) -> Columns:
        """Return the most probable class, and the probability of every class."""
        found: Columns = {f"class{self.known.suffixes[0]}": Coded(classes, probs.argmax(1))}
        return found | {f"p_{label}": probs[:, k] for k, label in enumerate(classes)}

    def _further(self, predicted: Predicted, refused: Booleans) -> Columns:
        columns: Columns = {}
        if EPISTEMIC in self.wanted.further:
            values = predicted.further[EPISTEMIC]
            if values.ndim == 1:
                columns[EPISTEMIC] = values
            else:
                targets = enumerate(self.known.suffixes)
                columns |= {f"{EPISTEMIC}{target}": values[:, k] for k, target in targets}
        if NOVELTY in self.wanted.further:
            columns[NOVELTY] = predicted.further[NOVELTY]
        if REJECT in self.wanted.further:
            columns[REJECT] = refused
        return columns

    def _words(self, X: Values, status: Statuses) -> tuple[Coded, Booleans]:
        """Return the status of each row in words, and the inputs that flagged rows are for."""
        at = np.flatnonzero(status)
        beyond = self.known.beyond(X[at])
        # Each pattern of flags is put in words once: there are far fewer of them than rows.
        flags = np.column_stack([status[at], beyond]).astype(np.uint8)
        patterns, codes = np.unique(flags, axis=0, return_inverse=True)
        words, names = ["ok"], self.known.input_names
        for pattern, said in zip(patterns[:, 1:], status_words(patterns[:, 0]), strict=True):
            inputs = [names[k] for k in np.flatnonzero(pattern)]
            words.append(f"{said}: {_some(inputs)}" if inputs else said)
        places = np.zeros(len(X), np.intp)
        places[at] = codes.reshape(-1) + 1
        return Coded(np.array(words, dtype=object), places, masked=False), beyond


def _refused(refusal: Refusal, predicted: Predicted) -> Booleans:
    if predicted.std is None:
        return refusal.refused(predicted.mean, is_classifier=True)
    return refusal.refused(predicted.std, is_classifier=False)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
