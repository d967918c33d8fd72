"""Estimators of networks: parameters, `fit`, and the methods of regressors and classifiers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from torch import nn

from rdeepsense import calibration
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data import checks
from rdeepsense.data.check import check_sample
from rdeepsense.data.checks import check_choice
from rdeepsense.data.findings import warn_of
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.rows import FitRows, check_one_split
from rdeepsense.data.stream import split_parquet
from rdeepsense.distributions import AnyDistribution, Categorical, RegressionDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Engine, Ray
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator, Files, KnownInputs, Train
from rdeepsense.fitting.network_fit import fit_networks
from rdeepsense.fitting.records import Candidate
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows
from rdeepsense.fitting.target import ClassTarget, RegressionTarget, Target
from rdeepsense.modelfile.tensors import Header, Tensors
from rdeepsense.networks import Architecture, architecture_of

# --------------------------------------------------------------------------------------------------
# The parameter `calibrate`
# --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class CalibratedEstimator(DistributionEstimator):
    """An estimator whose calibration is an argument.

    Parameters
    ----------
    calibrate : "scale" fits one scale of the predicted std on the validation rows, "isotonic" also
        a map of probabilities, "auto" the map only where a scale does not do, "conformal" a scale
        and thresholds on rows set aside; False nothing. True is "scale", and "auto" where
        likelihood is "auto". Classes have one temperature ("temperature") in place of the scale.
    """

    calibrate: bool | str = True

    def _calibration(self) -> str | None:
        return calibration.kind_of(self.calibrate, self.target_type.calibration)

    def _sets_aside(self) -> bool:
        return self.calibrate == "conformal"


# --------------------------------------------------------------------------------------------------
# The parameter `effort`: what "auto" means for each
# --------------------------------------------------------------------------------------------------

EFFORTS = ("full", "quick")
QUICK: dict[str, Any] = {
    "hidden": (64, 64),
    "drop_prob": 0.05,
    "alpha": 0.5,
    "likelihood": "student",  # one row far out costs a Gaussian tens of nats
}
# A step of DeepSense takes ten times as long as one of dense layers, so a quick fit has fewer.
QUICK_STEPS, QUICK_FOLDS = 300, 3


def widths(hidden: Any) -> Any:  # Any: whatever the argument takes
    """Return one width as a sequence of widths, and anything else as it is."""
    is_one = isinstance(hidden, int | np.integer) and not isinstance(hidden, bool)
    return (int(hidden),) if is_one else hidden


def apply_effort(name: str, value: Any, effort: str) -> Any:  # Any: whatever the argument takes
    """Return an argument as it is, or for a quick fit what its "auto" stands for."""
    check_choice("effort", effort, EFFORTS)
    is_open = isinstance(value, str) and value == "auto"
    return QUICK[name] if is_open and effort == "quick" else value


# --------------------------------------------------------------------------------------------------
# Prediction methods of regressors and classifiers
# --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(MultiOutputMixin, RegressorMixin, DistributionEstimator):
    """A regressor of one or several numbers per row; 1-D y gives 1-D distributions."""

    target_type: ClassVar[type[RegressionTarget]] = RegressionTarget

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> RegressionDistribution:
        """Return the predictive distribution of each row and output."""
        return as_regression(self._distribution(X, samples))

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        quantiles: Sequence[float] | None = None,
    ) -> Floats: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], quantiles: None = None
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Return the predictive mean; with `return_std`, also the standard deviation.

        With `quantiles`, such as ``[0.1, 0.5, 0.9]``, return these instead of the mean, as (rows,
        quantiles), of several outputs (rows, quantiles, outputs).
        """
        if quantiles is not None and return_std:
            raise InputError("give return_std or quantiles, not both")
        dist = self.predict_dist(X)
        if quantiles is None:
            return (dist.mean, dist.std) if return_std else dist.mean
        levels = np.asarray(quantiles)
        if levels.ndim != 1:
            raise InputError(f"quantiles = {quantiles!r:.60}; accepted: a list of numbers")
        found = dist.quantile(levels.reshape(-1, *[1] * len(dist.shape)))
        return np.ascontiguousarray(np.swapaxes(found, 0, 1))

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float = 0.9,
        method: str = "auto",
        groups: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the central interval that should hold the truth with probability `coverage`.

        "predicted" is that of the predictive distribution; "conformal" has a guarantee for
        finite samples, given rows set aside (``calibrate="conformal"`` or `conformalise`). "auto"
        is "conformal" where such rows were set aside.
        """
        checks.check_choice("method", method, ("auto", "predicted", "conformal"))
        dist = self.predict_dist(X)
        conformal = self.fitted_.conformal is not None or groups is not None
        if method == "predicted" or (method == "auto" and not conformal):
            low, high = dist.interval(coverage)
            return np.asarray(low, np.float64), np.asarray(high, np.float64)
        reach = self._thresholds(coverage, len(dist), groups).reshape(-1, *dist.shape[1:])
        return dist.mean - reach * dist.std, dist.mean + reach * dist.std


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, DistributionEstimator):
    """A classifier of rows into two or more classes; labels may be numbers or strings."""

    target_type: ClassVar[type[ClassTarget]] = ClassTarget

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> Categorical:
        """Return the predictive distribution of each row, with the labels as its `classes`."""
        return self._labelled(self._distribution(X, samples))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        dist = self.predict_dist(X)
        labels: NDArray[Any] = self.classes_[dist.mode]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class, in the order of `classes_`."""
        return self.predict_dist(X).mean

    def _labelled(self, dist: AnyDistribution) -> Categorical:
        assert isinstance(dist, Categorical)
        return dist.labelled(self.classes_)

    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, groups: ArrayLike | None = None
    ) -> Booleans:
        """Tell which classes, (rows, classes), a conformal set of this coverage holds."""
        probs = self.predict_proba(X)
        inside: Booleans = 1 - probs <= self._thresholds(coverage, len(probs), groups)
        return inside

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of probabilities."""
        target = self.fitted_.target
        assert isinstance(target, ClassTarget)
        return target.classes


def as_regression(dist: AnyDistribution) -> RegressionDistribution:
    """Narrow the type of a regressor's prediction."""
    assert not isinstance(dist, Categorical)
    return dist


# --------------------------------------------------------------------------------------------------
# Parameters of all methods with networks, and their specification
# --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEstimator(DistributionEstimator):
    """Networks with a distribution head, trained by the one loop.

    Parameters
    ----------
    hidden : widths of the hidden layers; the paper's network is ``(500, 500, 500)``, and 32 is one
        layer. "auto" chooses
        among widths, depths and periodic embeddings of the inputs, by calibrated validation NLL.
    network : one of `rdeepsense.networks`, or a torch network of your own, which is converted on a
        copy and starts from its present weights; its last Linear layer must have one column per
        output.
    epochs, batch_size, learning_rate : None follows the default recipe.
    weight_decay : AdamW's, on weights only. In the paper's sums over N rows,
        lambda = (1 - alpha) lambda_l + alpha lambda_e corresponds to weight_decay = 2 lambda / N.
    max_seconds : begin no further training after so many seconds, and choose among what is trained
        by then; None is as long as it takes.
    checkpoint : a path where the state is saved as training goes on, and taken up again from.
    """

    hidden: Sequence[int] | int | str = (64, 64)
    network: nn.Module | Architecture | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    max_seconds: float | None = None
    checkpoint: str | os.PathLike[str] | None = None

    @property
    def network_(self) -> StochasticNetwork:
        """The trained network; the first one of an ensemble."""
        return self.fitted_.network

    @property
    def candidate_(self) -> Candidate:
        """The head, alpha and drop probability that were fixed or chosen."""
        return self.fitted_.networks.candidate

    def restore(self, header: Header, tensors: Tensors, network: nn.Module | None) -> None:
        super().restore(header, tensors, network)
        architecture, layers = self.fitted_.networks.architecture, self._layers()
        selection = self.fitted_.selection
        if network is not None:
            self.network = network
        elif layers == "auto":
            if selection is None or selection.architectures is None:  # it was given
                self.network = architecture
        elif architecture != architecture_of(layers, None):
            self.network = architecture

    def _training(self, engine: Ray | None = None) -> Train:
        spec = replace(self._spec(), engine=cast("Engine | None", engine))
        for candidate in spec.grid:
            spec.scoring_rule([candidate.alpha])
        return partial(fit_networks, spec)

    def _spec(self) -> FitSpec:
        """Specify what all methods of networks have in common; a method replaces the rest."""
        after = self._after()
        checks.check_positive("weight_decay", self.weight_decay, zero=True)
        for name in ("epochs", "batch_size"):
            if getattr(self, name) is not None:
                checks.check_whole(name, getattr(self, name), 1)
        if self.max_seconds is not None:
            checks.check_positive("max_seconds", self.max_seconds, zero=True)
        if self.learning_rate is not None:
            checks.check_positive("learning_rate", self.learning_rate)
        passes = self._passes(None)
        assert passes is not None
        return FitSpec(
            method=type(self).__name__,
            architecture=architecture_of(self._layers(), self.network),
            open_architecture=self._layers() == "auto" and self.network is None,
            max_seconds=self.max_seconds,
            grid=self._grid(),
            passes=passes,
            after=after,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            checkpoint=self.checkpoint,
            device=self._where(),
            verbose=self.verbose,
        )

    def _layers(self) -> Sequence[int] | str:
        """Return the widths of the hidden layers, or "auto"."""
        layers: Sequence[int] | str = widths(self.hidden)
        return layers

    def _grid(self) -> tuple[Candidate, ...]:
        """Return the heads, alphas and drop probabilities to choose among."""
        raise NotImplementedError

    def _read(
        self,
        source: Files,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
        groups: ArrayLike | None,
        memory: int,
    ) -> tuple[FitRows, Target, str]:
        checks.check_whole("memory", memory, 1)
        if sample_weight is not None:
            raise InputError(
                "sample_weight does not go with files; read the table into memory for it"
            )
        check_one_split(validation, groups)
        table = source if isinstance(source, ParquetTable) else ParquetTable(source)
        split = split_parquet(
            table,
            y,
            groups,
            classes=self.target_type.is_classes,
            missing=self.missing,
            hold_out=validation is None,
            set_aside=self._after().set_aside,
            seed=self._seed(),
            memory=memory,
            verbose=self.verbose,
        )
        inputs = split.columns.inputs
        self.feature_names_in_ = np.array(inputs, dtype=object)
        self.n_features_in_ = len(inputs)
        target, _ = self.target_type.of(split.values, len(split.values), None)
        target = replace(target, names=tuple(split.columns.targets))
        pair = None
        if validation is not None:
            known = KnownInputs((len(inputs),), split.missing)
            pair = self._further_rows("validation", validation, known, target)
        rows = ParquetRows.of(split, target, pair)
        if self.check:
            labels = rows.y if target.classes is None else target.classes[rows.y]
            found = check_sample(rows.X, inputs, labels, target.is_classes)
            warn_of(found, stacklevel=3)
            rows = replace(rows, findings=found)
        return rows, target, split.missing
