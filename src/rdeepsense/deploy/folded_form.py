"""A fitted model folded, whatever its network is: plain dense layers, or else a graph."""

from __future__ import annotations

from rdeepsense.deploy.dense_layers import is_dense
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.fold_graph import fold_graph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted


def folded_form(fitted: Fitted, epistemic: str | None = None) -> Folded | FoldedGraph:
    """Fold all layers of a fitted model."""
    if not has_graph(fitted):
        return fold_fitted(fitted, epistemic)
    if epistemic is not None:
        raise InputError(
            f"epistemic={epistemic!r} is for fully-connected networks; export this one without it"
        )
    return fold_graph(fitted)


def has_graph(fitted: Fitted) -> bool:
    """Tell whether a model's network is not plain dense layers."""
    # An adapted model's own correction is dealt with where it is exported.
    return fitted.takes_one_pass and not is_dense(fitted.network.body)
