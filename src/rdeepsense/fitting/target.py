"""Targets, numbers with units or classes: encoded for a fit and brought back afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data import checks
from rdeepsense.data.checks import Given, Texts, of_target, texts
from rdeepsense.data.kinds import LABELS, plain
from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError
from rdeepsense.fitting.records import Json
from rdeepsense.heads import Scaling
from rdeepsense.modelfile.schema import labels_of

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
    labels: NDArray[Any] = column_or_1d(plain("y", y, LABELS), warn=True)
    try:
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise InputError(f"y holds no labels: {error}") from error
    checks.check_length("y", len(labels), rows)
    return np.asarray(labels)
