"""What all estimators share: reading of X and y, prediction, evaluation, saving, display."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import nn

from rdeepsense import metrics
from rdeepsense.arrays import Booleans, Floats, RandomState
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data import checks
from rdeepsense.data.check import check
from rdeepsense.data.check_table import Task
from rdeepsense.data.checks import (
    FEWEST_ROWS,
    Texts,
    check_filled,
    check_precision,
    check_values,
    gaps_of,
    resolved_missing,
)
from rdeepsense.data.columns import (
    LABELS,
    Categorical,
    Columns,
    as_numpy,
    check_categorical,
    check_table,
    checked_parts,
    coded,
    columns_of,
    first_columns,
    found_levels,
    further_columns,
    groups_of,
    named_columns,
    unmasked,
)
from rdeepsense.data.findings import CheckReport, Finding
from rdeepsense.data.level_vectors import with_vectors
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.rows import FitRows, Pair, check_one_split, split_rows, with_validation
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution
from rdeepsense.distributions import Categorical as CategoricalDistribution
from rdeepsense.encoding import Encoding
from rdeepsense.engines import Ray
from rdeepsense.errors import ColumnWarning, DataWarning, InputError
from rdeepsense.fitting import store
from rdeepsense.fitting.adaptation import adapt, check_adaptable
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.passes import Passes, choose_device
from rdeepsense.fitting.spec import AfterTraining
from rdeepsense.fitting.target import ClassTarget, RegressionTarget, Target
from rdeepsense.modelfile.tensors import Header, Tensors, tupled
from rdeepsense.networks import Shape
from rdeepsense.plot.curves import binomial_band, reliability
from rdeepsense.status import Statuses
from rdeepsense.uncertainty.novelty import Novelty, bounded, drawn, fit_across_groups
from rdeepsense.windowing import Recipe, Windows, cut
from rdeepsense.windowing.cut import apart
from rdeepsense.windowing.recipe import Table

if TYPE_CHECKING:
    from rdeepsense.reporting.verdict import Evaluation


# --------------------------------------------------------------------------------------------------
# Checks of X: scikit-learn's checks, windows, categories as codes
# --------------------------------------------------------------------------------------------------

EXACT = 2.0**53  # whole numbers below are told apart as float64
SOME, LISTED = 10_000, 5  # rows that are looked at, columns that are named


@dataclass(frozen=True)
class KnownInputs:
    """What the X of a fit was like, and so what later ones must be like."""

    shape: Shape
    missing: str  # "refuse", "mean" or "indicator"
    encoding: Encoding | None = None
    gaps: Booleans | None = None  # columns that lacked values
    scaler: Scaler | None = None  # None in a fit, which has none yet
    dated: tuple[str, ...] = ()  # columns of dates that inputs are made from
    left_out: tuple[Finding, ...] = ()  # columns of dates that are none


def first_inputs(
    estimator: BaseEstimator,
    X: Any,  # Any: an array, or a table of any library
    missing: str,
    categorical: Categorical,
    parts: Sequence[str] = (),
) -> tuple[NDArray[Any], KnownInputs]:
    """Check the X of a fit; the estimator remembers the number of features and their names.

    X is (rows, features) or windows (rows, time, channels), as floats: float32 stays so, the rest
    becomes float64. Categories become codes, for which the encoding has no vectors yet. Of dates
    `parts` become inputs.
    """
    check_table("X", X)
    X = unmasked(X)
    named = () if categorical is None or isinstance(categorical, str) else categorical
    found = first_columns(X, parts, named)
    if parts and (found is None or not (found.dated or found.left_out)):
        raise InputError(f"datetime = {tuple(parts)!r}: no column of X holds dates or times")
    dated: tuple[str, ...] = ()
    left_out: tuple[Finding, ...] = ()
    if found is not None:
        if named:
            places = named_columns(named, Columns.of(X, every=True).names)  # type: ignore[union-attr]
            categorical = [found.places[k] for k in places]
        X, dated = found.columns, found.dated
        left_out = tuple(_left_out(name, why) for name, why in found.left_out.items())
    encoding = _found_encoding(X, categorical)
    array = _checked(estimator, X, None, encoding)
    names = feature_names(estimator)
    resolved = resolved_missing(missing, array)
    check_values(array, resolved, names)
    _warn_of_merged(X, array, names)
    gaps = None if resolved == "refuse" else gaps_of(array)
    if gaps is not None:
        check_filled(array, names)
    if resolved == "indicator" and gaps is not None and gaps.any():
        encoding = Encoding(array.shape[1]) if encoding is None else encoding
        flagged = tuple(k for k in encoding.numbers if gaps[k])
        encoding = replace(encoding, flagged=flagged)
    return array, KnownInputs(
        array.shape[1:], resolved, encoding, gaps, dated=dated, left_out=left_out
    )


def _warn_of_merged(X: ArrayLike, array: NDArray[Any], names: Sequence[str] | None) -> None:
    """Name the columns of whole numbers, some of which are one and the same as a float64."""
    large = np.abs(array[:SOME]).max(0) >= EXACT if array.ndim == 2 else np.zeros(0)
    if not large.any():
        return
    columns = [column for _, column in columns_of(X)] or list(np.asarray(X)[:SOME].T)
    lost = [
        str(k) if names is None else repr(names[k])
        for k in map(int, np.flatnonzero(large))
        if len(set(islice(columns[k], SOME))) > len(set(array[:SOME, k].tolist()))
    ]
    if lost:
        warnings.warn(
            f"X, column{'s' * (len(lost) > 1)} {', '.join(lost[:LISTED])}: some whole numbers "
            "beyond 2**53 are equal as float64; subtract an offset first",
            ColumnWarning,
            stacklevel=2,
        )


def further_inputs(estimator: BaseEstimator, X: ArrayLike, known: KnownInputs) -> NDArray[Any]:
    """Check an X whose rows must be like those of the fit."""
    array = as_floats(estimator, X, known)
    check_values(array, known.missing, feature_names(estimator), known.gaps)
    return array


def feature_names(estimator: BaseEstimator) -> tuple[str, ...] | None:
    """Return the names that the table of the fit brought."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def as_floats(estimator: BaseEstimator, X: ArrayLike, known: KnownInputs) -> NDArray[Any]:
    """Return rows like those of the fit as floats, whatever they are."""
    check_table("X", X)
    X = unmasked(X)
    columns = further_columns(X, feature_names(estimator))
    array = _checked(estimator, X if columns is None else columns, known.shape, known.encoding)
    if known.scaler is not None:
        check_precision(array, known.scaler, feature_names(estimator))
    return array


def _left_out(name: str, why: str) -> Finding:
    """Say that a column of dates is no input."""
    what, _, cure = why.partition("; ")
    return Finding(
        code="dates",
        severity="info",
        message=f"column {name!r} holds {what}, and is left out",
        columns=(name,),
        cure=f"{cure[0].upper()}{cure[1:]}.",
    )


def _found_encoding(X: Any, categorical: Categorical) -> Encoding | None:
    """Find the levels of the columns that are categories; None where there are none."""
    columns = Columns.of(X, every=not (categorical is None or isinstance(categorical, str)))
    chosen = [] if columns is None else columns.chosen(categorical)
    return found_levels(columns, chosen) if columns is not None and chosen else None


def _checked(
    estimator: BaseEstimator, X: Any, shape: Shape | None, encoding: Encoding | None
) -> NDArray[Any]:
    """Return X as floats; `shape` is that of known rows, None in a fit."""
    try:
        return _read(estimator, X, shape, encoding)
    except ValueError as error:  # of scikit-learn, whose words are known
        raise error if isinstance(error, InputError) else InputError(str(error)) from error


def _read(
    estimator: BaseEstimator, X: Any, shape: Shape | None, encoding: Encoding | None
) -> NDArray[Any]:
    options: dict[str, Any] = {
        "dtype": (np.float64, np.float32),
        "ensure_all_finite": False,
        "ensure_min_samples": FEWEST_ROWS if shape is None else 1,
    }
    array: NDArray[Any]
    if isinstance(X, Columns):
        if shape is not None and shape != (len(X.names),):
            raise InputError(
                f"X has {len(X.names)} columns; the model was fitted on rows of shape {shape}"
            )
        array = check_array(coded(X, encoding or Encoding(len(X.names))), **options)
        if shape is None:
            _remember(estimator, X.names)
        return array
    if encoding is not None and encoding.categories:
        columns = Columns.of(X, every=True)
        if columns is not None:
            if not hasattr(X, "shape"):
                X = np.array(X, dtype=object)
            validate_data(estimator, X, reset=shape is None, skip_check_array=True)
            array = check_array(coded(columns, encoding), **options)
            return array
    axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if axes != 3 and (shape is None or len(shape) != 2):
        # It also remembers or compares the number of features and their names.
        array = validate_data(estimator, X, reset=shape is None, **options)
        return array
    array = check_array(X, allow_nd=True, input_name="X", **options)
    if shape is None:
        estimator.n_features_in_ = array.shape[2]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif array.shape[1:] != shape:
        raise InputError(
            f"X has rows of shape {array.shape[1:]}; the model was fitted on rows of shape {shape}"
        )
    return array


def _remember(estimator: BaseEstimator, names: Sequence[str | int]) -> None:
    """Let an estimator know its inputs, as scikit-learn does."""
    estimator.n_features_in_ = len(names)
    if all(isinstance(name, str) for name in names):
        vars(estimator)["feature_names_in_"] = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


# --------------------------------------------------------------------------------------------------
# Display of a fitted model in a notebook
# --------------------------------------------------------------------------------------------------

SIDE = 150  # pixels
LEVELS = np.linspace(0.05, 0.95, 19)
FIGURES = {
    "mae": "mean absolute error",
    "nll": "negative log-likelihood",
    "coverage_90": "values in 90 % intervals",
    "accuracy": "accuracy",
    "ece": "calibration error",
}
FEWEST_ON_CURVE = 20


def fitted_html(fitted: Fitted) -> str:
    """Return figures and curve; both are of validation rows, which had a part in the choices."""
    names = ", ".join(fitted.target.names or ()) or "y"
    training = fitted.training
    lines = [
        ("predicts", escape(names)),
        ("trained on", f"{training.rows:,} rows, {fitted.inputs.shape[-1]:,} inputs"),
        *(
            (FIGURES[key], f"{fitted.scores[key]:.4g}")
            for key in FIGURES
            if key in fitted.scores and np.isfinite(fitted.scores[key])
        ),
    ]
    body = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in lines)
    note = "<small>of validation rows; rdeepsense.report(model, X, y) judges it on others</small>"
    return (
        '<div style="display:flex;gap:1em;align-items:center;flex-wrap:wrap">'
        f"<div><table>{body}</table>{note}</div>{_curve(fitted)}</div>"
    )


def _curve(fitted: Fitted) -> str:
    """Draw stated against observed probabilities of the rows that the model keeps, if any."""
    X, y = fitted.kept_rows
    if len(X) < FEWEST_ON_CURVE:
        return ""
    dist = fitted.distribution(X)
    if isinstance(dist, CategoricalDistribution):
        stated, seen, spread = reliability(dist, np.asarray(y, np.int64))
        low, high = stated - 1.96 * spread, stated + 1.96 * spread
    else:
        stated, seen = metrics.calibration_curve(dist, np.asarray(y).reshape(dist.shape), LEVELS)
        low, high = binomial_band(stated, len(X))
    band = f"{_points(stated, low)} {_points(stated[::-1], high[::-1])}"
    return (
        f'<svg role="img" aria-label="observed against stated probability of {len(X)} validation '
        f'rows" viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" height="{SIDE}">'
        f'<rect width="{SIDE}" height="{SIDE}" fill="none" stroke="currentColor" '
        'stroke-opacity=".3"/>'
        f'<polygon points="{band}" fill="currentColor" fill-opacity=".15"/>'
        f'<path d="M0 {SIDE}L{SIDE} 0" stroke="currentColor" stroke-opacity=".4"/>'
        f'<polyline points="{_points(stated, seen)}" fill="none" stroke="#0072b2" '
        'stroke-width="2"/></svg>'
    )


def _points(x: Floats, y: Floats) -> str:
    across, up = SIDE * np.clip(x, 0, 1), SIDE * (1 - np.clip(y, 0, 1))
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))


# --------------------------------------------------------------------------------------------------
# The base class of all estimators
# --------------------------------------------------------------------------------------------------

Files = str | os.PathLike[str] | ParquetTable
# What `fit` calls once the rows are there: rows, target, names of the inputs, `missing`.
Train = Callable[[FitRows, Target, Texts | None, str], Fitted]

# Arguments that belong to the machine a model was fitted on, or that JSON cannot hold.
NOT_STORED = ("network", "budget", "checkpoint", "device", "verbose")


@dataclass(kw_only=True, eq=False, repr=False)
class DistributionEstimator(BaseEstimator):
    """An estimator whose every prediction is a distribution: parameters, and `fitted_`.

    Parameters
    ----------
    missing : NaN among the inputs. "indicator" replaces it by the column's mean, and a further
        input says so; "mean" does without that input; "refuse" refuses it. "auto" is "indicator" if
        training rows lack values, else "refuse"; of windows and files it is "mean" in place of
        "indicator".
    categorical : inputs that are categories, by name or number. "auto" takes text, yes/no and
        categorical columns of a table, None takes all as numbers.
    datetime : parts of dates that become inputs: "hour", "weekday", "month", "yearday", "year", one
        or several. Columns of dates are left out without it. `predict` and all else take the same
        table as `fit`; an input is named after its column, `time (hour sin)`. Times with a time
        zone are converted to UTC.
    check : whether `fit` looks for faults of a table first (`rdeepsense.check`): it warns of them,
        keeps them in `findings_`, and unless `groups` or `validation` are given it keeps rows
        together that it finds to be of one entity or near-copies.
    keep_rows : how many validation rows the model file may carry, for export; 0 leaves them out.
    device : "auto", "cpu", "cuda" or "cuda:N".
    random_state : seed of everything random; equal seeds give equal bits on one machine.
    verbose : show progress: a bar at a terminal, elsewhere a line now and then after two seconds.
    """

    missing: str = "auto"
    categorical: str | Sequence[str | int] | None = "auto"
    datetime: str | Sequence[str] | None = None
    check: bool = True
    keep_rows: int = 512
    device: str = "auto"
    random_state: RandomState = None
    verbose: bool = True
    fitted_: Fitted = field(init=False)

    target_type: ClassVar[type[RegressionTarget] | type[ClassTarget]]

    def fit(
        self,
        X: ArrayLike | Files,
        y: ArrayLike | str | Sequence[str],
        sample_weight: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        groups: ArrayLike | str | None = None,
        memory: int = 2**30,
        engine: Ray | None = None,
        *,
        time: ArrayLike | None = None,
    ) -> Self:
        """Train on X (rows, features) and y; returns self.

        A part of the rows is held out to choose the best step and the calibration; `groups` (a
        user or record per row) keeps each group on one side, `time` (a number or date per row)
        holds out the last rows in time, `validation=(X, y)` brings rows of your own instead.

        X may be a folder of Parquet files, or one file, with y the name of the target column, or a
        list of names, `groups` the name of a column, and every other column an input. Its rows are
        trained on in shuffled windows, of which the next is read ahead, and take `memory` bytes at
        most (1 GiB), beside what libraries and networks take. Methods that train networks do this.

        With an `engine` (`rdeepsense.Ray`) its workers train on such files together: each reads a
        share of the rows, with `memory` bytes of its own, and takes a part of every batch. One
        worker gives the same model as none, to the bit; several give another draw of it, the same
        for the same number and seed. Networks to choose among are tried by its workers, too, each
        by one; of a table in memory that is all they do.

        Of `rdeepsense.windows` the model keeps the recipe: ``model.windows(log)`` cuts another log
        the same way. Without `groups` or `validation` its groups are the recordings; of fewer than
        five recordings they are stretches of time, and windows that reach from one into the next
        are left out.
        """
        train = self._training(checked_engine(engine))
        if time is not None and isinstance(X, str | os.PathLike | ParquetTable | Windows):
            raise InputError("time is for a table in memory; give groups, or validation")
        if isinstance(X, str | os.PathLike | ParquetTable):
            if self.datetime is not None:
                raise InputError("datetime is for a table in memory; read the table")
            rows, target, missing = self._read(X, y, sample_weight, validation, groups, memory)
        else:
            recipe = X.recipe if isinstance(X, Windows) else None
            if isinstance(X, Windows) and groups is None and validation is None:
                groups, sample_weight = _recordings(X, sample_weight)
            rows, target, missing = self._split(X, y, sample_weight, validation, groups, time)
            runs = X.runs if isinstance(X, Windows) else None
            rows = replace(rows, recipe=recipe, runs=runs)
            if recipe is not None:
                self.feature_names_in_ = np.array(recipe.channels, dtype=object)
        self.fitted_ = train(rows, target, feature_names(self), missing)
        if rows.findings:
            training = replace(self.fitted_.training, findings=rows.findings)
            self.fitted_ = replace(self.fitted_, training=training)
        if rows.dated:
            inputs = replace(self.fitted_.inputs, dated=rows.dated)
            self.fitted_ = replace(self.fitted_, inputs=inputs)
        if rows.recipe is not None:
            self.fitted_ = replace(self.fitted_, recipe=rows.recipe)
        return self

    def _split(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
        groups: ArrayLike | None,
        time: ArrayLike | None = None,
    ) -> tuple[FitRows, Target, str]:
        """Check a table in memory, encode its targets, and split its rows."""
        parts = checked_parts(self.datetime)
        table, known = first_inputs(self, X, self.missing, self.categorical, parts)
        for one in known.left_out:
            warnings.warn(f"{one.sentence} {one.cure}", DataWarning, stacklevel=3)
        weight = checks.check_weights(sample_weight, len(table))
        target, encoded = self.target_type.of(y, len(table), weight)
        target = replace(target, names=checks.of_target(y))
        ways = (target.is_classes, self._after().set_aside, self._seed())
        check_one_split(validation, groups, time)
        found = self._found(X, target, encoded, groups, time)
        is_split = validation is not None or time is not None
        if is_split or found.group_categories:
            # Groups would calibrate a model of categories for unknown levels alone. Without, it is
            # right for the levels that it knows, and the status of a row with another says so.
            found = replace(found, groups=None)
        found.warn(stacklevel=3)
        if groups is None:
            groups = found.groups
            if groups is not None and found.kept is not None:
                weight = np.where(found.kept, 1.0 if weight is None else weight, 0.0)
        if validation is None:
            rows = split_rows(table, encoded, weight, groups, *ways, time)
        else:
            pair = self._further_rows("validation", validation, known, target)
            rows = with_validation(table, encoded, weight, pair, *ways)
        if known.encoding is not None:
            classes = target.outputs if target.is_classes else None
            rows = with_vectors(rows, known.encoding, classes)
        findings = found.findings + known.left_out
        return replace(rows, findings=findings, dated=known.dated), target, known.missing

    def _found(
        self,
        X: ArrayLike,
        target: Target,
        encoded: NDArray[Any],
        groups: ArrayLike | None,
        time: ArrayLike | None,
    ) -> CheckReport:
        """Check the data, if that is wanted."""
        if not self.check:
            return CheckReport(findings=(), rows=len(encoded), inputs=0, task=None)
        labels = encoded if target.classes is None else target.classes[encoded]
        task: Task = "regression" if target.classes is None else "classification"
        return check(X, labels, groups, time=time, task=task, categorical=self.categorical)

    def _read(
        self,
        source: Files,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
        groups: ArrayLike | None,
        memory: int,
    ) -> tuple[FitRows, Target, str]:
        """Do the same for a table in files, which is read once."""
        raise InputError(
            f"{type(self).__name__} does not train on files ({source!r}); read the table and give "
            "arrays"
        )

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> AnyDistribution:
        """Return the predictive distribution of each row."""
        raise NotImplementedError

    def as_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as the checked numbers and codes that `predict_rows` takes."""
        return self._rows(X)

    def predict_rows(self, rows: NDArray[Any], samples: int | None = None) -> AnyDistribution:
        """Return the predictive distribution of rows that are known to be numbers and codes."""
        if samples is not None:
            checks.check_whole("samples", samples, 1)
        return self.fitted_.distribution(rows, passes=self._passes(samples), device=self._where())

    def evaluate(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Evaluation:
        """Return every metric that applies to labelled rows, and the verdict on them.

        The result is the dictionary that `metrics.evaluate` returns; its ``verdicts`` (of one
        target ``verdict``) say what `rdeepsense evaluate` does: the skill and the calibration.
        `y` is as for `fit`: values in the target's own units, or labels. `groups` (the user or
        recording of each row) and `time` serve the verdict: its errors are between them.
        """
        # Late: judging belongs to a higher layer, and needs more than predictions do.
        from rdeepsense.reporting.verdict import evaluated

        rows = self.as_rows(X)
        return evaluated(self.fitted_, self.predict_dist(X), rows, y, groups, time)

    def conformalise(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        new_groups: bool = False,
    ) -> Self:
        """Set thresholds for conformal prediction on rows that nothing was fitted or chosen on.

        `fit` with ``calibrate="conformal"`` does this with a fifth of its rows. With `groups` (a
        kind of device, say) each label gets its own thresholds and guarantee. With `new_groups` too
        (people, say, none of whom was trained on) the guarantee is for a row of a further group;
        K groups promise a coverage of K / (K + 1) at most, and beyond it intervals are infinite.
        `fit` with groups does this with whole groups: a fifth of them, and nine, the fewest for a
        coverage of 0.9, where that is half of them at most.
        """
        if new_groups and groups is None:
            raise InputError("new_groups = True needs groups=, the group of each row")
        dist = self.predict_dist(X)
        truth = self.fitted_.target.encode(y, len(dist))
        own = None if groups is None else as_numpy("groups", groups, LABELS)
        self.fitted_ = replace(self.fitted_, conformal=Conformal.fit(dist, truth, own, new_groups))
        return self

    def adapt(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Return a model for one person or sensor, from a few labelled rows of theirs.

        The last layer learns on in closed form, in milliseconds; this model stays as it is. `y` is
        as for `fit`. Numbers: the mean is shifted, and the variance shrinks as labels come in.
        Classes: the most probable weights, those that were trained the prior. How far either may
        go was chosen on groups that were left out, where `fit` had `groups`; without, the trained
        weights count as 200 rows, and the variance stays.

        Labels that contradict everything do bounded harm: the module `adaptation.corrections` has
        the bounds. No rows give the model itself. To adapt an adapted model is to go on.
        `save` keeps what was learnt. Thresholds of conformal prediction are left out;
        `conformalise` finds new ones.
        """
        check_is_fitted(self)
        check_adaptable(self.fitted_)
        if np.shape(X)[:1] == np.shape(y)[:1] == (0,):
            return self
        rows, labels = self._further_rows("adapt", (X, y), self._known(), self.fitted_.target)
        adapted = copy.copy(self)
        adapted.fitted_ = adapt(self.fitted_, rows, labels, self._where())
        return adapted

    def windows(self, log: Table, truth: bool = True) -> Windows:
        """Cut a log as the windows of the fit were cut; without `truth` it needs no labels."""
        check_is_fitted(self)
        recipe = self.fitted_.recipe
        if recipe is None:
            raise InputError(
                "the model was not fitted on windows of a log; cut windows as those of its fit were"
            )
        return cut(recipe if truth else recipe.without_label(), log)

    def describe(
        self,
        target_names: Sequence[str] | None = None,
        target_units: Sequence[str] | Mapping[str, str] | None = None,
        feature_units: Sequence[str] | Mapping[str, str] | None = None,
    ) -> Self:
        """Name the targets, and the units of targets and inputs; returns self.

        The texts travel in the model file and in every export. Each argument is a list with one
        text for each target or input (of windows, each channel); units may be a dictionary by name,
        where inputs are called as in `feature_names_in_`. Targets have names already where y came
        with them. `fit` forgets the units.
        """
        check_is_fitted(self)
        self.fitted_ = self.fitted_.described(target_names, target_units, feature_units)
        return self

    def fit_novelty(
        self,
        X: ArrayLike,
        held_out: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn what inputs are like, from the rows that were trained on; returns self.

        `novelty` needs it. `status` then flags rows by these rows, no longer by those of `fit`.

        `held_out` are other rows of the kind that will be met later (other users, say), with no
        fault in them. Without them a fifth of X is held out at random. With `groups` (the user of
        each row) all rows are learnt from, and 5 % above 0.95 is 5 % of a new group's rows: each
        group is held out of a density of the others, and all count alike. No row is kept.
        """
        rows = self._rows(X)
        if groups is not None:
            if held_out is not None:
                raise InputError("give held_out or groups, not both: groups are held out in turn")
            labels = groups_of(groups, len(rows))
            some = drawn(len(rows))
            found = fit_across_groups(self.fitted_.scaled(rows[some]), labels[some])
            self.fitted_ = self.fitted_.with_novelty(found, rows[some], groups=labels[some])
            return self
        others = None if held_out is None else self._rows(held_out)
        known, judges = bounded(rows, others)
        found = Novelty.fit(self.fitted_.scaled(known), self.fitted_.scaled(judges))
        self.fitted_ = self.fitted_.with_novelty(found, known, judges)
        return self

    def novelty(self, X: ArrayLike) -> Floats:
        """Return how unlike the known rows each row is: the share of held-out rows less so.

        Above 0.95 is a row that is stranger than 95 % of them; see `uncertainty.novelty` for the
        formula. It needs `fit_novelty`, is a score of the inputs alone, and is kept by `save`.
        """
        check_is_fitted(self)
        if self.fitted_.novelty is None:
            raise InputError("novelty needs fit_novelty(X), X the rows that were trained on")
        return self.fitted_.novelty.novelty(self.fitted_.scaled(self._rows(X)))

    def status(self, X: ArrayLike) -> Statuses:
        """Return what is the matter with each row, as numbers of `rdeepsense.Status`; 0 is nothing.

        OUT_OF_RANGE is an input beyond what was trained on, UNKNOWN_LEVEL a category that was
        never seen, MISSING a NaN that was not trained for: rows that `predict` refuses have a
        status, too. The std of a flagged row is at least that of
        the training targets, and its class probabilities are half the training frequencies. The
        network reads the end of the range in place of an input beyond it.

        A row is UNLIKE whose inputs together are stranger than 99 % of rows that were held out, of
        groups that were left out where there were groups. Its std grows with its distance, from its
        own to that of the training targets, and its class probabilities go towards half the
        training frequencies. `fit` learns a density of the inputs for that, `fit_novelty` one of
        other rows. Fewer than 60 rows have none, nor have Gaussian processes, tables of more than
        160 numbers (of more than 32, unless there are 20 rows for each), windows of more than 32
        channels, and columns that float32 does not tell apart. An export flags and
        widens the same rows with ``novelty=True``, except for ONNX, and no rows otherwise. UNSURE
        is a reject option's: `rdeepsense.RejectOption.status`.
        """
        return self.fitted_.flags(self._any_rows(X))

    def answerable(self, X: ArrayLike) -> Booleans:
        """Tell which rows `predict` takes: it refuses infinity, and NaN that it cannot fill in."""
        rows, known = self._any_rows(X), self._known()
        return checks.accepted_rows(rows, known.missing, known.gaps)

    def flagged_inputs(self, X: ArrayLike) -> Booleans:
        """Tell which inputs of each row, (rows, inputs), its status is for."""
        return self.fitted_.beyond(self._any_rows(X))

    def __sklearn_tags__(self) -> Any:  # Any: scikit-learn's own, which has no types
        tags = super().__sklearn_tags__()
        fitted = getattr(self, "fitted_", None)
        tags.input_tags.allow_nan = (
            self.missing != "refuse" if fitted is None else fitted.inputs.missing != "refuse"
        )
        return tags

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Show in a notebook what scikit-learn does, and below it what was fitted."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        fitted = getattr(self, "fitted_", None)
        if fitted is not None and "text/html" in bundle:
            bundle["text/html"] += fitted_html(fitted)
        return bundle

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file, whole or not at all."""
        check_is_fitted(self)
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in NOT_STORED}
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = None  # a generator; the seed drawn from it is in the record
        store.save(self.fitted_, params, path)

    def restore(self, header: Header, tensors: Tensors, network: nn.Module | None) -> None:
        """Take on the arguments and the fitted model that a file holds."""
        if ("classes" in header["target"]) != self.target_type.is_classes:
            raise InputError(f"target does not fit a {type(self).__name__}")
        self._take_params({k: tupled(v) for k, v in header["params"].items()})
        self.fitted_ = store.restore(header, tensors, self._passes(None), network)
        self.n_features_in_ = header["features"]
        if self.fitted_.inputs.names is not None:
            self.feature_names_in_ = np.array(self.fitted_.inputs.names, dtype=object)

    def _take_params(self, params: dict[str, Any]) -> None:
        """Take on arguments that `fit` would accept."""
        try:
            self.set_params(**params)
            if self.random_state is not None:
                check_random_state(self.random_state)
            self._check_params()
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise InputError(f"params cannot be used: {error!s:.300}") from error

    @property
    def recipe_(self) -> Recipe | None:
        """How the model's windows are cut from a log; None where they came as an array."""
        return self.fitted_.recipe

    @property
    def training_(self) -> dict[str, Any]:  # Any: whatever JSON holds
        """How the model was trained, as its file has it."""
        return self.fitted_.training.to_json()

    @property
    def findings_(self) -> tuple[Finding, ...]:
        """What the check of the training data found (`rdeepsense.check`)."""
        return self.fitted_.training.findings

    @property
    def selection_(self) -> dict[str, Any] | None:
        """The candidates among which the model was chosen, as its file has them."""
        selection = self.fitted_.selection
        return None if selection is None else selection.to_json()

    @property
    def validation_scores_(self) -> dict[str, float]:
        """The figures of the held-out rows."""
        return dict(self.fitted_.scores)

    # -- of the parameters ----------------------------------------------------------------------

    def _training(self, engine: Ray | None = None) -> Train:
        """Check the parameters; returns what trains on rows as they say, with an engine's help."""
        raise NotImplementedError

    def _check_params(self) -> None:
        """Refuse parameters as `fit` does."""
        self._training()

    def _passes(self, samples: int | None) -> Passes | None:
        """Return the passes that `samples` asks for; None for a method without passes."""
        raise NotImplementedError

    def _calibration(self) -> str | None:
        """Return the name of the calibration to fit."""
        raise NotImplementedError

    def _sets_aside(self) -> bool:
        """Tell whether rows are kept for conformal prediction."""
        return False

    def _after(self) -> AfterTraining:
        checks.check_choice("missing", self.missing, checks.MISSING)
        check_categorical(self.categorical)
        checked_parts(self.datetime)
        if not isinstance(self.check, bool):
            raise InputError(f"check = {self.check!r}; accepted: True, False")
        checks.check_whole("keep_rows", self.keep_rows, 0)
        return AfterTraining(self._calibration(), self._sets_aside(), self.keep_rows)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    # -- of the fitted model ----------------------------------------------------------------------

    def _rows(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return further_inputs(self, X, self._known())

    def _any_rows(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return as_floats(self, X, self._known())

    def _known(self) -> KnownInputs:
        inputs, guard = self.fitted_.inputs, self.fitted_.guard
        gaps = None if guard is None else guard.missing > 0
        return KnownInputs(inputs.shape, inputs.missing, inputs.encoding, gaps, inputs.scaler)

    def _further_rows(
        self,
        name: str,
        pair: tuple[ArrayLike, ArrayLike],
        known: KnownInputs,
        target: Target,
    ) -> Pair:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"{name} must be a pair (X, y)")
        X = further_inputs(self, pair[0], known)
        return X, target.encode(pair[1], len(X))

    def _distribution(self, X: ArrayLike, samples: int | None) -> AnyDistribution:
        check_is_fitted(self)
        return self.predict_rows(self._rows(X), samples)

    def _thresholds(self, coverage: float, rows: int, groups: ArrayLike | None) -> Floats:
        if self.fitted_.conformal is None:
            raise InputError(
                'conformal prediction needs rows set aside: fit with calibrate="conformal", or '
                "give some to conformalise(X, y)"
            )
        return self.fitted_.conformal.threshold(coverage, rows, groups)

    def _where(self) -> torch.device:
        return choose_device(self.device)


def _recordings(
    windows: Windows, sample_weight: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike | None]:
    """Return groups whose windows share no sample, and weights of 0 where that takes it."""
    groups, kept, _ = apart(windows)
    if kept.all():
        return groups, sample_weight
    weight = checks.check_weights(sample_weight, len(windows))
    return groups, np.where(kept, 1.0 if weight is None else weight, 0.0)


def checked_engine(engine: object) -> Ray | None:
    """Refuse what is no engine."""
    if engine is None or isinstance(engine, Ray):
        return engine
    raise InputError(f"engine is a {type(engine).__name__}; accepted: None, rdeepsense.Ray(...)")


def fitted_model(model: DistributionEstimator) -> Fitted:
    """Return what a fitted estimator holds; refuse anything else."""
    if not isinstance(model, DistributionEstimator):
        raise InputError(f"model is a {type(model).__name__}; accepted: an estimator")
    check_is_fitted(model)
    return model.fitted_
