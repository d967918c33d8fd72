"""SSP: deep ensembles (Lakshminarayanan et al. 2017), the paper's second rival (section 4.3).

Networks without dropout, each from initial weights of its own, trained with a proper scoring rule
(NLL; the Brier score for classes, as the paper has it). The prediction is their mixture.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from torch import nn

from rdeepsense.data import checks
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Mixture
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.estimators.network_estimator import NetworkEstimator
from rdeepsense.estimators.rdeepsense import regression_likelihoods
from rdeepsense.fitting.passes import choose_device, single_pass
from rdeepsense.fitting.target import ClassTargets, RegressionTargets
from rdeepsense.scoring import BrierScore, ScoringRule

ADVERSARIAL_STEP = 0.05  # standard deviations of an input: about 1 % of its range, as in its paper


class SSP(NetworkEstimator):
    """What the regressor and the classifier share.

    Parameters
    ----------
    members : networks in the ensemble, trained as one bank; `predict_dist(X, samples=k)` takes
        the first k of them.
    adversarial : also train on inputs moved against each network (fast gradient sign method).

    The others are those of `RDeepSenseRegressor`.
    """

    def __init__(
        self,
        members: int = 5,
        adversarial: bool = False,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
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
        self.members = members
        self.adversarial = adversarial

    def predict_dist(self, X: Any, samples: int | None = None) -> Any:
        """The mixture of all members, or of the first `samples` of them (SSP-k)."""
        return super().predict_dist(X, samples)

    def _check_options(self) -> None:
        super()._check_options()
        checks.check_whole("members", self.members, 1)

    @property
    def _members(self) -> int:  # type: ignore[override]
        return self.members

    @property
    def _adversarial_step(self) -> float:
        return ADVERSARIAL_STEP if self.adversarial else 0.0

    def _passes(
        self,
        networks: list[StochasticNetwork],
        X: NDArray[Any],
        scaler: Scaler,
        samples: int | None,
        seed: int,
    ) -> AnyDistribution:
        if samples is not None and samples > len(networks):
            raise InputError(f"samples = {samples}, but the ensemble has {len(networks)} members")
        device = choose_device(self.device)
        parts: Any = [single_pass(n, X, scaler, device) for n in networks[:samples]]
        mixture = Mixture(parts)
        return mixture.moment_matched() if mixture.is_categorical else mixture


class SSPRegressor(RegressionTargets, SSP):
    """Deep ensembles; `likelihood` as for `RDeepSenseRegressor`, the others as for `SSP`."""

    def __init__(
        self,
        members: int = 5,
        adversarial: bool = False,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
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
            members=members,
            adversarial=adversarial,
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
        self.likelihood = likelihood

    def _likelihoods(self) -> tuple[str, ...]:
        return regression_likelihoods(self.likelihood)


class SSPClassifier(ClassTargets, SSP):
    """Deep ensembles for classes, trained with the Brier score; parameters as for `SSP`."""

    def _likelihoods(self) -> tuple[str, ...]:
        return ("categorical",)

    def _rule(self, alphas: list[float], beta: float) -> ScoringRule:
        return BrierScore(len(alphas))
