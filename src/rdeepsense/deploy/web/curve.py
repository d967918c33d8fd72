"""The shape of a predicted density, the same for every row but for its place and width.

A head's distribution is one of location and scale, calibrated by a factor or by a map of its
probabilities, so that with z = (y - mean) / std the density of z is a curve of the output alone. A
page has it as numbers on a grid and needs no formula of any head.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.distributions import LocationScale, Recalibrated
from rdeepsense.fitting.fitted import Fitted

REACH, POINTS = 4.0, 81


def standard_curve(fitted: Fitted, epistemic: str | None = None) -> Floats | None:
    """Return densities (outputs, points) of z from -REACH to REACH; None for classes."""
    if fitted.target.is_classes:
        return None
    calibration = fitted.calibration
    if epistemic is not None and fitted.epistemic is not None:
        calibration = fitted.epistemic.calibration_of(epistemic)
    plain = fitted.network.head.unit()
    unit: LocationScale | Recalibrated = plain
    if isinstance(calibration, Isotonic):
        unit = Recalibrated(plain, calibration.stated, calibration.actual)
    # A map's density jumps at each knot; means over steps of the grid are what can be drawn.
    step = 2 * REACH / (POINTS - 1)
    edges = (np.arange(POINTS + 1) - POINTS / 2) * step
    below = np.array([unit.cdf(unit.mean + z * unit.std) for z in edges])
    density: Floats = np.diff(below, axis=0).T / step
    return np.atleast_2d(density)
