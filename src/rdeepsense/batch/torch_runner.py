"""A fitted model as it is, whatever it is, over many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.batch.known import Predicted, Values
from rdeepsense.batch.wanted import EPISTEMIC, NOVELTY
from rdeepsense.distributions import Categorical
from rdeepsense.estimators.loading import Estimator
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.status import Status, Statuses


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
