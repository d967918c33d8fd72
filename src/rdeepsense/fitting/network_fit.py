"""A fit of networks, from specification and rows to the fitted model."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace

from rdeepsense.data.checks import Texts, check_precision
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.engines import Engine, Ray
from rdeepsense.errors import InputError
from rdeepsense.fitting.adaptation import prior_of, rates_of
from rdeepsense.fitting.cluster import JointTrainer
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.fitting.fitted import (
    Fitted,
    Networks,
    guard_for,
    inputs_of,
    keep,
    score,
    with_conformal,
)
from rdeepsense.fitting.groups import leave_groups_out, left_out_streams, smoothing_for
from rdeepsense.fitting.ladder import check_budget, need_of
from rdeepsense.fitting.passes import Forward
from rdeepsense.fitting.search import choose
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows, StreamTrainer
from rdeepsense.fitting.target import Target, warn_of_columns
from rdeepsense.fitting.trainer import Trainer
from rdeepsense.fitting.unlike import unlike_of
from rdeepsense.heads import head_named


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
        target,
        trained.target_scaler,
        head_named(trained.candidate.likelihood).heavy_tailed,
    )
    forward = Forward(trainer.input_scaler, spec.device, rows.seed)
    epistemic = None
    if spec.laplace:
        epistemic = EpistemicPart.fit(
            trained.networks[0],
            forward,
            rows.X,
            trained.trained_on,
            trained.held_out,
            target,
            trained.target_scaler,
            spec.after.calibration,
            trained.left_out,
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
        adaptation, rates = prior_of(streams), rates_of(streams, spec.verbose)
    training = trained.training
    if spec.budget is not None:
        own, shape = trainer.spec.architecture, rows.network_shape
        need = need_of(spec, own, shape, target.outputs, rows.encoding)
        told = {**spec.budget.to_json(), "need": need.to_json()}
        training = replace(training, details={**training.details, "budget": told})
    inputs = inputs_of(rows, names, missing, trainer.input_scaler)
    guard = guard_for(rows, target, trained.target_scaler)
    fitted = Fitted(
        spec.method,
        inputs,
        target,
        trained.target_scaler,
        Networks(
            trained.networks,
            trained.candidate,
            trainer.spec.architecture,
            spec.input_drop_prob,
            spec.passes,
        ),
        trained.calibration,
        replace(training, constant_inputs=inputs.constant),
        trained.selection,
        score(trained.held_out, trained.calibration),
        keep(trained.held_out, spec.after, rows.seed, rows.encoding),
        epistemic,
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
