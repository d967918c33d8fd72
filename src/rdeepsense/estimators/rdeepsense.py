"""RDeepSense: a predictive distribution from one deterministic pass (sections 3.1 to 3.3)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Floats
from rdeepsense.data import checks
from rdeepsense.data import checks as names
from rdeepsense.distributions import AnyDistribution, Categorical, RegressionDistribution
from rdeepsense.errors import InputError
from rdeepsense.estimators.network import (
    QUICK_FOLDS,
    QUICK_STEPS,
    CalibratedEstimator,
    Classifier,
    NetworkEstimator,
    Regressor,
    apply_effort,
    as_regression,
    widths,
)
from rdeepsense.fitting.distillation import Teacher, distillation_set
from rdeepsense.fitting.epistemic import TOTALS
from rdeepsense.fitting.ladder import is_expensive
from rdeepsense.fitting.passes import Passes, Sampled, Single, matched
from rdeepsense.fitting.records import Candidate, Criterion, candidates
from rdeepsense.fitting.spec import DeviceBudget, FitSpec
from rdeepsense.heads import regression_heads

if TYPE_CHECKING:
    from rdeepsense.live.live import Live


@dataclass(kw_only=True, eq=False, repr=False)
class RDeepSense(CalibratedEstimator, NetworkEstimator):
    """Single deterministic passes of a network trained with dropout and a scoring rule.

    Parameters
    ----------
    drop_prob : probability to DROP a hidden unit (the paper's p is 1 minus this), one value or one
        per layer after the first; "auto" chooses.
    input_drop_prob : the same for the inputs; harmful on low-dimensional sensor vectors.
    alpha : weight of the error against the negative log-likelihood, in [0, 1); "auto" chooses by
        calibrated validation NLL, "paper" by validation deviation area on the paper's grid.
    effort : "full" searches for whatever is "auto"; "quick" takes a fixed small recipe instead: two
        layers of 64, drop probability 0.05, alpha 0.5 and a Student-t head, for a first look.
    budget : a `rdeepsense.Budget`, what the model may need on its device. With `hidden="auto"` the
        best network that fits is chosen; everything is judged and calibrated as it is exported.
    """

    hidden: Sequence[int] | str = "auto"
    drop_prob: float | Sequence[float] | str = "auto"
    input_drop_prob: float = 0.0
    alpha: float | str = "auto"
    effort: str = "full"
    budget: DeviceBudget | None = None

    def epistemic_std(self, X: ArrayLike, method: str = "laplace") -> Floats:
        """Return the part of the standard deviation that is uncertainty of the mean, not noise.

        In the target's units and on the scale of `predict_dist(X, epistemic=method)`; for classes
        that of the logits, (rows, classes). `method` is "laplace", "delta", or one of two further
        ways to the variance of the masks: "moments" (one pass, biased in deep networks) and
        "sample" (100 passes, the reference).
        """
        rows = self._rows(X)
        return self.fitted_.epistemic_std(rows, method, self._where())

    def distil(self, teacher: Teacher, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train this one-pass student on a teacher's predictive distributions; returns self.

        The student fits quantiles of the teacher's distribution at the rows of X and at rows near
        them, where the teacher can be asked and the table has no rows. With `y` the targets count
        as much as the teacher. Step, scale and whatever else is chosen are chosen on rows held
        out, against the teacher.

        The teacher's names and units go over to the student; names of a table X or y come first.
        """
        table, targets, weight = distillation_set(teacher, X, y, self.random_state)
        self.fit(table, targets, sample_weight=weight)
        fitted = self.fitted_
        training = replace(fitted.training, teacher=type(teacher).__name__)
        known = getattr(teacher, "fitted_", None)
        if known is not None:
            if known.inputs.names is not None and fitted.inputs.names is None:
                fitted = replace(fitted, inputs=replace(fitted.inputs, names=known.inputs.names))
                self.feature_names_in_ = np.array(known.inputs.names, dtype=object)
            own = known.target
            fitted = fitted.described(own.names, own.units, known.inputs.units)
        target = replace(fitted.target, names=names.of_target(y) or fitted.target.names)
        self.fitted_ = replace(fitted, training=training, target=target)
        return self

    def live(
        self,
        coverage: float = 0.9,
        forget: float | Sequence[float] | None = None,
        labels: str = "some",
        alarm: bool | float = True,
        *,
        pending: int = 256,
        rates: Rates | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> Live:
        """Return the model in a stream: predict a row, observe its label when it comes.

        Parameters
        ----------
        coverage : how often intervals should hold.
        forget : the share of what it knows that each label takes away, one for each filter that
            is to run; None is that of `rates`.
        labels : "some" come, late or never; "all" come, each before the next row; "none" come.
        alarm : the most probable that a stream without drift ever is called drifting; True is
            0.01, False watches nothing.
        pending : how many rows wait for their labels at most.
        rates : what it learns by (`rdeepsense.adaptation.rates.Rates`); None is what `fit` chose on
            groups that it left out, or the default where it was given none.
        state : a file of `Live.save`, to go on from; its own settings count then.
        """
        from rdeepsense.live.live import Live
        from rdeepsense.live.state import Settings

        check_is_fitted(self)
        if state is not None:
            return Live.load(state, self.fitted_, self._rows)
        known = (self.fitted_.rates or Rates()) if rates is None else rates
        settings = Settings.of(coverage, forget, labels, alarm, pending, known)
        return Live(self.fitted_, settings, self._rows)

    def _passes(self, samples: int | None) -> Passes:
        return Single() if samples is None else Sampled(samples, matched)

    def _layers(self) -> Sequence[int] | str:
        layers: Sequence[int] | str = widths(self._settled("hidden"))
        return layers

    def _settled(self, name: str) -> Any:  # Any: whatever the argument takes
        return apply_effort(name, getattr(self, name), self.effort)

    def _spec(self) -> FitSpec:
        budget: object = self.budget
        if budget is not None and not isinstance(budget, DeviceBudget):
            raise InputError(f"budget = {budget!r} is no budget; accepted: None, rdeepsense.Budget")
        spec = replace(super()._spec(), input_drop_prob=self.input_drop_prob, budget=self.budget)
        spec = replace(spec, laplace=True, leaves_groups_out=True, allows_for_few_rows=True)
        if self.effort == "quick" and is_expensive(spec.architecture):
            return replace(spec, most_steps=QUICK_STEPS, group_folds=QUICK_FOLDS)
        return spec

    def _either(self, X: ArrayLike, samples: int | None, epistemic: str | None) -> AnyDistribution:
        if epistemic is None:
            return self._distribution(X, samples)
        checks.check_choice("epistemic", epistemic, TOTALS)
        if samples is not None:
            raise InputError(
                "give samples or epistemic, not both: passes already vary by the masks"
            )
        return self.fitted_.distribution(self._rows(X), epistemic, device=self._where())


@dataclass(kw_only=True, eq=False, repr=False)
class RDeepSenseRegressor(Regressor, RDeepSense):
    """Regression with a predictive distribution for every row and output.

    Further parameters are those of `RDeepSense`, `CalibratedEstimator`, `NetworkEstimator` and
    `DistributionEstimator`.

    Parameters
    ----------
    likelihood : "auto" chooses the head; "gaussian" (the paper's), "student" (heavy tails: one
        learned df per output), or one of your own (`rdeepsense.heads.register`).
    beta : weigh the likelihood by the predicted variance to this power (beta-NLL); 0 is the paper.
    """

    likelihood: str = "auto"
    beta: float = 0.0

    def predict_dist(
        self, X: ArrayLike, samples: int | None = None, epistemic: str | None = None
    ) -> RegressionDistribution:
        """Return the predictive distribution of each row and output.

        `samples=None` is the single deterministic pass (section 3.3). `samples=k` is
        RDeepSense-MCk: k passes with dropout on, their mixture matched in mean and variance:
        mean = mean of means, var = mean of vars + population variance of means. Its calibration is
        the single pass's.

        `epistemic` widens the single pass where the model knows little: "laplace" by what the
        training rows leave open about the last layer (one pass; the better guard against inputs
        unlike them), "delta" by the variance of dropout masks (one forward and one backward pass).
        """
        return as_regression(self._either(X, samples, epistemic))

    def _calibration(self) -> str | None:
        likelihood = self._settled("likelihood")
        return likelihood_calibration(likelihood, self.calibrate, super()._calibration())

    def _grid(self) -> tuple[Candidate, ...]:
        heads = regression_likelihoods(self._settled("likelihood"))
        return candidates(heads, self._settled("alpha"), self._settled("drop_prob"))

    def _spec(self) -> FitSpec:
        criterion: Criterion = "deviation_area" if self.alpha == "paper" else "nll"
        return replace(super()._spec(), beta=self.beta, criterion=criterion)


@dataclass(kw_only=True, eq=False, repr=False)
class RDeepSenseClassifier(Classifier, RDeepSense):
    """Classification with calibrated probabilities; parameters as for `RDeepSenseRegressor`.

    The error that alpha weighs is the Brier score, the head a softmax, and `calibrate` fits one
    temperature ("temperature"). `alpha="paper"` chooses by validation NLL, because classes have no
    deviation area.
    """

    def predict_dist(
        self, X: ArrayLike, samples: int | None = None, epistemic: str | None = None
    ) -> Categorical:
        """Return the predictive distribution of each row; as for `RDeepSenseRegressor`."""
        return self._labelled(self._either(X, samples, epistemic))

    def mutual_information(self, X: ArrayLike, method: str = "laplace") -> Floats:
        """Return what the true class would tell about the model, in nats: 0 where data is noisy.

        It is H[E p] - E H[p] over logits with the variance `epistemic_std(X, method)` squared.
        """
        rows = self._rows(X)
        return self.fitted_.mutual_information(rows, method, self._where())

    def _grid(self) -> tuple[Candidate, ...]:
        alpha, drop_prob = self._settled("alpha"), self._settled("drop_prob")
        return candidates(("categorical",), alpha, drop_prob)


def regression_likelihoods(likelihood: str) -> tuple[str, ...]:
    """Return the heads that a `likelihood` argument stands for."""
    heads = regression_heads()
    checks.check_choice("likelihood", likelihood, (*heads, "auto"))
    if likelihood != "auto":
        return (likelihood,)
    return tuple(name for name, head in heads.items() if head.automatic)


def likelihood_calibration(
    likelihood: str, calibrate: bool | str, chosen: str | None
) -> str | None:
    """Return the calibration to fit: where the head is open, so is its correction."""
    return "auto" if likelihood == "auto" and calibrate is True else chosen
