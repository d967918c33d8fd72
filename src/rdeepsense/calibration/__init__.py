"""Making stated probabilities true on held-out rows: scales, maps, conformal sets, rejection."""

from rdeepsense.calibration.maps import (
    KINDS,
    PRIOR_ROWS,
    Calibration,
    Isotonic,
    Noise,
    Scale,
    Temperature,
    fit,
    kind_of,
    weighted_nll,
)

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
