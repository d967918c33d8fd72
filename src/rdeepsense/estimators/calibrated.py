"""The argument of estimators whose calibration can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense import calibration
from rdeepsense.estimators.base import DistributionEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class CalibratedEstimator(DistributionEstimator):
    """An estimator whose calibration is an argument.

    Parameters
    ----------
    calibrate : "scale" fits one scale of the predicted std on the validation rows, "isotonic" also
        a map of probabilities, "auto" the map only where a scale does not do, "conformal" a scale
        and thresholds on rows set aside; False nothing. True is "scale", and "auto" where
        likelihood is "auto". Classes have one temperature ("temperature") in place of the scale.
    """

    calibrate: bool | str = True

    def _calibration(self) -> str | None:
        return calibration.kind_of(self.calibrate, self.target_type.calibration)

    def _sets_aside(self) -> bool:
        return self.calibrate == "conformal"
