"""Abstaining: predictions that are refused where a model is not sure enough (a reject option).

    refuse = RejectOption(target_coverage=0.9).fit(model, X_val, y_val)
    refuse.predict(X)     # masked where refused

Rows are refused by a score, larger where the model is less sure:

    score="predicted"   regression: the predicted standard deviation in the unit of y; of several
                        outputs the mean of std / (standard deviation of that column of y_val);
                        classes: 1 - the probability of the predicted class
    score="epistemic"   regression: the same of `model.epistemic_std(X, method)`;
                        classes: `model.mutual_information(X, method)`
    score="novelty"     `model.novelty(X)`, after `model.fit_novelty`: between 0 and 1

The first refuses rows that are noisy, the second rows whose answer is uncertain, the third rows
unlike those trained on, whatever the answer. `rdeepsense.refusal` compares scores with a threshold,
here as in every exported form: a row is refused unless its score is at most the threshold, so a row
whose score is NaN is refused.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rdeepsense import metrics
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.refusal import class_score, rejected, std_score
from rdeepsense.status import Status, Statuses

SCORES = ("predicted", "epistemic", "novelty")
GOALS = ("threshold", "target_risk", "target_coverage")


class Predictor(Protocol):
    """A fitted model; one of classes predicts their labels."""

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return a number or a label for each row."""

    def predict_dist(self, X: ArrayLike) -> AnyDistribution:
        """Return the predictive distribution of each row."""


class RejectOption(BaseEstimator):
    """A fitted model that refuses the rows it is least sure of; exactly one goal is given.

    After `fit`: `threshold_`, and on the validation rows `coverage_` (the share accepted) and
    `risk_` (of the accepted rows; NaN where there are none).

    Parameters
    ----------
    threshold : accept rows whose score is at most this. NaN is not: such a row is refused.
    target_risk : accept as many rows as possible with a validation risk of at most this. Risk is
        the mean absolute error of the accepted rows, for classes their error rate. This is what
        was found on the validation rows, not a guarantee for others; see `confidence`.
    target_coverage : accept this share of the validation rows, those of the smallest score.
    confidence : with `target_risk` and classes, a guarantee in the manner of Geifman & El-Yaniv
        (2017): with at least this probability over validation rows drawn independently, the error
        rate of accepted rows of the same kind is at most `target_risk`. It needs scores without
        ties and costs coverage.
    score : "predicted", "epistemic" or "novelty" (needs `model.fit_novelty`); see the module.
    method : of the epistemic score, as of `model.epistemic_std` ("laplace", "delta", ...); None is
        the model's own default.
    """

    def __init__(
        self,
        threshold: float | None = None,
        target_risk: float | None = None,
        target_coverage: float | None = None,
        confidence: float | None = None,
        score: str = "predicted",
        method: str | None = None,
    ) -> None:
        self.threshold = threshold
        self.target_risk = target_risk
        self.target_coverage = target_coverage
        self.confidence = confidence
        self.score = score
        self.method = method

    def fit(self, model: Predictor, X_val: ArrayLike, y_val: ArrayLike) -> Self:
        """Find the threshold on rows that the model was not trained on; returns self."""
        self._check_options()
        dist = model.predict_dist(X_val)
        y = np.asarray(y_val)
        if y.shape != dist.shape:
            raise InputError(
                f"y_val has shape {y.shape}, the model's predictions {dist.shape}: equal ones only"
            )
        if self.confidence is not None and not dist.is_categorical:
            raise InputError("confidence is for classes, whose risk is a share of the rows")
        self.model_ = model
        if dist.is_categorical:
            self.spread_ = np.ones(1)
            loss = (model.predict(X_val) != y).astype(float)
        else:
            if not np.isfinite(y.astype(float)).all():
                raise InputError("y_val must be finite")
            self.spread_ = _spread(y)
            loss = np.abs(dist.mean - y).reshape(len(y), -1).mean(axis=1)
        score = self._score(X_val, dist)
        self.threshold_ = self._threshold(score, loss)
        accepted = ~rejected(score, self.threshold_)
        self.coverage_ = float(accepted.mean())
        self.risk_ = float(loss[accepted].mean()) if accepted.any() else float("nan")
        return self

    def uncertainty(self, X: ArrayLike) -> Floats:
        """Return the score of each row, which is compared with `threshold_`.

        It is NaN for a row that `model.predict` does not take: one with an infinite value, or with
        a missing value where the training rows had none.
        """
        check_is_fitted(self)
        if not hasattr(self.model_, "answerable"):
            return self._score(X, None)
        answerable: Booleans = self.model_.answerable(X)
        if answerable.all():
            return self._score(X, None)
        score = np.full(len(answerable), np.nan)
        if answerable.any():
            score[answerable] = self._score(_rows_at(X, np.flatnonzero(answerable)), None)
        return score

    def accept(self, X: ArrayLike) -> Booleans:
        """Tell whether each row is accepted."""
        accepted: Booleans = ~rejected(self.uncertainty(X), self.threshold_)
        return accepted

    def status(self, X: ArrayLike) -> Statuses:
        """Return the model's own status of each row, with `Status.UNSURE` where it is refused."""
        refused = ~self.accept(X)
        told: Statuses = np.zeros(len(refused), np.uint8)
        if hasattr(self.model_, "status"):
            told = self.model_.status(X)
        return told | refused * np.uint8(Status.UNSURE)

    def predict(self, X: ArrayLike) -> np.ma.MaskedArray[Any, Any]:
        """Return the model's predictions as a numpy masked array, masked where refused.

        `.compressed()` are the accepted ones, `.mask` tells which rows were refused, and
        `.filled(value)` puts another value there. Refused numbers are NaN beneath the mask,
        so that code that does not know of masks cannot take them for predictions; class labels
        have no such value and stay.
        """
        refused = ~self.accept(X)
        predicted = np.array(self.model_.predict(X))
        if predicted.dtype.kind == "f":
            predicted[refused] = np.nan
        mask = np.broadcast_to(refused.reshape(-1, *[1] * (predicted.ndim - 1)), predicted.shape)
        masked: np.ma.MaskedArray[Any, Any] = np.ma.masked_array(predicted, mask=mask)
        return masked

    def _score(self, X: ArrayLike, dist: AnyDistribution | None) -> Floats:
        if self.score == "predicted":
            return predicted_score(
                self.model_.predict_dist(X) if dist is None else dist, self.spread_
            )
        if self.score == "epistemic":
            return epistemic_score(self.model_, X, self.method, self.spread_)
        if not hasattr(self.model_, "novelty"):
            raise InputError(
                'score = "novelty" needs a model with fit_novelty; '
                f"{type(self.model_).__name__} has none"
            )
        unlike: Floats = self.model_.novelty(X)
        return unlike

    def _threshold(self, score: Floats, loss: Floats) -> float:
        if self.threshold is not None:
            return float(self.threshold)
        known = np.isfinite(score)  # no threshold accepts the others
        ordered = np.sort(score[known])
        if self.target_coverage is not None:
            # 0.1 + 0.2 of ten rows are three, whatever the last bit says.
            kept = int(np.ceil(self.target_coverage * len(score) - 1e-9))
            if kept > len(ordered):
                raise InputError(
                    f"target_coverage = {self.target_coverage} is out of reach on these validation "
                    f"rows: {len(ordered)} of {len(score)} have a finite score"
                )
            return float(ordered[kept - 1])
        if not len(ordered):
            raise InputError(
                f"target_risk = {self.target_risk} is out of reach on these validation rows: none "
                "of them has a finite score"
            )
        coverage, risk = metrics.risk_coverage(score[known], loss[known])
        kept_by_point = np.rint(coverage * len(ordered)).astype(np.intp)
        if self.confidence is not None:
            risk = _upper_bounds(risk, kept_by_point, 1 - self.confidence)
        assert self.target_risk is not None
        allowed = np.flatnonzero(risk <= self.target_risk)
        if not len(allowed):
            best = int(np.argmin(risk))
            raise InputError(
                f"target_risk = {self.target_risk} is out of reach on these validation rows: the "
                f"smallest risk{'' if self.confidence is None else ' bound'} is {risk[best]:.4g}, "
                f"with {coverage[best]:.1%} of the rows accepted"
            )
        return float(ordered[kept_by_point[allowed[-1]] - 1])

    def _check_options(self) -> None:
        given = [name for name in GOALS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"give exactly one of {', '.join(GOALS)}; got {' and '.join(given) or 'none'}"
            )
        goal = float(getattr(self, given[0]))
        if not np.isfinite(goal):
            raise InputError(f"{given[0]} = {goal} is not finite")
        if self.target_coverage is not None and not 0 < goal <= 1:
            raise InputError(f"target_coverage = {goal}; accepted: above 0, up to 1")
        if self.target_risk is not None and goal < 0:
            raise InputError(f"target_risk = {goal}; accepted: 0 or more")
        if self.confidence is not None:
            if self.target_risk is None:
                raise InputError("confidence goes with target_risk")
            if not 0 < self.confidence < 1:
                raise InputError(f"confidence = {self.confidence}; accepted: between 0 and 1")
        if self.score not in SCORES:
            raise InputError(f"score = {self.score!r} is unknown; accepted: {', '.join(SCORES)}")


def predicted_score(dist: AnyDistribution, spread: ArrayLike = 1.0) -> Floats:
    """Return one number per row: predicted std over `spread`, mean over outputs; or 1 - max p."""
    return class_score(dist.mean) if dist.is_categorical else std_score(dist.std, spread)


def epistemic_score(
    model: object, X: ArrayLike, method: str | None = None, spread: ArrayLike = 1.0
) -> Floats:
    """Return the mean over outputs of epistemic std over `spread`, or the mutual information."""
    options = {} if method is None else {"method": method}
    if hasattr(model, "mutual_information"):
        information: Floats = model.mutual_information(X, **options)
        return information
    if hasattr(model, "epistemic_std"):
        return std_score(model.epistemic_std(X, **options), spread)
    raise InputError(
        f'score = "epistemic" needs a model with epistemic_std; {type(model).__name__} has none'
    )


def _rows_at(X: Any, places: NDArray[np.intp]) -> Any:  # Any: an array, or a table of any library
    """Return some rows of a table or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if hasattr(X, "shape") else np.asarray(X)[places]


def _spread(y: NDArray[Any]) -> Floats:
    """Return the std of each column; 1 for a constant one, and for a single output."""
    columns = y.reshape(len(y), -1)
    spread = columns.std(axis=0)
    return np.where((spread > 0) & (columns.shape[1] > 1), spread, 1.0)


def _upper_bounds(risk: Floats, kept: NDArray[np.intp], delta: float) -> Floats:
    """Return Clopper and Pearson's upper bounds of error rates, all of them valid at once.

    Given the score of the last row that is kept, the m others are drawn alike; with e errors the
    bound b solves P[Binomial(m, b) <= e] = delta / points. The union over all points of the curve
    makes it valid to choose one of them.
    """
    errors, others = np.rint(risk * kept), kept - 1
    known = errors < others
    bounds = np.ones(len(kept))
    bounds[known] = betaincinv(errors[known] + 1, (others - errors)[known], 1 - delta / len(kept))
    return bounds
