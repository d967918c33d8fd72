"""GP: Gaussian processes, the paper's third rival (section 4.3).

Up to `EXACT_ROWS` rows a regression is conditioned on every row; beyond that, and for classes, on a
few hundred inducing points by stochastic variational inference.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.data import checks
from rdeepsense.data.rows import Data
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian, concatenate
from rdeepsense.errors import InputError, ModelFileError, require
from rdeepsense.estimators.base import DistributionEstimator, Judged
from rdeepsense.fitting import store as model_io
from rdeepsense.fitting.gp_models import GP, ExactGP, SparseGP
from rdeepsense.fitting.gp_training import Plan, learn_classes, learn_exact, learn_sparse
from rdeepsense.fitting.passes import choose_device
from rdeepsense.fitting.target import ClassTargets, RegressionTargets
from rdeepsense.progress import progress_for

METHODS = ("auto", "exact", "variational")
EXACT_ROWS = 3_000
EXACT_STEPS = 100
BATCH = 1_024
LEARNING_RATE = 0.05
CHUNK = 1_024  # rows predicted at a time: with 3,000 training rows, 25 MB of covariances
LATENT_DRAWS = 64
MODELS: dict[str, type[GP]] = {"exact": ExactGP, "variational": SparseGP}


class GaussianProcess(DistributionEstimator):
    """What the regressor and the classifier share.

    Parameters
    ----------
    inducing : inducing points of the variational method, at most one per training row.
    calibrate : fit one scale (for classes: a temperature) on validation rows, as all methods do.
    steps : steps of learning; None follows the method and the number of rows.
    batch_size, learning_rate : of the variational method; None for 1,024 and 0.05.
    missing : "refuse" or "mean", what to do with NaN in X.
    keep_rows : how many validation rows the model keeps, in its file as well.
    device : "auto", "cpu", "cuda".
    random_state : seed of the split, the inducing points and the batches.
    verbose : show the method taken and the progress on a terminal.

    A row with `sample_weight` w counts as w equal observations. Needs the extra `gp`.
    """

    def __init__(
        self,
        inducing: int = 512,
        calibrate: bool | str = True,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        missing: str = "refuse",
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        self.inducing = inducing
        self.calibrate = calibrate
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.missing = missing
        self.keep_rows = keep_rows
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def predict_dist(self, X: Any, samples: int | None = None) -> Any:
        """The predictive distribution of each row; there are no passes, so `samples` is refused."""
        if samples is not None:
            raise InputError(f"samples = {samples!r}: a Gaussian process has no passes to sample")
        return super().predict_dist(X)

    def _check_options(self) -> None:
        require("gpytorch", "gp")
        super()._check_options()
        checks.check_whole("inducing", self.inducing, 1)
        for name in ("steps", "batch_size"):
            if getattr(self, name) is not None:
                checks.check_whole(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            checks.check_positive("learning_rate", self.learning_rate)
        choose_device(self.device)

    def _learn(self, data: Data) -> Judged:
        device, part = choose_device(self.device), data.train
        self.method_ = self._method(len(part))
        self.input_scaler_ = Scaler.standard(data.X, part.index, part.weight)
        self.target_scaler_ = self._target_scaler(data.y, part, "gaussian")
        x = self.input_scaler_.gather(data.X, part.index, torch.float64).to(device)
        weight = torch.from_numpy(part.weight).to(x)
        progress = progress_for(self.verbose)
        plan = Plan(
            steps=self.steps or _steps(self.method_, len(part)),
            batch_size=self.batch_size or BATCH,
            learning_rate=self.learning_rate or LEARNING_RATE,
            inducing=self.inducing,
            seed=data.seed,
            progress=progress,
        )
        if self.verbose and sys.stderr.isatty():
            print(f"Gaussian process: {self.method_}, {len(part)} rows", file=sys.stderr)
        began = time.perf_counter()
        progress.start(f"{self.method_} GP", plan.steps, 0)
        try:
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                torch.manual_seed(data.seed)
                model, record = self._learn_gp(x, data.y[part.index], weight, plan)
        finally:
            progress.close()
        self.gp_ = model.to(torch.device("cpu"))
        self.selection_ = None
        self.training_ = {
            "seed": data.seed,
            "rows": len(part),
            "validation_rows": len(data.validation),
            "validated": "validation rows" if data.split_off else "validation rows given",
            "method": self.method_,
            **record,
            "seconds": time.perf_counter() - began,
            "lengths": self.gp_.lengths.tolist(),
            "scale": float(self.gp_.scale),
            "noise": float(self.gp_.noise),
        }
        held = data.validation
        X, y = data.X_val[held.index], data.y_val[held.index]
        return Judged(self._predict(X, None), X, y, held.uneven)

    def _predict(self, X: NDArray[Any], samples: int | None) -> AnyDistribution:
        device = choose_device(self.device)
        model, parts = self.gp_.to(device), []
        with torch.no_grad():
            for start in range(0, len(X), CHUNK):
                x = self.input_scaler_.transform(X[start : start + CHUNK], torch.float64)
                mean, var = (t.cpu() for t in model.predict(x.to(device)))
                parts.append(self._distribution(mean, var))
        dist: AnyDistribution = self._in_units(concatenate(parts), self.target_scaler_)
        return dist

    def _describe_learnt(self, header: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Add the fitted process to what a model file holds."""
        header["method"] = self.method_
        tensors |= {f"gp.{name}": value.numpy() for name, value in self.gp_.arrays().items()}

    def _restore_learnt(
        self, header: dict[str, Any], tensors: dict[str, Any], network: Any
    ) -> None:
        if network is not None:
            raise InputError("a Gaussian process has no network; leave out network=")
        self.method_ = header["method"]
        if self.method_ not in MODELS:
            raise ModelFileError(f"the file's method {self.method_!r} is unknown here")
        arrays = model_io.under("gp.", tensors)
        self.gp_ = MODELS[self.method_].restored(
            {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        )

    # -- what a target says ---------------------------------------------------------------------

    def _method(self, rows: int) -> str:
        return "variational"

    def _learn_gp(
        self, x: torch.Tensor, y: NDArray[Any], weight: torch.Tensor, plan: Plan
    ) -> tuple[GP, dict[str, Any]]:
        raise NotImplementedError

    def _distribution(self, mean: torch.Tensor, var: torch.Tensor) -> AnyDistribution:
        raise NotImplementedError


class GPRegressor(RegressionTargets, GaussianProcess):
    """Gaussian process regression; several outputs share one kernel and one factorisation.

    `method` is "exact", "variational", or "auto": exact up to 3,000 training rows. `method_` is
    the one taken. The others are those of `GaussianProcess`.
    """

    def __init__(
        self,
        method: str = "auto",
        inducing: int = 512,
        calibrate: bool | str = True,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        missing: str = "refuse",
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        super().__init__(
            inducing=inducing,
            calibrate=calibrate,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            missing=missing,
            keep_rows=keep_rows,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.method = method

    def _check_options(self) -> None:
        super()._check_options()
        checks.check_choice("method", self.method, METHODS)

    def _method(self, rows: int) -> str:
        if self.method != "auto":
            return self.method
        return "exact" if rows <= EXACT_ROWS else "variational"

    def _learn_gp(
        self, x: torch.Tensor, y: NDArray[Any], weight: torch.Tensor, plan: Plan
    ) -> tuple[GP, dict[str, Any]]:
        assert self.target_scaler_ is not None
        target = self.target_scaler_.transform(y.reshape(len(y), -1), torch.float64).to(x)
        learn = learn_exact if self.method_ == "exact" else learn_sparse
        return learn(x, target, weight, plan)

    def _distribution(self, mean: torch.Tensor, var: torch.Tensor) -> Gaussian:
        return Gaussian(mean.numpy(), var.sqrt().expand_as(mean).numpy())


class GPClassifier(ClassTargets, GaussianProcess):
    """Variational Gaussian process classification: the softmax of one latent function per class.

    The probabilities are the mean of the softmax over fixed draws of the latent values, the same
    for every row, so that predictions repeat. Parameters as for `GaussianProcess`.
    """

    def _learn_gp(
        self, x: torch.Tensor, y: NDArray[Any], weight: torch.Tensor, plan: Plan
    ) -> tuple[GP, dict[str, Any]]:
        labels = torch.from_numpy(y).to(x.device)
        return learn_classes(x, labels, weight, self._outputs(), plan)

    def _distribution(self, mean: torch.Tensor, var: torch.Tensor) -> Categorical:
        half = np.random.default_rng(0).standard_normal((LATENT_DRAWS // 2, 1, self._outputs()))
        draws = torch.from_numpy(np.concatenate([half, -half]))  # pairs have the right mean
        return Categorical((mean + var.sqrt() * draws).softmax(-1).mean(0).numpy())


def _steps(method: str, rows: int) -> int:
    """L-BFGS is done long before its limit; of mini-batches, five epochs within 500 to 1,000."""
    if method == "exact":
        return EXACT_STEPS
    return int(np.clip(5 * rows // BATCH, 500, 1_000))
