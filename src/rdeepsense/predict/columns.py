"""Predictions as columns of a table: which ones were asked for, and their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError, share
from rdeepsense.guard import Guard
from rdeepsense.refusal import Refusal
from rdeepsense.status import DOUBTS, Status, Statuses, status_words

# --------------------------------------------------------------------------------------------------
# Requested columns: interval, quantiles and more
# --------------------------------------------------------------------------------------------------

STATUS, NOVELTY, EPISTEMIC, REJECT = FURTHER = ("status", "novelty", "epistemic", "reject")


@dataclass(frozen=True)
class OutputColumns:
    """The columns that are asked for, beside mean and std or the probability of each class.

    Parameters
    ----------
    coverage : probability that the interval from low to high should hold.
    quantiles : probabilities of further columns, such as (0.05, 0.5, 0.95).
    further : of "status", "novelty", "epistemic" and "reject".
    samples : passes with dropout on; None is one without.
    accept : share of the model's own validation rows that "reject" does not refuse.
    """

    coverage: float = 0.9
    quantiles: tuple[float, ...] = ()
    further: tuple[str, ...] = (STATUS,)
    samples: int | None = None
    accept: float = 0.9

    def __post_init__(self) -> None:
        for name, value in (("coverage", self.coverage), ("accept", self.accept)):
            if not 0 < value < 1:
                raise InputError(f"{name} = {value}: must lie between 0 and 1{share(value)}")
        for level in self.quantiles:
            if not 0 < level < 1:
                raise InputError(
                    f"quantiles = {level:g}: each must lie between 0 and 1{share(level)}"
                )
        for name in self.further:
            if name not in FURTHER:
                raise InputError(f"with = {name!r} is unknown; accepted: {', '.join(FURTHER)}")

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON holds them, which tells equal ones from others."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def tails(coverage: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of a central interval."""
    tail = (1 - coverage) / 2
    return tail, 1 - tail


# --------------------------------------------------------------------------------------------------
# Facts about a model that its columns need, in numpy
# --------------------------------------------------------------------------------------------------

Values = NDArray[Any]  # (rows, outputs), float32 of C and float64 of torch


@dataclass(frozen=True)
class ModelSchema:
    """Names of inputs and targets, what codes and ranges are, and thresholds."""

    inputs: int
    outputs: int
    names: tuple[str, ...] | None
    targets: tuple[str, ...] | None
    classes: NDArray[Any] | None
    encoding: Encoding | None
    guard: Guard | None
    reach: Floats | None = None  # of conformal intervals, in stds of each output
    refusal: Refusal | None = None

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, or their numbers."""
        return list(self.names or map(str, range(self.inputs)))

    @property
    def suffixes(self) -> list[str]:
        """What the columns of each target end in: its name, or nothing for one without."""
        return suffixes(self.targets, 1 if self.classes is not None else self.outputs)

    def beyond(self, X: Values) -> Booleans:
        """Tell which inputs of each row the guard flags; infinity always is."""
        found = np.isinf(X)
        return found if self.guard is None else found | self.guard.beyond(X)


def suffixes(targets: Sequence[str] | None, columns: int) -> list[str]:
    """Return what columns end in: the targets' names, else numbers, or nothing for a single one."""
    if targets is not None:
        return [f"_{name}" for name in targets]
    return [""] if columns == 1 else [f"_{k}" for k in range(columns)]


@dataclass(frozen=True)
class Predicted:
    """Moments, or the probability of each class.

    `quantile` and `interval` give one of every row and output, for a probability.

    `further` are the columns that the runner has beside: epistemic (rows, outputs) or (rows,), and
    novelty (rows,).
    """

    mean: Values
    std: Values | None = None  # None for classes
    quantile: Callable[[float], Values] | None = None
    interval: Callable[[float], tuple[Values, Values]] | None = None
    further: Mapping[str, Values] = field(default_factory=dict)


class Runner(Protocol):
    """Something that predicts rows of numbers and codes."""

    @property
    def name(self) -> str:
        """What it computes with, in words."""

    def run(self, X: Values) -> tuple[Predicted, Statuses]:
        """Predict rows, and say what is the matter with each.

        A row that is MISSING a value or holds infinity gets numbers that mean nothing.
        """


# --------------------------------------------------------------------------------------------------
# Prediction columns of some rows, and their summary
# --------------------------------------------------------------------------------------------------

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

    known: ModelSchema
    wanted: OutputColumns
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
