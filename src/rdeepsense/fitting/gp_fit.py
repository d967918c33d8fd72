"""A fit of a Gaussian process, from specification and rows to the fitted model."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from rdeepsense import _torch, calibration
from rdeepsense._progress import progress_for
from rdeepsense.data.checks import Texts
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.fitting.fitted import Fitted, guard_for, inputs_of, keep, score, with_conformal
from rdeepsense.fitting.gp import GP, GPSchedule, Process, learn_classes, learn_exact, learn_sparse
from rdeepsense.fitting.records import LAST_ROWS, TrainingReport
from rdeepsense.fitting.spec import AfterTraining
from rdeepsense.fitting.target import Target, warn_of_columns
from rdeepsense.fitting.trainer import HeldOutPredictions
from rdeepsense.networks import check_table

EXACT_ROWS = 3_000
EXACT_STEPS = 100
BATCH = 1_024
LEARNING_RATE = 0.05


@dataclass(frozen=True)
class ProcessSpec:
    """A fit of a Gaussian process; `kind` is "exact", "variational", or "auto" by the rows."""

    method: str  # the name of the estimator
    kind: str
    inducing: int
    steps: int | None
    batch_size: int | None
    learning_rate: float | None
    after: AfterTraining
    device: torch.device
    verbose: bool

    def kind_for(self, rows: int) -> str:
        """Return "exact" or "variational", for this many rows to train on."""
        if self.kind != "auto":
            return self.kind
        return "exact" if rows <= EXACT_ROWS else "variational"


def fit_process(
    spec: ProcessSpec, rows: FitRows, target: Target, names: Texts | None, missing: str
) -> Fitted:
    """Learn kernel, noise and inducing points; calibrate, and keep what is needed."""
    check_table(rows.network_shape)
    part = rows.train
    kind = spec.kind_for(len(part))
    scaler = Scaler.of_table(rows.X, part.index, part.weight, rows.encoding)
    target_scaler = target.scaler(rows.y, part, None if target.is_classes else "standard")
    warn_of_columns(rows, scaler, names, target, target_scaler, heavy_tailed=False)
    process, training = _learn(
        spec, kind, rows, target=target, scaler=scaler, target_scaler=target_scaler
    )
    held = rows.validation
    X, y = rows.held_out
    dist = target.in_units(process.predict(X, scaler, spec.device), target_scaler)
    held_out = HeldOutPredictions(dist, X, y, held.relative_weight)
    fitted_calibration = None
    if spec.after.calibration is not None:
        fitted_calibration = calibration.fit(spec.after.calibration, dist, y, held.relative_weight)
    inputs = inputs_of(rows, names, missing, scaler)
    fitted = Fitted(
        method=spec.method,
        inputs=inputs,
        target=target,
        target_scaler=target_scaler,
        model=process,
        calibration=fitted_calibration,
        training=replace(training, constant_inputs=inputs.constant),
        selection=None,
        scores=score(held_out, fitted_calibration),
        kept_rows=keep(held_out, spec.after, rows.seed, rows.encoding),
        guard=guard_for(rows, target, target_scaler),
    )
    return with_conformal(fitted, rows, spec.device)


def _learn(
    spec: ProcessSpec,
    kind: str,
    rows: FitRows,
    target: Target,
    scaler: Scaler,
    target_scaler: Scaler | None,
) -> tuple[Process, TrainingReport]:
    device, part = spec.device, rows.train
    x = scaler.gather(rows.X, part.index, torch.float64).to(device)
    weight = torch.from_numpy(part.weight).to(x)
    progress = progress_for(spec.verbose)
    schedule = GPSchedule(
        steps=spec.steps or _steps(kind, len(part)),
        batch_size=spec.batch_size or BATCH,
        learning_rate=spec.learning_rate or LEARNING_RATE,
        inducing=spec.inducing,
        seed=rows.seed,
        progress=progress,
    )
    if spec.verbose and sys.stderr.isatty():
        print(f"Gaussian process: {kind}, {len(part)} rows", file=sys.stderr)
    began = time.perf_counter()
    progress.start(f"{kind} GP", schedule.steps, 0)
    y = rows.y[part.index]
    model: GP
    record: dict[str, Any]
    try:
        with _torch.drawing(rows.seed, device):
            if target_scaler is None:
                labels = torch.from_numpy(y).to(x.device)
                model, record = learn_classes(x, labels, weight, target.outputs, schedule)
            else:
                scaled = target_scaler.transform(y.reshape(len(y), -1), torch.float64).to(x)
                learn = learn_exact if kind == "exact" else learn_sparse
                model, record = learn(x, scaled, weight, schedule)
    finally:
        progress.close()
    gp = model.to(torch.device("cpu"))
    details = {
        "method": kind,
        **record,
        "seconds": time.perf_counter() - began,
        "lengths": gp.lengths.tolist(),
        "scale": float(gp.scale),
        "noise": float(gp.noise),
    }
    validated = "validation rows" if rows.split_off else "validation rows given"
    if rows.in_time:
        validated = LAST_ROWS
    report = TrainingReport(rows.seed, len(part), len(rows.validation), validated, details)
    return Process(gp, kind, target.outputs if target.is_classes else None), report


def _steps(kind: str, rows: int) -> int:
    """Return the most steps: 100 of L-BFGS, or five epochs of mini-batches, 500 to 1,000."""
    if kind == "exact":
        return EXACT_STEPS
    return int(np.clip(5 * rows // BATCH, 500, 1_000))
