"""Predictive distributions: what a network believes about a value it has not seen.

Every entry of an array of any shape has its own distribution, independent of the others (several
outputs are several independent Gaussians, as in the paper). Objects never change once made: their
arrays are float64 and read-only, and every method returns something new.
"""

from rdeepsense.distributions.base import Distribution, LocationScale, concatenate
from rdeepsense.distributions.categorical import Categorical
from rdeepsense.distributions.gaussian import Gaussian
from rdeepsense.distributions.mixture import Mixture
from rdeepsense.distributions.recalibrated import Recalibrated
from rdeepsense.distributions.student import StudentT

RegressionDistribution = LocationScale | Mixture | Recalibrated
AnyDistribution = RegressionDistribution | Categorical

__all__ = [
    "AnyDistribution",
    "Categorical",
    "Distribution",
    "Gaussian",
    "LocationScale",
    "Mixture",
    "Recalibrated",
    "RegressionDistribution",
    "StudentT",
    "concatenate",
]
