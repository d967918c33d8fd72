"""Pictures of distributions beside the truth, on matplotlib's axes (extra `report`).

`calibration`, `bands`, `risk` and `residuals` take a distribution and the truth of one target, draw
on `ax`, or on axes of a new figure, and return them.
"""

from rdeepsense.plot.curves import calibration, risk
from rdeepsense.plot.figures import bands, residuals

__all__ = ["bands", "calibration", "residuals", "risk"]
