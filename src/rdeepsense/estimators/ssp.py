"""SSP: deep ensembles (Lakshminarayanan et al. 2017), the paper's second baseline (section 4.3).

Networks without dropout, each from its own initial weights, trained with a proper scoring rule
(NLL; the Brier score for classes, as the paper has it). The prediction is their mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rdeepsense.data import checks
from rdeepsense.estimators.network import (
    CalibratedEstimator,
    Classifier,
    NetworkEstimator,
    Regressor,
)
from rdeepsense.estimators.rdeepsense import likelihood_calibration, regression_likelihoods
from rdeepsense.fitting.passes import Members, Passes
from rdeepsense.fitting.records import Candidate, candidates
from rdeepsense.fitting.search import coarse_grid
from rdeepsense.fitting.spec import FitSpec

ADVERSARIAL_STEP = 0.05  # standard deviations of an input: about 1 % of its range, as in its paper


@dataclass(kw_only=True, eq=False, repr=False)
class SSP(CalibratedEstimator, NetworkEstimator):
    """An ensemble of networks; `predict_dist(X, samples=k)` is that of the first k (SSP-k).

    Further parameters are those of `CalibratedEstimator`, `NetworkEstimator` and
    `DistributionEstimator`.

    Parameters
    ----------
    members : networks in the ensemble, trained as one bank.
    adversarial : also train on inputs moved against each network (fast gradient sign method).
    """

    members: int = 5
    adversarial: bool = False

    def _passes(self, samples: int | None) -> Passes:
        return Members(samples)

    def _spec(self) -> FitSpec:
        members = checks.check_whole("members", self.members, 1)
        step = ADVERSARIAL_STEP if self.adversarial else 0.0
        # The network is chosen as a single one with dropout is, by the same trials.
        look = candidates((self._grid()[0].likelihood,), "auto", "auto")
        return replace(
            super()._spec(), members=members, adversarial_step=step, first_look=coarse_grid(look)
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SSPRegressor(Regressor, SSP):
    """Deep ensembles; `likelihood` as for `RDeepSenseRegressor`, the others as for `SSP`."""

    likelihood: str = "gaussian"

    def _calibration(self) -> str | None:
        return likelihood_calibration(self.likelihood, self.calibrate, super()._calibration())

    def _grid(self) -> tuple[Candidate, ...]:
        return candidates(regression_likelihoods(self.likelihood), 0.0, 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class SSPClassifier(Classifier, SSP):
    """Deep ensembles for classes, trained with the Brier score; parameters as for `SSP`."""

    def _grid(self) -> tuple[Candidate, ...]:
        return candidates(("categorical",), 0.0, 0.0)

    def _spec(self) -> FitSpec:
        return replace(super()._spec(), brier=True)
