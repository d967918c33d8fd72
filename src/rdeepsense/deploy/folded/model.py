"""A folded dense model: facts, layers, output and link, evaluated with numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.columns import Columns, further_columns, objects_of
from rdeepsense.encoding import MISSING_TYPES, Encoding
from rdeepsense.errors import InputError, nearest
from rdeepsense.guard import EMBEDDING_REACH, REACH, Guard
from rdeepsense.link import Link, LocationWidth, Softmax, evaluate
from rdeepsense.refusal import Refusal, unanswerable
from rdeepsense.status import Status, Statuses
from rdeepsense.windowing.recipe import Recipe, seconds
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# Facts about a deployed model: names, units, classes, intervals
# --------------------------------------------------------------------------------------------------

Texts = tuple[str, ...]
LISTED = 20


@dataclass(frozen=True)
class Intervals:
    """The central interval of each coverage: from mean + low std to mean + high std.

    `low` and `high` are (coverages, outputs). `conformal`, where fitted, is the reach of
    mean +- conformal std; infinite where too few rows were set aside.
    """

    coverages: Floats
    low: Floats
    high: Floats
    conformal: Floats | None = None

    def row(self, coverage: float) -> int:
        """Return the place of a coverage, or say which are stored."""
        at = np.flatnonzero(np.isclose(self.coverages, coverage, rtol=0, atol=1e-9))
        if not len(at):
            accepted = ", ".join(f"{c:g}" for c in self.coverages)
            raise InputError(f"coverage = {coverage!r} is not stored here; stored: {accepted}")
        return int(at[0])


@dataclass(frozen=True)
class Facts:
    """What goes in, what comes out, and where the model came from."""

    inputs: int
    outputs: int  # targets, or classes
    head: str = ""  # its public name, for reports
    features: Texts | None = None
    feature_units: Texts | None = None  # a text may be empty
    targets: Texts | None = None  # what the outputs are called; of classes the one they belong to
    target_units: Texts | None = None
    classes: NDArray[Any] | None = None  # labels of a classifier: numbers or texts
    missing: str = "refuse"
    one_output: bool = False  # a 1-D target, so 1-D predictions
    calibration: str | None = None
    intervals: Intervals | None = None  # None for classes
    guard: Guard | None = None  # None for models of before there was one
    encoding: Encoding | None = None  # of categories and flags; None where all are plain numbers
    version: str = ""  # of rdeepsense, when the model was trained
    source: str = ""  # digest of the model
    window: tuple[int, ...] = ()  # axes of a row before that of the inputs: the times of a window
    recipe: Recipe | None = None  # how windows are cut from a log; None where nobody said
    smoothing: Smoothing | None = None  # of decisions in a stream, for classes
    refusal: Refusal | None = None  # None where no reject option was exported
    novelty: CompactNovelty | None = None
    dated: Texts = ()  # the columns of dates that inputs are made from, see `data.columns`
    double: tuple[int, ...] = ()  # columns whose values float32 does not tell apart

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def streamed(self, smoothing: Smoothing | None, hop: str | float | None) -> Facts:
        """Return them for a stream with another smoothing, or another hop between its windows.

        A smoothing that is given is for that hop; the model's own is made to fit it.
        """
        if smoothing is not None and self.smoothing is None:
            raise InputError(
                "smoothing= is for classes of windows that rdeepsense.windows(...) cut; this model "
                "has no such decisions"
            )
        recipe, own = self.recipe, smoothing or self.smoothing
        if hop is not None:
            if recipe is None:
                raise InputError(
                    f"hop={hop!r} is for models of windows that rdeepsense.windows(...) cut"
                )
            apart = seconds("hop", hop)
            if own is not None and smoothing is None:
                own = own.spaced(apart / recipe.hop)
            recipe = replace(recipe, hop=apart)
        return replace(self, recipe=recipe, smoothing=own)

    def inside(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows as networks read them: numbers out of range are moved to its end."""
        return X if self.guard is None else self.guard.inside(X)

    def numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the inputs of rows that are no categories."""
        if self.encoding is None or not self.encoding.categories:
            return X
        return X[:, list(self.encoding.numbers)]

    def floats(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as (rows, inputs) floats, whatever they are; levels by name become codes.

        Columns of a table are taken by their names, in any order, and inputs that the model makes
        of dates are made of theirs.
        """
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        columns = None if self.window else further_columns(X, self.features)
        X = self._by_name(X) if columns is None else self._of_columns(columns)
        try:
            if self.encoding is not None and self.encoding.categories:
                X = self._coded(np.asarray(X, dtype=object), self.encoding)
            rows: NDArray[Any] = np.asarray(X)
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must hold numbers; {error}") from error
        if rows.ndim < 2 or rows.shape[1:] != (*self.window, self.inputs):
            accepted = ", ".join(map(str, (*self.window, self.inputs)))
            raise InputError(f"X has shape {rows.shape}; the model takes (rows, {accepted})")
        if self.double and rows.dtype == np.float32:
            name = repr(self._name(self.double[0]))
            raise InputError(
                f"X is float32, which cannot tell the values of column {name} apart; give float64"
            )
        return rows

    def check(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as floats, (rows, inputs) or windows; refuse what the model cannot take."""
        rows = self.floats(X)
        self.refuse(rows)
        return rows

    def unanswerable(self, rows: NDArray[Any]) -> Booleans:
        """Tell which numbers the model cannot take: infinite ones, and NaN that it does not."""
        gaps = None if self.guard is None else self.guard.missing > 0
        return unanswerable(rows, self.missing, gaps)

    def refuse(self, rows: NDArray[Any]) -> None:
        """Refuse numbers that the model cannot take."""
        bad = self.unanswerable(rows)
        if bad.any():
            row, *times, column = (int(k) for k in np.argwhere(bad)[0])
            name = repr(self._name(column)) if self.features else str(column)
            at = "".join(f", time {time}" for time in times)
            value = rows[(row, *times, column)]
            raise InputError(f"X holds {value} in row {row}{at}, column {name}")

    def _by_name(self, X: Any) -> Any:  # Any: an array, or a table of pandas, polars or pyarrow
        """Return a table's columns in the order of the inputs; an array as it is."""
        if self.features is None or self.window:
            return X
        names = getattr(X, "column_names", getattr(X, "columns", None))
        if names is None or not all(isinstance(name, str) for name in names):
            return X
        given, wanted = list(names), list(self.features)
        if given == wanted:
            return X
        strange = [name for name in given if name not in set(wanted)]
        missing = [name for name in wanted if name not in set(given)]
        if missing or strange or len(given) != len(wanted):
            said = [f"lacks {one!r}{nearest(one, strange)}" for one in missing[:1]]
            said += [f"has {one!r}, which is no input" for one in strange[:1]]
            raise InputError(
                f"X {' and '.join(said) or 'has a column twice'}; the inputs are "
                f"{', '.join(wanted[:LISTED])}"
            )
        return X.select(wanted) if hasattr(X, "select") else X[wanted]

    def _of_columns(self, columns: Columns) -> NDArray[Any]:
        """Return a table of numbers and the names of levels as an array."""
        coded = () if self.encoding is None else self.encoding.categories
        categories = {category.column for category in coded}
        rows = np.empty((columns.rows, len(columns.values)), dtype=object)
        for k, values in enumerate(columns.values):
            rows[:, k] = objects_of(values) if k in categories else columns.numbers(k)
        return rows if categories else rows.astype(np.float64)

    def _coded(self, table: NDArray[Any], encoding: Encoding) -> NDArray[Any]:
        if table.ndim != 2 or table.shape[1] != self.inputs:
            return table  # is refused by its shape
        codes = encoding.encode(
            lambda k: table[:, k].tolist(), lambda k: f"X, column {self._name(k)!r},"
        )
        rows = np.empty(table.shape)
        rows[:, [category.column for category in encoding.categories]] = codes
        for k in encoding.numbers:
            missing = [type(value).__name__ in MISSING_TYPES for value in table[:, k]]
            rows[:, k] = np.where(missing, np.nan, table[:, k]).astype(np.float64)
        return rows

    def _name(self, column: int) -> str | int:
        return self.features[column] if self.features else column


# --------------------------------------------------------------------------------------------------
# The interface of runners: numpy, C through ctypes, ONNX Runtime
# --------------------------------------------------------------------------------------------------

Values = NDArray[Any]  # float64, or float32 where a runner computes in that


class MeanStd(NamedTuple):
    """Mean and std of each row and output, and the epistemic part of the std where it is known."""

    mean: Values
    std: Values
    epistemic: Values | None = None
    status: Statuses | None = None  # None where the model has no guard

    def stacked(self) -> Values:
        """(2, rows, outputs): means, then stds."""
        return np.stack([self.mean, self.std])


class Probabilities(NamedTuple):
    """The probability of each class, and the epistemic std of each logit where it is known."""

    probs: Values
    epistemic: Values | None = None
    status: Statuses | None = None


Outputs = MeanStd | Probabilities


class Runner(Protocol):
    """Something that predicts rows of raw sensor values."""

    @property
    def facts(self) -> Facts:
        """What a caller must know."""

    def run(self, X: NDArray[Any]) -> Outputs:
        """Predict rows that `facts.check` has let through."""


def apart(wanted: Outputs, found: Outputs) -> Values:
    """Measure how far predictions are: probabilities, or means and stds in wanted stds (2, ...)."""
    if isinstance(wanted, MeanStd):
        assert isinstance(found, MeanStd)
        return np.asarray(np.abs(found.stacked() - wanted.stacked()) / wanted.std)
    assert isinstance(found, Probabilities)
    return np.asarray(np.abs(found.probs - wanted.probs))


# --------------------------------------------------------------------------------------------------
# Links in numpy: from columns of the last layer to location and width
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayArithmetic:
    """The arithmetic of links over arrays (rows, outputs), one for each column of an output."""

    columns: list[Floats]

    def column(self, number: int) -> Floats:
        return self.columns[number]

    def constant(self, value: float) -> Floats:
        return np.asarray(value, dtype=np.float64)

    def apply(self, operation: str, *arguments: Floats) -> Floats:
        return FUNCTIONS[operation](*arguments)


def softplus(v: Floats) -> Floats:
    """Compute log(1 + e^v) without overflow."""
    found: Floats = np.logaddexp(0.0, v)
    return found


FUNCTIONS: dict[str, Callable[..., Floats]] = {
    "add": np.add,
    "multiply": np.multiply,
    "softplus": softplus,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "square": np.square,
}


# --------------------------------------------------------------------------------------------------
# The Laplace approximation of the last layer, in numpy
#
# What the training rows leave open about the last layer (`rdeepsense.uncertainty.laplace`) is one
# matrix and two numbers for each output. With the last hidden layer's numbers h and the scaled
# inputs z = (x - centre) / scale,
#
#     size(x) = |[h, z, 1] root|,   epistemic std = std size
#
#     numbers:  the predicted variance v (of `link.variance`) becomes v + gain size^2
#     classes:  logits with a mean of 0 are divided by sqrt(1 + gain size^2)
#
# `gain` and `std` hold the scale of the target, the calibration and the share of noise in the
# variance head. Networks without a hidden layer have [z, 1], those of very many inputs [h, 1].
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastLayerLaplace:
    """root is square and upper triangular; gain and std have one number for each output."""

    root: Floats
    gain: Floats
    std: Floats


def size(root: NDArray[Any], h: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Compute |[h, z, 1] root| of each row, (rows, 1), in the type of the arrays."""
    hidden = h.shape[1]
    sums = h @ root[:hidden] + root[-1]
    if hidden + 1 < len(root):
        sums += z @ root[hidden:-1]
    found: NDArray[Any] = np.sqrt(np.square(sums).sum(1, keepdims=True))
    return found


def triangular(matrix: Floats) -> Floats:
    """Find the upper triangular root with root root^T = matrix matrix^T: |phi root| = |phi matrix|.

    With the rows in reverse order, matrix^T = Q R makes R^T such a root, lower triangular.
    """
    rows, columns = matrix.shape
    if rows == columns and not np.tril(matrix, -1).any():
        return matrix
    wide = np.pad(matrix[::-1], ((0, 0), (0, max(0, rows - columns))))
    upper: Any = np.linalg.qr(wide.T, mode="r")
    return np.triu(upper.T[::-1, ::-1])


# --------------------------------------------------------------------------------------------------
# Periodic embeddings of standardized inputs, in numpy
#
#     e_j = max(0, W_j [sin, cos](2 pi c_j z_j) + b_j)
#
# z is read up to EMBEDDING_REACH. Files hold the W_j below each other, as theirs is a matrix.
# --------------------------------------------------------------------------------------------------

# Periods per standard deviation: 32 bits hold EMBEDDING_REACH times as many to a sixteenth of one.
FASTEST = 1e4
NUMBERS = 1 << 18  # that are held of a wave at once
SINE_TERMS = 5  # of the polynomial that C computes a sine by, and a cosine


@dataclass(frozen=True)
class Embedding:
    """c (inputs, frequencies), W (inputs width, 2 frequencies) and b (inputs, width)."""

    frequency: Floats
    weight: Floats
    bias: Floats

    @property
    def outputs(self) -> int:
        return self.bias.size

    @property
    def matrices(self) -> Floats:
        """The W_j, (inputs, width, 2 frequencies)."""
        return self.weight.reshape(*self.bias.shape, -1)

    @property
    def multiply_adds(self) -> int:
        """Of one pass: the angles, the polynomials of their sines and cosines, the products."""
        return self.frequency.size * (1 + 2 * SINE_TERMS) + self.weight.size

    def values(self, z: Floats) -> Floats:
        """Compute e (rows, inputs width), a few rows at a time: waves are many numbers."""
        each = max(1, NUMBERS // (2 * self.frequency.size))
        parts = [self._values(z[k : k + each]) for k in range(0, len(z), each)]
        return np.concatenate(parts) if parts else np.empty((0, self.outputs))

    def _values(self, z: Floats) -> Floats:
        near = np.clip(z, -EMBEDDING_REACH, EMBEDDING_REACH)
        angles = 2 * np.pi * near[:, :, None] * self.frequency
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=2)
        sums = np.matmul(waves.transpose(1, 0, 2), self.matrices.transpose(0, 2, 1))
        found: Floats = np.maximum(sums.transpose(1, 0, 2) + self.bias, 0.0).reshape(len(z), -1)
        return found


# --------------------------------------------------------------------------------------------------
# Dense layers with ReLU between them, in numpy
#
#     h_0 = x - centre,   h_i = max(0, W_i h_{i-1} + b_i),   raw = W h + b
#
# h_0 is 0 where x is missing, and at most REACH scales; `Folded` moves x into the guard's ranges
# first. With an `encoding` x is what that makes of categories and missing values. With an embedding
# e (see `embedding`) the first layer reads [h_0, e(h_0 / scale)]. The centre is taken off the
# input, not put into b_1, because x and centre may be far larger than their difference.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DenseLayer:
    """W (outputs, inputs) and b (outputs,)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Layers:
    """A network that takes raw sensor units."""

    centre: Floats
    scale: Floats  # of the training inputs; already inside the first layer
    dense: tuple[DenseLayer, ...]
    embedding: Embedding | None = None
    encoding: Encoding | None = None

    @property
    def inputs(self) -> int:
        """The numbers that are read of a row, once it is encoded."""
        return len(self.centre)

    @property
    def columns(self) -> int:
        """The numbers of a row."""
        return self.inputs if self.encoding is None else self.encoding.inputs

    def rows_at(self, z: Floats) -> Floats:
        """Return rows whose numbers lie so many scales from the centre, levels by turns."""
        rows: Floats = self.centre + z * self.scale
        if self.encoding is None:
            return rows
        return self.encoding.rows_of(rows[:, : len(self.encoding.numbers)])

    @property
    def widths(self) -> tuple[int, ...]:
        """What the first layer reads, hidden layers, columns of the last layer."""
        embedded = 0 if self.embedding is None else self.embedding.outputs
        return (self.inputs + embedded, *(len(layer.bias) for layer in self.dense))

    @property
    def hidden(self) -> int:
        """Width of the last hidden layer; 0 where there is none."""
        return self.widths[-2] if len(self.dense) > 1 else 0

    @property
    def multiply_adds(self) -> int:
        """Of one pass."""
        embedding = 0 if self.embedding is None else self.embedding.multiply_adds
        return sum(layer.weight.size for layer in self.dense) + embedding

    def raw(self, X: NDArray[Any], root: Floats | None = None) -> Floats:
        """Compute the columns of the last layer; with a laplace's root, its size as one more."""
        h = self.read(X)
        centred = h[:, : self.inputs]
        for layer in self.dense[:-1]:
            h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        raw: Floats = h @ self.dense[-1].weight.T + self.dense[-1].bias
        if root is None:
            return raw
        return np.hstack([raw, size(root, h[:, : self.hidden], centred / self.scale)])

    def last_hidden(self, X: NDArray[Any]) -> Floats:
        """Compute what the last layer reads."""
        h = self.read(X)
        for layer in self.dense[:-1]:
            h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        return h

    def read(self, X: NDArray[Any]) -> Floats:
        """Compute what the first layer reads."""
        X = X if self.encoding is None else self.encoding.expand(X)
        far = REACH * self.scale
        centred: Floats = np.clip(np.nan_to_num(X - self.centre), -far, far)
        if self.embedding is None:
            return centred
        return np.hstack([centred, self.embedding.values(centred / self.scale)])


# --------------------------------------------------------------------------------------------------
# From columns of the last layer to predictions in the target's units
#
#     numbers:  std = spread width,   mean = location + shift std
#     classes:  probabilities = softmax(columns)
#
# with location and width as the head's link computes them. `shift` is 0 but for an isotonic
# calibration, whose distribution is not symmetric. With a `laplace` (see `folded.laplace`) std and
# probabilities also hold what the model does not know of a row.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """A link, and the numbers that it leaves to be multiplied and added."""

    link: Link
    spread: Floats | None = None  # None for classes, as is shift
    shift: Floats | None = None
    laplace: LastLayerLaplace | None = None

    def finish(self, raw: NDArray[Any]) -> Outputs:
        """Turn columns into predictions; with a laplace, the last of them is its size."""
        widened, epistemic = None, None
        if self.laplace is not None:
            raw, size = raw[:, :-1], raw[:, -1:]
            widened, epistemic = np.sqrt(self.laplace.gain) * size, self.laplace.std * size
        if isinstance(self.link, Softmax):
            return Probabilities(_softmax(raw, widened), epistemic)
        outputs = raw.shape[1] // self.link.columns
        # Slices and not np.split, which takes as long as a small network.
        columns = [raw[:, k * outputs : (k + 1) * outputs] for k in range(self.link.columns)]
        arithmetic = ArrayArithmetic(columns)
        location = _full(evaluate(self.link.location, arithmetic), columns[0])
        if self.link.width is None:
            return MeanStd(location, np.zeros(location.shape), epistemic)
        width = _full(_width(self.link, arithmetic, widened), columns[0])
        assert self.spread is not None
        assert self.shift is not None
        std = self.spread * width
        return MeanStd(location + self.shift * std, std, epistemic)


def _width(link: LocationWidth, arithmetic: ArrayArithmetic, widened: Floats | None) -> Floats:
    assert link.width is not None
    width = evaluate(link.width, arithmetic)
    return width if widened is None else np.hypot(width, widened)


def _softmax(logits: Floats, widened: Floats | None) -> Floats:
    if widened is not None:
        logits = (logits - logits.mean(axis=1, keepdims=True)) / np.hypot(1.0, widened)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs: Floats = odds / odds.sum(axis=1, keepdims=True)
    return probs


def _full(values: Floats, like: Floats) -> Floats:
    """Repeat what a link that reads no column gives: one number for all rows and outputs."""
    return values if values.shape == like.shape else np.broadcast_to(values, like.shape)


# --------------------------------------------------------------------------------------------------
# Variance that remains after adaptation to a group, row by row
#
#     kept = max(1 - sum_j shares_j (1 - psi_j^T M_j psi_j / psi_j^T psi_j), least)
#
# with psi_j = B_j^T [h, 1], h the last hidden layer's numbers, for a few directions j of the
# outputs.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VarianceReduction:
    """B (directions, hidden + 1, size), lower triangular, and M (directions, size, size)."""

    turned: Floats
    left: Floats
    shares: Floats  # (outputs, directions)
    least: float

    def kept(self, h: Floats) -> Floats:
        """Return what the variance of rows is multiplied by, (rows, outputs)."""
        phi = np.column_stack([h, np.ones(len(h))])
        psi = np.einsum("rf,jfs->rjs", phi, self.turned)
        length = (psi * psi).sum(2)
        open_ = np.einsum("rjs,jst,rjt->rj", psi, self.left, psi)
        ratio = np.divide(open_, length, out=np.ones_like(open_), where=length > 0)
        found: Floats = 1 - (1 - np.clip(ratio, 0.0, 1.0)) @ self.shares.T
        return np.maximum(found, self.least)


# --------------------------------------------------------------------------------------------------
# Effect of guard, reject option and novelty on predictions
#
# The guard widens predictions of rows that it flags, the novelty those of rows that it flags alone,
# the more the further out they are. The reject option leaves predictions as they are. A row that
# `predict` does not take is UNSURE where there is a reject option. A row without a prediction,
# because no value may be missing, is never UNLIKE.
# --------------------------------------------------------------------------------------------------


def guarded(found: Outputs, facts: Facts, X: NDArray[Any], factor: float = 1.0) -> Outputs:
    """Add the status of rows X, and widen the predictions of those that are flagged.

    The `factor` is of the stds of rows that the guard does not flag.
    """
    if facts.guard is not None:
        found = _widened(found, facts.guard, X)
    status = np.zeros(len(X), np.uint8) if found.status is None else found.status
    if factor != 1.0 and isinstance(found, MeanStd):
        found = found._replace(std=np.where(status[:, None] > 0, found.std, factor * found.std))
    if facts.novelty is not None:
        found = _doubted(found, facts, status, X)
    if facts.refusal is not None:
        status = np.zeros(len(X), np.uint8) if found.status is None else found.status
        found = found._replace(status=status | _unsure(found, facts, X))
    return found


def _widened(found: Outputs, guard: Guard, X: NDArray[Any]) -> Outputs:
    status = guard.status(X)
    if not status.any():
        return found._replace(status=status)
    if isinstance(found, MeanStd):
        return found._replace(std=guard.widened(found.std, status), status=status)
    return found._replace(probs=guard.mixed(found.probs, status), status=status)


def _doubted(found: Outputs, facts: Facts, status: Statuses, X: NDArray[Any]) -> Outputs:
    """Flag rows that are UNLIKE, of those that the guard does not flag, and widen them."""
    assert facts.novelty is not None
    surprise = facts.novelty.surprise(facts.numbers(X))
    unlike = (surprise > facts.novelty.threshold[0]) & (status == 0)
    if facts.missing == "refuse":
        unlike &= ~np.isnan(X).any(tuple(range(1, X.ndim)))
    if facts.guard is not None and unlike.any():
        doubt = np.where(unlike, facts.novelty.doubt(surprise), 0.0)
        if isinstance(found, MeanStd):
            found = found._replace(std=facts.guard.stretched(found.std, doubt))
        else:
            found = found._replace(probs=facts.guard.blended(found.probs, doubt))
    return found._replace(status=status | unlike * np.uint8(Status.UNLIKE))


def _unsure(found: Outputs, facts: Facts, X: NDArray[Any]) -> Statuses:
    """Return UNSURE of each row that the reject option refuses."""
    assert facts.refusal is not None
    predicted = found.std if isinstance(found, MeanStd) else found.probs
    refused = facts.refusal.refused(predicted, facts.is_classifier)
    refused |= facts.unanswerable(X).any(tuple(range(1, X.ndim)))
    return np.asarray(refused * np.uint8(Status.UNSURE))


# --------------------------------------------------------------------------------------------------
# A folded dense model
#
# Raw sensor units go in. Scaling of inputs and targets, calibration scale and temperature are
# inside the layers and the output, so that real units come out.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Folded:
    """A model that needs nothing but these numbers; a runner by numpy."""

    facts: Facts
    layers: Layers
    output: Output
    narrowing: VarianceReduction | None = None  # of C alone: no file holds it

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer; with a laplace, its size as one more."""
        laplace = self.output.laplace
        return self.layers.raw(self.facts.inside(X), None if laplace is None else laplace.root)

    def run(self, X: NDArray[Any]) -> Outputs:
        return self.finish(self.raw(X), X)

    def finish(self, raw: Floats, X: NDArray[Any]) -> Outputs:
        """Turn the columns of rows X into predictions, and widen those of rows that are flagged."""
        found = self.output.finish(raw)
        if self.narrowing is not None and isinstance(found, MeanStd):
            kept = self.narrowing.kept(self.layers.last_hidden(self.facts.inside(X)))
            found = found._replace(std=found.std * np.sqrt(kept))
        return guarded(found, self.facts, X)
