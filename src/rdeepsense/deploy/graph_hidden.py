"""Whether a graph's last step reads what the trained last layer reads."""

from __future__ import annotations

import numpy as np

from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.last_layer import last_hidden, last_layer
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

ROWS = 4
AGREEMENT = 0.05  # of the largest number: weights may be bytes


def check_hidden(fitted: Fitted, graph: Graph) -> None:
    """Refuse a graph whose last layer was joined with others, or stands elsewhere."""
    last_layer(graph)
    X = graph.rows_at(np.random.default_rng(0).normal(size=(ROWS, graph.inputs)))
    wanted, found = fitted.last_hidden(X, None)[:, :-1], last_hidden(graph, X)
    if wanted.shape == found.shape:
        size = np.abs(wanted).max() + np.finfo(np.float32).tiny
        if np.abs(found - wanted).max() <= AGREEMENT * size:
            return
    raise InputError(
        "what was learnt, or is to be learnt, from labels is about the numbers that the last layer "
        "reads, and the exported steps do not hold them; end the network in one Linear layer"
    )
