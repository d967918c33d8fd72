"""The target of a fit: its scale, and warnings about columns that a network cannot use."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from rdeepsense.arrays import Booleans, Floats, Integers, about
from rdeepsense.data import checks
from rdeepsense.data.checks import Given, Texts, of_target, texts
from rdeepsense.data.columns import LABELS, as_numpy
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import ColumnWarning, InputError
from rdeepsense.fitting.records import Json
from rdeepsense.heads import Scaling
from rdeepsense.modelfile.schema import labels_of

# --------------------------------------------------------------------------------------------------
# Targets: encoding of y and conversion back to its units
# --------------------------------------------------------------------------------------------------

Encoded = NDArray[Any]  # float64 numbers, or int64 class numbers


@dataclass(frozen=True)
class RegressionTarget:
    """One or several numbers per row; `shape` is () for a 1-D y."""

    shape: tuple[int, ...]
    names: Texts | None = None
    units: Texts | None = None
    is_classes: ClassVar[bool] = False
    calibration: ClassVar[str] = "scale"
    classes: ClassVar[None] = None

    @classmethod
    def of(cls, y: ArrayLike, rows: int, weight: Floats | None) -> tuple[Self, Encoded]:
        """Check the targets of a fit; returns what they are and their encoded values."""
        targets = checks.check_targets(y, rows)
        checks.check_not_constant(targets)
        checks.check_size(targets, of_target(y))
        return cls(targets.shape[1:]), targets

    def encode(self, y: ArrayLike, rows: int) -> Encoded:
        """Check further targets of the same kind."""
        targets = checks.check_targets(y, rows)
        if targets.shape[1:] != self.shape:
            raise InputError(
                f"y has outputs of shape {targets.shape[1:]}, the model was fitted on {self.shape}"
            )
        return targets

    @property
    def outputs(self) -> int:
        return int(np.prod(self.shape))

    def scaler(self, y: Encoded, part: Part, scaling: Scaling | None) -> Scaler | None:
        """Fit the scale on which a head sees these rows."""
        kind = Scaler.robust if scaling == "robust" else Scaler.standard
        return kind(y.reshape(len(y), -1), part.index, part.weight, TARGETS)

    def in_units(self, dist: AnyDistribution, scaler: Scaler | None) -> AnyDistribution:
        """Bring a distribution (rows, outputs) from the network's scale to units and shape."""
        assert scaler is not None
        assert not isinstance(dist, Categorical)
        dist = dist.affine(scaler.shift, scaler.scale)
        return dist[:, 0] if self.shape == () else dist

    def variance_in_units(self, variance: Floats, scaler: Scaler | None) -> Floats:
        """Bring variances (rows, outputs) from the network's scale to units and shape."""
        assert scaler is not None
        scaled: Floats = variance * scaler.scale**2
        return scaled[:, 0] if self.shape == () else scaled

    def described(self, names: Given | None, units: Given | None) -> Self:
        """Return the target with other names and units, where they are given."""
        named = self.names if names is None else texts("target_names", names, self.outputs)
        kept = self.units
        if units is not None:
            kept = texts("target_units", units, self.outputs, named)
        return type(self)(self.shape, named, kept)

    def to_json(self) -> Json:
        return {"shape": list(self.shape)}


@dataclass(frozen=True)
class ClassTarget:
    """One of several classes per row; labels may be numbers or strings."""

    classes: NDArray[Any] = field(compare=False)
    names: Texts | None = None
    shape: ClassVar[tuple[int, ...]] = ()
    units: ClassVar[None] = None
    is_classes: ClassVar[bool] = True
    calibration: ClassVar[str] = "temperature"

    @classmethod
    def of(cls, y: ArrayLike, rows: int, weight: Floats | None) -> tuple[Self, Encoded]:
        """Check the labels of a fit; returns the classes and the number of each row's."""
        labels = _labels(y, rows)
        present = np.unique(labels if weight is None else labels[weight > 0])
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present[0].item()!r}); a classifier needs two "
                "classes or more"
            )
        found = cls(np.unique(labels))
        return found, found._numbers(labels)

    def encode(self, y: ArrayLike, rows: int) -> Encoded:
        """Return the class numbers of further labels; an unknown class is refused."""
        labels = _labels(y, rows)
        unknown = sorted(set(np.unique(labels).tolist()) - set(self.classes.tolist()))
        if unknown:
            raise InputError(f"y holds the class {unknown[0]!r}, which the model was not fitted on")
        return self._numbers(labels)

    def _numbers(self, labels: NDArray[Any]) -> Integers:
        return np.searchsorted(self.classes, labels).astype(np.int64)

    @property
    def outputs(self) -> int:
        return len(self.classes)

    def scaler(self, y: Encoded, part: Part, scaling: Scaling | None) -> Scaler | None:
        """Return None: classes have no scale."""
        return None

    def in_units(self, dist: AnyDistribution, scaler: Scaler | None) -> AnyDistribution:
        """Return the distribution as it is."""
        return dist

    def variance_in_units(self, variance: Floats, scaler: Scaler | None) -> Floats:
        """Return the variances as they are: those of logits."""
        return variance

    def described(self, names: Given | None, units: Given | None) -> Self:
        """Return the target with another name, where one is given; classes have no unit."""
        if units is not None:
            raise InputError("target_units are for regression; classes have no unit")
        named = self.names if names is None else texts("target_names", names, 1)
        return type(self)(self.classes, named)

    def to_json(self) -> Json:
        return {"dtype": self.classes.dtype.str, "classes": self.classes.tolist()}


Target = RegressionTarget | ClassTarget


def target_from_json(value: Json) -> Target:
    """Return the target that a model file describes."""
    if "shape" in value:
        return RegressionTarget(tuple(value["shape"]))
    classes = labels_of(value["classes"], value["dtype"])
    if len(classes) < 2 or not np.array_equal(np.sort(classes), classes):
        raise InputError("target.classes are not two labels or more, in order")
    return ClassTarget(classes)


def _labels(y: ArrayLike | None, rows: int) -> NDArray[Any]:
    if y is None:
        raise InputError(
            "requires y to be passed, but the target y is None: fit(X, y) needs the labels"
        )
    labels: NDArray[Any] = column_or_1d(as_numpy("y", y, LABELS), warn=True)
    try:
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise InputError(f"y holds no labels: {error}") from error
    checks.check_length("y", len(labels), rows)
    return np.asarray(labels)


# --------------------------------------------------------------------------------------------------
# Warnings about columns with extreme values
# --------------------------------------------------------------------------------------------------

SMALL, LARGE = 1e-30, 1e30  # float32 ends at 1e-38 and 3e38
FAR = 100  # inter-quartile ranges that a standard deviation may be
UNIQUE = 0.5  # levels of a row: a category with more is a name of the row
LISTED = 5  # columns that are named
SOME = 10_000  # rows, or times of windows, that tell the inter-quartile range
RESCALE = (
    "single precision, in which devices compute, ends at 1e-38 and 3e38: multiply the values by a "
    "constant"
)
MEND_INPUT = "the others look alike to the model: mend or clip them, or take logarithms"
MEND_TARGET = (
    'the Gaussian follows them: mend them, or fit with likelihood="student" or likelihood="auto"'
)


def warn_of_columns(
    rows: FitRows,
    inputs: Scaler,
    names: Sequence[str] | None,
    target: Target,
    targets: Scaler | None,
    heavy_tailed: bool,
) -> None:
    """Name the columns that a user should look at; `heavy_tailed` heads stand targets far out."""
    said = [str(k) if names is None else repr(names[k]) for k in range(rows.X.shape[-1])]
    X = rows.X
    if rows.encoding is not None:  # levels and flags are as they are
        _warn_of_levels(rows, said)
        numbers = list(rows.encoding.numbers)
        X, said = X[:: max(1, len(X) // SOME)][:, numbers], [said[k] for k in numbers]
        flat = tuple(k for k, column in enumerate(numbers) if column in inputs.flat)
        inputs = Scaler(inputs.shift[: len(numbers)], inputs.scale[: len(numbers)], flat)
    if X.shape[-1]:
        _warn("X", said, X, inputs, std=inputs.scale, mend=MEND_INPUT)
    if targets is None:
        return
    y = rows.y.reshape(len(rows.y), -1)
    held = rows.y_val.reshape(len(rows.y_val), -1)
    said = [str(k) for k in range(y.shape[1])]
    if target.names is not None:
        said = [repr(name) for name in target.names]
    # Rows far out among those that validate are seen by the calibration.
    std = np.maximum(targets.scale, np.maximum(_std(y), _std(held)))
    _warn("y", said, y, targets, std=std, mend=None if heavy_tailed else MEND_TARGET)


def _warn_of_levels(rows: FitRows, said: Sequence[str]) -> None:
    """Name the categories that tell single rows apart."""
    assert rows.encoding is not None
    found = [c for c in rows.encoding.categories if len(c.levels) > UNIQUE * len(rows.X)]
    chosen = np.isin(np.arange(len(said)), [c.column for c in found])
    if found:
        warnings.warn(
            f"{_listed('X', said, chosen)[1]}: {len(found[0].levels):,} levels in {len(rows.X):,} "
            "rows, so that most are of one row alone and teach nothing: leave it out",
            ColumnWarning,
            stacklevel=2,
        )


def _warn(
    what: str,
    said: Sequence[str],
    values: NDArray[Any],
    scaler: Scaler,
    std: Floats,
    mend: str | None,
) -> None:
    some = values[:: max(1, values.size // values.shape[-1] // SOME)]
    some = np.where(np.isnan(some), scaler.shift, some).reshape(-1, values.shape[-1])
    size = np.abs(some).max(axis=0)
    varies = np.ones(len(said), dtype=bool)
    varies[list(scaler.flat)] = False
    extreme = varies & ((scaler.scale < SMALL) | (np.maximum(scaler.scale, size) > LARGE))
    low, high = np.quantile(some, (0.25, 0.75), axis=0)
    far = varies & ~extreme & (high > low) & (std / FAR > high - low)
    lost = ~varies & (np.ptp(some, axis=0) > 0)
    if lost.any() and values.dtype == np.float32:
        k, columns = _listed(what, said, lost)
        warnings.warn(
            f"{columns}: float32 does not tell the values apart, which are "
            f"{about(scaler.shift[k], np.std(some[:, k], dtype=np.float64))}, so they count as "
            "constant: give float64",
            ColumnWarning,
            stacklevel=2,
        )
    if extreme.any():
        k, columns = _listed(what, said, extreme)
        warnings.warn(
            f"{columns}: the standard deviation is {scaler.scale[k]:.3g}, and {RESCALE}",
            ColumnWarning,
            stacklevel=2,
        )
    if far.any() and mend is not None:
        k, columns = _listed(what, said, far)
        warnings.warn(
            f"{columns}: the standard deviation is {std[k]:.3g}, while half of the rows are within "
            f"{high[k] - low[k]:.3g}; a few are far out, and {mend}",
            ColumnWarning,
            stacklevel=2,
        )


def _listed(what: str, said: Sequence[str], chosen: Booleans) -> tuple[int, str]:
    """Return the first of some columns, and the names of all."""
    numbers = np.flatnonzero(chosen).tolist()
    named = ", ".join(said[k] for k in numbers[:LISTED])
    more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
    return numbers[0], f"{what}, column{'s' * (len(numbers) > 1)} {named}{more}"


def _std(values: NDArray[Any]) -> Floats:
    """Return the standard deviation of columns, whatever their size."""
    index = np.arange(len(values))
    return Scaler.standard(values, index, np.ones(len(values)), 0.0).scale
