"""A fit of networks from rows to a fitted model, with what groups add to it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense import calibration
from rdeepsense.arrays import Floats, Integers
from rdeepsense.calibration import Calibration
from rdeepsense.calibration.decisions import Streams, fit_smoothing
from rdeepsense.data.checks import Texts, check_precision
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Engine, Ray
from rdeepsense.errors import InputError
from rdeepsense.fitting.adaptation import Stream, group_streams, rates_of
from rdeepsense.fitting.adaptation import prior_of as group_prior_of
from rdeepsense.fitting.cluster import JointTrainer
from rdeepsense.fitting.epistemic import EpistemicPart, laplace_of, unlike_of
from rdeepsense.fitting.few_rows import freedom
from rdeepsense.fitting.fitted import (
    Fitted,
    Networks,
    guard_for,
    inputs_of,
    keep,
    score,
    with_conformal,
)
from rdeepsense.fitting.ladder import FEW_ROWS, check_budget, need_of
from rdeepsense.fitting.passes import Forward, LastHidden, last_hidden
from rdeepsense.fitting.search import choose
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows, StreamTrainer
from rdeepsense.fitting.target import Target, warn_of_columns
from rdeepsense.fitting.trainer import (
    HeldOutPredictions,
    LeftOut,
    LeftOutFold,
    TrainedModel,
    Trainer,
    fold_weights,
)
from rdeepsense.guard import Guard
from rdeepsense.heads import head_named
from rdeepsense.windowing.stream import Smoothing, prior_of

# --------------------------------------------------------------------------------------------------
# Held-out groups as streams of a new group
# --------------------------------------------------------------------------------------------------


class HiddenRows(Protocol):
    """A network, the rows that it was trained on, and what it says of groups hidden from it."""

    @property
    def network(self) -> StochasticNetwork: ...
    @property
    def trained_on(self) -> Part: ...
    @property
    def dist(self) -> AnyDistribution:
        """Of the hidden rows, in units, uncalibrated."""

    @property
    def X(self) -> NDArray[Any]: ...  # noqa: N802, the name of rows everywhere
    @property
    def y(self) -> NDArray[Any]: ...
    @property
    def group(self) -> NDArray[Any]: ...


def left_out_streams(
    folds: Iterable[HiddenRows],
    forward: Forward,
    X: NDArray[Any],
    calibration: Calibration | None,
    unit: Floats | None,
) -> list[Stream]:
    """Replay every group through the network that left it out, calibrated as the model is.

    X is the table that `trained_on` counts rows of; `unit` the targets' scale, None for classes.
    """
    streams: list[Stream] = []
    for fold in folds:
        matrix = laplace_of(fold.network, forward, X, fold.trained_on)
        layer = LastHidden.of(fold.network, matrix)
        phi = last_hidden(fold.network, forward, fold.X, layer.projection)
        dist = fold.dist if calibration is None else calibration.apply(fold.dist)
        rows = float(fold.trained_on.weight.sum())
        streams += group_streams(layer, rows, phi, dist=dist, y=fold.y, group=fold.group, unit=unit)
    return streams


# --------------------------------------------------------------------------------------------------
# Smoothing of decisions, fitted on held-out groups
#
# Windows of a log stand in the order of time within their recording. Each group was predicted by a
# network that did not see it, so its recordings are streams of a new person, with the truth.
# --------------------------------------------------------------------------------------------------


def smoothing_for(
    rows: FitRows, left_out: LeftOut | None, calibration: Calibration | None, guard: Guard
) -> Smoothing | None:
    """Fit the smoothing of classes; None where rows are no windows, or no group was left out."""
    if rows.recipe is None or rows.runs is None or left_out is None:
        return None
    dist = left_out.dist
    if not dist.is_categorical:
        return None
    told = dist if calibration is None else calibration.apply(dist)
    assert isinstance(told, Categorical)
    index = np.concatenate([fold.hidden.index for fold in left_out.folds])
    order = np.argsort(index)
    run = np.empty(len(rows.X), np.int64)
    for number, own in enumerate(rows.runs):
        run[own] = number
    streams = Streams(
        told.probs[order],
        np.ones(len(index), np.bool_),
        left_out.joined("y")[order].astype(np.int64),
        unbroken(index[order], run),
        prior_of(guard.fallback, told.probs.shape[1]),
    )
    return fit_smoothing(streams, rows.recipe)


def unbroken(index: Integers, run: Integers) -> list[slice]:
    """Return where rows of a table, in its order, follow each other within one run of it."""
    follows = (np.diff(index) == 1) & (run[index[1:]] == run[index[:-1]])
    ends = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(index)]
    return [slice(a, b) for a, b in pairwise(ends)]


# --------------------------------------------------------------------------------------------------
# Cross-validation of the chosen candidate over groups, in one bank
#
# Rows held out at random make intervals honest for rows of known groups. For a new one, the winner
# is trained once more as K = min(groups, 8) networks side by side (3 in a quick fit of DeepSense),
# each without a K-th of the groups (`fold_weights`), and each row is predicted by the network
# that did not see its group. The networks are kept at the step whose NLL on hidden groups is least
# on average, and the model itself is then trained on all groups up to that step. It costs one
# training of K networks and one of one.
#
# Where candidates were already compared by folds of whole groups (few rows), those networks serve.
# --------------------------------------------------------------------------------------------------

FEWEST_GROUPS = 3
MOST_ROWS = 50_000  # that the bank is trained on
STOPPED = "none was left out: the training was stopped before"


def leave_groups_out(trainer: Trainer, trained: TrainedModel) -> TrainedModel:
    """Return the winner, calibrated on groups that were left out, where there are groups."""
    spec, rows = trainer.spec, trainer.rows
    wanted = spec.leaves_groups_out and spec.criterion == "nll" and spec.after.calibration
    if rows.groups is None or not wanted:
        return trained
    if rows.rows.blocks < FEWEST_GROUPS:
        return _noted(trained, f"{rows.rows.blocks} groups are too few to leave some out")
    if trained.by_fold is not None:
        return _calibrated(trainer, trained, rows.rows, *trained.by_fold)
    if trained.training.details["interrupted"] or not trainer.goes_on():
        return _noted(trained, STOPPED)
    part, length = _most(rows.rows, rows.seed), trained.length
    if few := len(part) < len(rows.rows):  # for as many steps
        longer = math.ceil(length.epochs * len(rows.rows) / len(part))
        length = replace(length, epochs=longer)
    count = min(part.blocks, spec.group_folds)
    fold = part.folds(count, rows.seed, rows.labels)
    scaled = trainer.training_rows(part, trained.target_scaler)
    inside, outside = fold_weights(scaled, fold, spec.members, 1, count)
    networks, record, _ = trainer.train([trained.candidate], count, inside, outside, length)
    if not few and not trainer.interrupted:
        at = record.best_step[0]
        last, record, schedule = trainer.train(
            [trained.candidate], 1, scaled, scaled, length, stop_at=at
        )
        told = trainer.report(record, schedule, slice(None), len(part), len(part))
        told = replace(told, validated=f"{count}-fold cross-validation by groups")
        details = {**told.details, "interrupted": trainer.interrupted}
        final = replace(
            trained,
            networks=tuple(last),
            trained_on=part,
            training=replace(told, details=details),
        )
    if trainer.interrupted:
        return _noted(trained, STOPPED, interrupted=True)
    return _calibrated(trainer, trained if few else final, part, fold, tuple(networks))


def _most(part: Part, seed: int) -> Part:
    if len(part) <= MOST_ROWS:
        return part
    return part[np.sort(np.random.default_rng(seed).permutation(len(part))[:MOST_ROWS])]


def _calibrated(
    trainer: Trainer,
    trained: TrainedModel,
    part: Part,
    fold: Integers,
    networks: tuple[StochasticNetwork, ...],
) -> TrainedModel:
    rows, scaler = trainer.rows, trained.target_scaler
    assert rows.groups is not None
    folds = []
    for number, network in enumerate(networks):
        hidden = part[fold == number]
        hidden = hidden[np.argsort(hidden.index)]
        X = rows.X[hidden.index]
        folds.append(
            LeftOutFold(
                network=network,
                trained_on=part[fold != number],
                hidden=hidden,
                dist=trainer.predict([network], X, scaler),
                X=X,
                y=rows.y[hidden.index],
                group=rows.groups[hidden.index],
            )
        )
    forward = Forward(trainer.input_scaler, trainer.spec.device, rows.seed)
    left_out = LeftOut(tuple(folds), forward, scaler)
    X, y = left_out.joined("X"), left_out.joined("y")
    few = trainer.is_of_few_rows
    if trainer.spec.allows_for_few_rows and not trainer.target.is_classes:
        few = few or part.blocks < FEW_ROWS
    free = freedom(part) if few else None
    held_out = HeldOutPredictions(left_out.dist, X, y, left_out.weight, free)
    kind = trainer.spec.after.calibration
    assert kind is not None
    group = left_out.joined("group")
    fitted = calibration.fit(
        kind, held_out.dist, y, weight=held_out.weight, groups=group, freedom=free
    )
    return replace(trained, held_out=held_out, calibration=fitted, left_out=left_out)


def _noted(trained: TrainedModel, why: str, **more: bool) -> TrainedModel:
    details = {**trained.training.details, "groups": why, **more}
    return replace(trained, training=replace(trained.training, details=details))


# --------------------------------------------------------------------------------------------------
# The fit, from specification and rows to a fitted model
# --------------------------------------------------------------------------------------------------


def fit_networks(
    spec: FitSpec, rows: FitRows, target: Target, names: Texts | None, missing: str
) -> Fitted:
    """Train what the specification leaves open and choose; calibrate, and keep what is needed."""
    check_budget(spec, len(rows.rows), rows.network_shape, target.outputs, rows.encoding)
    if not spec.open_architecture:
        spec.architecture.check(rows.network_shape)
    trainer = _trainer_for(spec, rows, target)
    _check_precision(spec, rows, trainer.input_scaler, names)
    with _connected(spec.engine), closing(trainer):
        trained = leave_groups_out(trainer, choose(trainer))
    warn_of_columns(
        rows,
        trainer.input_scaler,
        names,
        target=target,
        targets=trained.target_scaler,
        heavy_tailed=head_named(trained.candidate.likelihood).heavy_tailed,
    )
    forward = Forward(trainer.input_scaler, spec.device, rows.seed)
    epistemic = None
    if spec.laplace:
        epistemic = EpistemicPart.fit(
            trained.networks[0],
            forward,
            rows.X,
            trained_on=trained.trained_on,
            held_out=trained.held_out,
            target=target,
            target_scaler=trained.target_scaler,
            kind=spec.after.calibration,
            left_out=trained.left_out,
        )
    adaptation, rates = None, None
    if epistemic is not None and trained.left_out is not None:
        scaler = trained.target_scaler
        streams = left_out_streams(
            trained.left_out.folds,
            forward,
            rows.X,
            trained.calibration,
            None if scaler is None else scaler.scale,
        )
        adaptation, rates = group_prior_of(streams), rates_of(streams, spec.verbose)
    training = trained.training
    if spec.budget is not None:
        own, shape = trainer.spec.architecture, rows.network_shape
        need = need_of(spec, own, shape, target.outputs, rows.encoding)
        told = {**spec.budget.to_json(), "need": need.to_json()}
        training = replace(training, details={**training.details, "budget": told})
    inputs = inputs_of(rows, names, missing, trainer.input_scaler)
    guard = guard_for(rows, target, trained.target_scaler)
    fitted = Fitted(
        method=spec.method,
        inputs=inputs,
        target=target,
        target_scaler=trained.target_scaler,
        model=Networks(
            trained.networks,
            trained.candidate,
            trainer.spec.architecture,
            spec.input_drop_prob,
            spec.passes,
        ),
        calibration=trained.calibration,
        training=replace(training, constant_inputs=inputs.constant),
        selection=trained.selection,
        scores=score(trained.held_out, trained.calibration),
        kept_rows=keep(trained.held_out, spec.after, rows.seed, rows.encoding),
        epistemic=epistemic,
        guard=guard,
        adaptation=adaptation,
        rates=rates,
        smoothing=smoothing_for(rows, trained.left_out, trained.calibration, guard),
        unlike=unlike_of(rows, trainer.input_scaler),
    )
    return with_conformal(fitted, rows, spec.device)


def _check_precision(spec: FitSpec, rows: FitRows, scaler: Scaler, names: Texts | None) -> None:
    """Refuse validation rows, or a budget of a device, where a column needs float64."""
    check_precision(rows.X_val, scaler, names)
    if spec.budget is not None and (columns := scaler.double_columns):
        k = columns[0]
        raise InputError(
            f"budget = ... is for devices, which compute in float32, and that does not tell the "
            f"values of column {k if names is None else names[k]!r} apart ({scaler.about(k)}); "
            "subtract a constant from it"
        )


def _trainer_for(spec: FitSpec, rows: FitRows, target: Target) -> Trainer:
    if isinstance(rows, ParquetRows):
        kind = StreamTrainer if spec.engine is None else JointTrainer
        return kind(spec, rows, target)
    if spec.engine is not None and not spec.open_architecture:
        raise InputError(
            f"engine = {spec.engine}: has nothing to do, because X is in memory and the network is "
            "given; give the path of Parquet files, or hidden='auto'"
        )
    return Trainer(spec, rows, target)


def _connected(engine: Engine | None) -> AbstractContextManager[object]:
    """Stay connected for the whole fit, which has several things to give out."""
    return engine.connected() if isinstance(engine, Ray) else nullcontext()
