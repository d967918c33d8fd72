"""The running way of a stream, judged on kept windows, and its own calibration.

Recurrent layers that go on from interval to interval compute another function than the trained one.
Each kept window is played twice in a row; the second time counts, when the states are those of a
motion that goes on. Half of the windows fit one factor by NLL, shrunk towards 1 as in
`calibration.scale`; the other half judges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.calibration import PRIOR_ROWS
from rdeepsense.calibration.base import least
from rdeepsense.deploy.c.graph.cost import Running
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.running import finished
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.quality import distribution, figures
from rdeepsense.fitting.fitted import Fitted

FEWEST = 4  # windows


def running_quality(
    folded: FoldedGraph, network: StoredGraph, fitted: Fitted, rows: LabelledRows
) -> Running | None:
    """Calibrate and judge the running way; None without a stream or windows."""
    if network.stream is None or len(rows.y) < FEWEST:
        return None
    X, y = rows.X, rows.y
    raw, trained = played_twice(network, X), fitted.distribution(X)
    fits, judges = np.arange(0, len(y), 2), np.arange(1, len(y), 2)

    def nll(log_factor: float) -> float:
        found = finished(folded, raw[fits], X[fits], float(np.exp(log_factor)))
        return figures(distribution(trained[fits], found), y[fits])["nll"]

    log_factor = least(nll) * len(fits) / (len(fits) + PRIOR_ROWS)
    factor = float(np.exp(log_factor))
    plain, own = (
        distribution(trained[judges], finished(folded, raw[judges], X[judges], by))
        for by in (1.0, factor)
    )
    told = (figures(dist, y[judges]) for dist in (trained[judges], plain, own))
    return Running(factor, len(judges), *told)


def played_twice(network: StoredGraph, X: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the columns at the end of windows that are each played a second time."""
    assert network.stream is not None
    found = network.stream.found(network.graph.read(X))
    return network.stream.raw(np.concatenate([found, found], axis=1))
