"""GP: Gaussian processes, the paper's third baseline (section 4.3).

Up to 3,000 rows a regression is conditioned on every row; beyond that, and for classes, on a few
hundred inducing points by stochastic variational inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from numpy.typing import ArrayLike

from rdeepsense.data import checks
from rdeepsense.distributions import AnyDistribution
from rdeepsense.engines import Ray
from rdeepsense.errors import InputError, require
from rdeepsense.estimators.base import Train
from rdeepsense.estimators.network import CalibratedEstimator, Classifier, Regressor
from rdeepsense.fitting.gp_fit import ProcessSpec, fit_process

METHODS = ("auto", "exact", "variational")


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianProcess(CalibratedEstimator):
    """A Gaussian process, which needs the extra `gp`.

    Further parameters are those of `CalibratedEstimator` and `DistributionEstimator`. A row with
    `sample_weight` w counts as w equal observations.

    Parameters
    ----------
    inducing : inducing points of the variational method, at most one per training row.
    steps : steps of learning; None follows the method and the number of rows.
    batch_size, learning_rate : of the variational method; None for 1,024 and 0.05.
    """

    inducing: int = 512
    steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None

    def _distribution(self, X: ArrayLike, samples: int | None) -> AnyDistribution:
        if samples is not None:
            raise InputError(f"samples = {samples!r}: a Gaussian process has no passes to sample")
        return super()._distribution(X, None)

    def _passes(self, samples: int | None) -> None:
        return None

    def _training(self, engine: Ray | None = None) -> Train:
        require("gpytorch", "gp")
        if engine is not None:
            raise InputError(f"engine = {engine}: a Gaussian process is fitted in this process")
        self._check_params()
        spec = ProcessSpec(
            method=type(self).__name__,
            kind=self._kind(),
            inducing=self.inducing,
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            after=self._after(),
            device=self._where(),
            verbose=self.verbose,
        )
        return partial(fit_process, spec)

    def _check_params(self) -> None:
        self._after()
        self._kind()
        checks.check_whole("inducing", self.inducing, 1)
        for name in ("steps", "batch_size"):
            if getattr(self, name) is not None:
                checks.check_whole(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            checks.check_positive("learning_rate", self.learning_rate)

    def _kind(self) -> str:
        """Tell how to condition on the rows."""
        return "variational"


@dataclass(kw_only=True, eq=False, repr=False)
class GPRegressor(Regressor, GaussianProcess):
    """Gaussian process regression; several outputs share one kernel and one factorisation.

    `method` is "exact", "variational", or "auto": exact up to 3,000 training rows;
    ``training_["method"]`` is the one taken. The others are those of `GaussianProcess`.
    """

    method: str = "auto"

    def _kind(self) -> str:
        return checks.check_choice("method", self.method, METHODS)


@dataclass(kw_only=True, eq=False, repr=False)
class GPClassifier(Classifier, GaussianProcess):
    """Variational Gaussian process classification: the softmax of one latent function per class.

    Parameters as for `GaussianProcess`.
    """
