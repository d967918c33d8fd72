"""Making stated probabilities true on held-out rows: scales, maps, conformal sets, rejection."""

from rdeepsense.calibration.base import PRIOR_ROWS, Calibration, weighted_nll
from rdeepsense.calibration.choose import KINDS, fit, kind_of
from rdeepsense.calibration.isotonic import Isotonic
from rdeepsense.calibration.noise import Noise
from rdeepsense.calibration.scale import Scale
from rdeepsense.calibration.temperature import Temperature

__all__ = [
    "KINDS",
    "PRIOR_ROWS",
    "Calibration",
    "Isotonic",
    "Noise",
    "Scale",
    "Temperature",
    "fit",
    "kind_of",
    "weighted_nll",
]
