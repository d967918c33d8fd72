"""RDeepSense: one deterministic pass that knows how sure it is (sections 3.1 to 3.3)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from rdeepsense.data import checks, names
from rdeepsense.data.rows import Data
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.epistemic.classes import mutual_information
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import Judged
from rdeepsense.estimators.network_estimator import NetworkEstimator
from rdeepsense.fitting.distillation_set import lessons
from rdeepsense.fitting.epistemic import TOTALS, Epistemic
from rdeepsense.fitting.passes import choose_device, matched, sampled_passes, single_pass
from rdeepsense.fitting.target import ClassTargets, RegressionTargets

Floats = NDArray[np.float64]
LIKELIHOODS = ("student", "gaussian")


class RDeepSense(NetworkEstimator):
    """What the regressor and the classifier share."""

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
        drop_prob: float | Sequence[float] | str = 0.05,
        input_drop_prob: float = 0.0,
        alpha: float | str = 0.5,
        calibrate: bool | str = True,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        missing: str = "refuse",
        checkpoint: str | os.PathLike[str] | None = None,
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        super().__init__(
            hidden=hidden,
            network=network,
            calibrate=calibrate,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            missing=missing,
            checkpoint=checkpoint,
            keep_rows=keep_rows,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.drop_prob = drop_prob
        self.input_drop_prob = input_drop_prob
        self.alpha = alpha

    def predict_dist(self, X: Any, samples: int | None = None, epistemic: str | None = None) -> Any:
        """The predictive distribution of each row.

        `samples=None` is the single deterministic pass (section 3.3). `samples=k` is
        RDeepSense-MCk: k passes with dropout on, their mixture matched in mean and variance:
        mean = mean of means, var = mean of vars + population variance of means. Its calibration is
        the single pass's.

        `epistemic` widens the single pass where the model knows little: "laplace" by what the
        training rows leave open about the last layer (one pass; the better guard against inputs
        unlike them), "delta" by the variance of dropout masks (one forward and one backward pass).
        """
        if epistemic is None:
            return super().predict_dist(X, samples)
        checks.check_choice("epistemic", epistemic, TOTALS)
        if samples is not None:
            raise InputError(
                "give samples or epistemic, not both: passes already vary by the masks"
            )
        fitted, dist, variance = self._epistemic(X, epistemic)
        total = fitted.total(dist, variance, epistemic)
        chosen = fitted.calibrations[epistemic]
        return total if chosen is None else chosen.apply(total)

    def epistemic_std(self, X: Any, method: str = "laplace") -> Floats:
        """The part of the standard deviation that is doubt about the mean, not noise of the data.

        In the target's units and on the scale of `predict_dist(X, epistemic=method)`; for classes
        that of the logits, (rows, classes). `method` is "laplace", "delta", or one of two further
        ways to the variance of the masks: "moments" (one pass, biased in deep networks) and
        "sample" (100 passes, the reference).
        """
        fitted, _, variance = self._epistemic(X, method)
        chosen = fitted.calibrations.get(method if method in TOTALS else "delta")
        factor = 1.0 if chosen is None or self._are_classes else chosen.summary()
        std: Floats = factor * np.sqrt(variance)
        return std

    def _epistemic(self, X: Any, method: str) -> tuple[Epistemic, AnyDistribution, Floats]:
        """What was fitted, the single pass, and the epistemic variance, in the target's units."""
        check_is_fitted(self)
        if self.epistemic_ is None:
            raise InputError(
                "the model's file is older than epistemic uncertainty; fit the model again"
            )
        X = checks.check_inputs(self, X, self.missing, reset=False)
        dist, variance = self.epistemic_.passes(self, X, method)
        dist = self._in_units(dist, self.target_scaler_)
        return self.epistemic_, dist, self._variance_in_units(variance)

    def _variance_in_units(self, variance: Floats) -> Floats:
        """From the network's scale, (rows, outputs), to the target's units and shape."""
        if self.target_scaler_ is None:
            return variance
        scaled: Floats = variance * self.target_scaler_.scale**2
        return scaled[:, 0] if self.output_shape_ == () else scaled

    def distil(self, teacher: Any, X: Any, y: Any = None) -> Self:
        """Train this one-pass student on a teacher's predictive distributions; returns self.

        The student fits quantiles of the teacher's distribution at the rows of X and at rows near
        them, where the teacher has opinions and the table has no rows. With `y` the targets count
        as much as the teacher. Step, scale and whatever else is chosen are chosen on rows held
        out, against the teacher.

        The teacher's names and units go over to the student; names of a table X or y come first.
        """
        table, targets, weight = lessons(teacher, X, y, self.random_state)
        self.fit(table, targets, sample_weight=weight)
        self.training_["teacher"] = type(teacher).__name__
        if hasattr(teacher, "feature_names_in_") and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = teacher.feature_names_in_
        self.describe(**{name: getattr(teacher, f"{name}_", None) for name in names.KEPT})
        self.target_names_ = names.of_target(y) or self.target_names_
        return self

    def _learn(self, data: Data) -> Judged:
        judged = super()._learn(data)
        self.epistemic_: Epistemic | None = Epistemic.fit(self, data, judged)
        return judged

    def _describe_learnt(self, header: dict[str, Any], tensors: dict[str, Any]) -> None:
        super()._describe_learnt(header, tensors)
        if self.epistemic_ is not None:
            self.epistemic_.describe(header, tensors)

    def _restore_learnt(
        self, header: dict[str, Any], tensors: dict[str, Any], network: nn.Module | None
    ) -> None:
        super()._restore_learnt(header, tensors, network)
        self.epistemic_ = Epistemic.restore(header, tensors)

    def _passes(
        self,
        networks: list[StochasticNetwork],
        X: NDArray[Any],
        scaler: Scaler,
        samples: int | None,
        seed: int,
    ) -> AnyDistribution:
        device = choose_device(self.device)
        if samples is None:
            return single_pass(networks[0], X, scaler, device)
        return sampled_passes(networks[0], X, scaler, device, samples, seed, matched)


class RDeepSenseRegressor(RegressionTargets, RDeepSense):
    """Regression with a predictive distribution for every row and output.

    Parameters
    ----------
    hidden : widths of the hidden layers; the paper's network is ``(500, 500, 500)``.
    network : a torch network of your own instead; it is converted on a copy and starts from its
        present weights. Its last Linear layer must have one column per output.
    drop_prob : probability to DROP a hidden unit (the paper's p is 1 minus this), one value or one
        per layer after the first; "auto" chooses.
    input_drop_prob : the same for the inputs; harmful on low-dimensional sensor vectors.
    alpha : weight of the error against the negative log-likelihood, in [0, 1); "auto" chooses by
        calibrated validation NLL, "paper" by validation deviation area on the paper's grid.
    beta : weigh the likelihood by the predicted variance to this power (beta-NLL); 0 is the paper.
    likelihood : "gaussian" (the paper's), "student" (heavy tails: one learned df per output) or
        "auto".
    calibrate : "scale" fits one scale of the predicted std on the validation rows, "isotonic" also
        a map of probabilities, "auto" the map only where a scale does not do, "conformal" a scale
        and thresholds on rows set aside; False nothing. True is "scale", and "auto" where
        likelihood is "auto".
    epochs, batch_size, learning_rate : None follows the default recipe.
    weight_decay : AdamW's, on weights only. In the paper's sums over N rows,
        lambda = (1 - alpha) lambda_l + alpha lambda_e corresponds to weight_decay = 2 lambda / N.
    missing : "refuse" or "mean", which replaces NaN inputs by the column's mean.
    checkpoint : a path where the state is saved as training goes on, and taken up again from.
    keep_rows : how many validation rows the model file may carry, for export; 0 leaves them out.
    device : "auto", "cpu", "cuda" or "cuda:N".
    random_state : seed of everything random; equal seeds give equal bits on one machine.
    verbose : show progress when at a terminal.
    """

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
        drop_prob: float | Sequence[float] | str = 0.05,
        input_drop_prob: float = 0.0,
        alpha: float | str = 0.5,
        beta: float = 0.0,
        likelihood: str = "gaussian",
        calibrate: bool | str = True,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        missing: str = "refuse",
        checkpoint: str | os.PathLike[str] | None = None,
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        super().__init__(
            hidden=hidden,
            network=network,
            drop_prob=drop_prob,
            input_drop_prob=input_drop_prob,
            alpha=alpha,
            calibrate=calibrate,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            missing=missing,
            checkpoint=checkpoint,
            keep_rows=keep_rows,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.beta = beta
        self.likelihood = likelihood

    def _likelihoods(self) -> tuple[str, ...]:
        return regression_likelihoods(self.likelihood)

    def _judge(self) -> str:
        return "deviation_area" if self.alpha == "paper" else "nll"


class RDeepSenseClassifier(ClassTargets, RDeepSense):
    """Classification with calibrated probabilities; parameters as for `RDeepSenseRegressor`.

    The error that alpha weighs is the Brier score, the head a softmax, and `calibrate` fits one
    temperature ("temperature"). `alpha="paper"` chooses by validation NLL, because classes have no
    deviation area.
    """

    def mutual_information(self, X: Any, method: str = "laplace") -> Floats:
        """What the true class would tell about the model, in nats: 0 where only the data is noisy.

        It is H[E p] - E H[p] over logits with the variance `epistemic_std(X, method)` squared.
        """
        fitted, dist, variance = self._epistemic(X, method)
        chosen = fitted.calibrations.get(method if method in TOTALS else "delta")
        temperature = 1.0 if chosen is None else chosen.summary()
        assert isinstance(dist, Categorical)
        return mutual_information(dist, variance, temperature)

    def _likelihoods(self) -> tuple[str, ...]:
        return ("categorical",)


def regression_likelihoods(likelihood: str) -> tuple[str, ...]:
    """The heads that a `likelihood` argument stands for."""
    checks.check_choice("likelihood", likelihood, (*LIKELIHOODS, "auto"))
    return LIKELIHOODS if likelihood == "auto" else (likelihood,)
