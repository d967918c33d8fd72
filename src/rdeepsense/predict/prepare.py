"""Preparation of a plan: which columns a model has, and whether C or torch computes them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense.deploy.c.build import CompiledRunner, compiled, processor
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.options import LabelledRows
from rdeepsense.deploy.status import export_refusal
from rdeepsense.distributions import AnyDistribution, Categorical, Mixture
from rdeepsense.errors import InputError
from rdeepsense.estimators.loading import Estimator, load
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.predict import plan
from rdeepsense.predict.columns import (
    EPISTEMIC,
    NOVELTY,
    REJECT,
    ModelSchema,
    OutputColumns,
    Predicted,
    Runner,
    Values,
    tails,
)
from rdeepsense.predict.plan import CRunner, Library, Plan, Preparation
from rdeepsense.status import Status, Statuses

# --------------------------------------------------------------------------------------------------
# Prediction of many rows by torch
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TorchRunner:
    """A model, how many passes it shall make, and further columns that it shall give."""

    model: Estimator
    samples: int | None = None
    further: tuple[str, ...] = ()
    name: str = "torch"

    @property
    def fitted(self) -> Fitted:
        """The fitted model behind the estimator."""
        return self.model.fitted_

    def run(self, X: Values) -> tuple[Predicted, Statuses]:
        """Predict by the fitted model itself; zeros stand for rows that it would refuse."""
        status, infinite = self.fitted.flags(X), np.isinf(X).any(1)
        if self.fitted.guard is None:
            status = status | infinite * np.uint8(Status.OUT_OF_RANGE.value)
            if self.fitted.inputs.missing == "refuse":
                status |= np.isnan(X).any(1) * np.uint8(Status.MISSING.value)
        refused = (status & Status.MISSING.value != 0) | infinite
        if refused.any():
            X = np.where(refused[:, None], np.zeros((), X.dtype), X)
        dist = self.model.predict_rows(X, self.samples)
        further = self._further(X, isinstance(dist, Categorical))
        if isinstance(dist, Categorical):
            return Predicted(dist.mean, further=further), status

        def interval(coverage: float) -> tuple[Values, Values]:
            low, high = dist.interval(coverage)
            return _columns(low), _columns(high)

        predicted = Predicted(
            _columns(dist.mean),
            _columns(dist.std),
            lambda level: _columns(dist.quantile(level)),
            interval,
            further,
        )
        return predicted, status

    def _further(self, X: Values, classes: bool) -> dict[str, Values]:
        found: dict[str, Values] = {}
        if EPISTEMIC in self.further and classes:
            found[EPISTEMIC] = self.fitted.mutual_information(X, "laplace")
        elif EPISTEMIC in self.further:
            found[EPISTEMIC] = _columns(self.fitted.epistemic_std(X, "laplace"))
        if NOVELTY in self.further:
            assert self.fitted.novelty is not None
            found[NOVELTY] = self.fitted.novelty.novelty(self.fitted.scaled(X))
        return found


def _columns(values: Values) -> Values:
    """Return (rows, outputs), whatever the shape of the target."""
    return np.asarray(values, np.float64).reshape(len(values), -1)


# --------------------------------------------------------------------------------------------------
# From a model file to a plan: its columns, and the faster runner
# --------------------------------------------------------------------------------------------------

RUNNERS = ("auto", "C", "torch")
TRIED, ROUNDS = 8_192, 7  # rows that the two are timed on
FURTHEST = 1e-5  # stds that C may be from torch


def prepare(preparation: Preparation) -> Plan:
    """Load a model, refuse what it cannot say, and choose what runs it."""
    asked, wanted = preparation.runner, preparation.wanted
    if asked not in RUNNERS:
        raise InputError(f"runner = {asked!r} is unknown; accepted: {', '.join(RUNNERS)}")
    digest = str(model_file.read(preparation.model)[0]["sha256"])
    model = load(preparation.model)
    known = known_of(model, wanted)
    library, said, alone = None, "torch", preparation.needs_torch
    if alone is not None:
        said = f"torch: {alone}"
        if asked == "C":
            raise InputError(f"runner = 'C': {alone}")
    elif preparation.may_run_c:
        try:
            library, said = faster_library(model, wanted, asked)
        except InputError as error:
            if asked == "C":
                raise
            said = f"torch: {error}"
    return Plan(preparation.model, digest, wanted, known, library, said)


def known_of(model: Estimator, wanted: OutputColumns) -> ModelSchema:
    """Take from a model what its columns need; refuse columns that it does not have."""
    fitted = model.fitted_
    if len(fitted.inputs.shape) != 1:
        raise InputError("the model reads windows, and a table has rows; use Python")
    classes = fitted.target.classes if fitted.target.is_classes else None
    if wanted.quantiles and classes is not None:
        raise InputError("quantiles = ...: classes have none; p_CLASS is the probability of each")
    if NOVELTY in wanted.further and fitted.novelty is None:
        raise InputError(
            "with = 'novelty': the model has learnt none; model.fit_novelty(X) in Python does, and "
            "save keeps it"
        )
    if EPISTEMIC in wanted.further and (fitted.epistemic is None or fitted.correction is not None):
        raise InputError(
            "with = 'epistemic': the model has no such part; an RDeepSense model has one, unless "
            "it was adapted"
        )
    if REJECT in wanted.further and not len(fitted.kept_rows[1]):
        raise InputError(
            "with = 'reject': the model's file keeps no validation rows to judge by; fit with "
            "--keep-rows"
        )
    accept = wanted.accept if REJECT in wanted.further else None
    conformal = fitted.conformal
    own = conformal is not None and conformal.is_common and wanted.samples is None
    return ModelSchema(
        inputs=fitted.inputs.shape[0],
        outputs=fitted.target.outputs,
        names=fitted.inputs.names,
        targets=fitted.target.names,
        classes=classes,
        encoding=fitted.inputs.encoding,
        guard=fitted.guard,
        reach=conformal.threshold(wanted.coverage, 1)[0] if own and conformal else None,
        refusal=export_refusal(fitted, LabelledRows.of(fitted), accept),
    )


def torch_runner(model: Estimator, wanted: OutputColumns) -> TorchRunner:
    """Run a model as Python does."""
    return TorchRunner(model, wanted.samples, wanted.further)


def runner_of(plan: Plan) -> Runner:
    """Start what a plan says on a machine that may have neither model nor library in memory."""
    model = load(plan.model)
    if plan.library is None:
        return torch_runner(model, plan.wanted)
    return CRunner(_compiled(model.fitted_, plan.wanted), plan.library.factors)


def _compiled(fitted: Fitted, wanted: OutputColumns) -> CompiledRunner:
    """Compile a model, with its novelty."""
    folded = fold_fitted(fitted)
    return compiled(replace(folded, facts=replace(folded.facts, novelty=fitted.compact_novelty)))


def faster_library(
    model: Estimator, wanted: OutputColumns, asked: str
) -> tuple[Library | None, str]:
    """Compile a model and hold it against torch on a few rows; None where torch is faster."""
    fitted = model.fitted_
    made = _compiled(fitted, wanted)
    assert made.library is not None
    levels = {*tails(wanted.coverage), *wanted.quantiles}
    factors = {} if fitted.target.is_classes else {q: _factor(fitted, q) for q in levels}
    c, torch = CRunner(made, factors), torch_runner(model, wanted)
    rows = _rows_to_try(fitted)
    _check_alike(c, torch, rows)
    library = Library(str(made.library), processor(), made.facts, factors)
    if asked == "C":
        return library, "C"
    seconds = {runner.name: _seconds(runner, rows) for runner in (c, torch)}
    times = seconds["torch"] / seconds["C"]
    if times < 1:
        return None, f"torch, {1 / times:.1f} times as fast as C"
    return library, f"C, {times:.1f} times as fast as torch"


def at_the_centre(fitted: Fitted) -> AnyDistribution:
    """Predict one row, the centre of the training rows."""
    scaler = fitted.inputs.scaler
    return fitted.calibrated(scaler.rows_at(np.zeros((1, len(scaler.scale)))))


def _factor(fitted: Fitted, level: float) -> Values:
    """Compute f_q = (quantile_q - mean) / std, of any row."""
    dist = at_the_centre(fitted)
    found: Values = np.asarray((dist.quantile(level) - dist.mean) / dist.std, np.float32)
    return found.reshape(-1)


def _rows_to_try(fitted: Fitted) -> Values:
    """Draw rows as the training rows were scaled, which both runners know what to do with."""
    scaler = fitted.inputs.scaler
    drawn = np.random.default_rng(0).normal(size=(TRIED, len(scaler.scale)))
    rows = scaler.rows_at(drawn)
    return rows if fitted.guard is None else np.asarray(fitted.guard.inside(rows))


def _check_alike(c: Runner, torch: Runner, rows: Values) -> None:
    """Refuse C whose answers are not torch's: the compiler is the user's own."""
    (found, _), (wanted, _) = c.run(rows), torch.run(rows)
    unit = np.ones(1) if wanted.std is None else wanted.std
    apart = float(np.max(np.abs(found.mean - wanted.mean) / unit))
    if found.std is not None and wanted.std is not None:
        apart = max(apart, float(np.max(np.abs(found.std / wanted.std - 1))))
    if not apart <= FURTHEST:
        raise InputError(f"C is {apart:.1g} standard deviations from torch, {FURTHEST:g} at most")


def _seconds(runner: Runner, rows: Values) -> float:
    """Time a runner, the best of some rounds: whatever disturbs one makes it slower.

    By the processor's clock: threads are kept busy by chunks, and other programs do not count.
    """
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        runner.run(rows)
        best = min(best, time.process_time() - start)
    return best


# --------------------------------------------------------------------------------------------------
# Distributions of many rows, by compiled C where it is faster
#
# Of a model that folds, every row's distribution is one and the same standard one, shifted and
# stretched. With Z that of any one row, of mean m and standard deviation s, a row of which C says
# mean and std has
#
#     mean - std m / s + (std / s) Z
# --------------------------------------------------------------------------------------------------


def predict_many(model: Estimator, X: ArrayLike) -> AnyDistribution:
    """Return what `model.predict_dist(X)` does, within 1e-5 stds.

    C runs where `rdeepsense predict` would run it: rows of a table, enough of them to be worth a
    compiler's call, and a model that can be folded.
    """
    rows = model.as_rows(X)
    if len(model.fitted_.inputs.shape) != 1 or len(rows) < plan.WORTH_IT:
        return model.predict_dist(X)
    return _by_c(model, rows) or model.predict_dist(X)


def _by_c(model: Estimator, rows: Values) -> AnyDistribution | None:
    """Predict by C; None where it cannot, or torch is the faster."""
    try:
        library, _ = faster_library(model, OutputColumns(further=()), "auto")
    except InputError:
        return None
    if library is None:
        return None
    predicted, _ = library.runner().run(rows)
    return _classes(model, rows, predicted) if predicted.std is None else _numbers(model, predicted)


def _classes(model: Estimator, rows: Values, predicted: Predicted) -> AnyDistribution:
    probs = np.asarray(predicted.mean, np.float64)
    # A class of probability 0 would be an infinite surprise, which float32 has from e^-104 on.
    faint = (probs < np.finfo(np.float32).tiny).any(1)
    if faint.any():
        probs[faint] = model.predict_rows(rows[faint]).mean
    return Categorical(probs / probs.sum(1, keepdims=True), model.fitted_.target.classes)


def _numbers(model: Estimator, predicted: Predicted) -> AnyDistribution:
    one = at_the_centre(model.fitted_)
    assert not isinstance(one, Categorical | Mixture)
    shape = (len(predicted.mean), *model.fitted_.target.shape)
    mean, std = (np.asarray(v, np.float64).reshape(shape) for v in (predicted.mean, predicted.std))
    scale = std / one.std
    return one.affine(mean - scale * one.mean, scale)
