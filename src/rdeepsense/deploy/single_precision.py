"""Refusal of forms that compute in float32 where float32 does not tell a model's values apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rdeepsense import arrays as precision
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runner import MeanStd
from rdeepsense.errors import InputError


def check_single(folded: Folded | FoldedGraph, to: str) -> None:
    """Refuse an input or a target that needs float64, by its name."""
    facts, part = folded.facts, folded.graph if isinstance(folded, FoldedGraph) else folded.layers
    for k in facts.double:
        raise refusal(to, said("input", k, facts.features))
    found = folded.run(part.rows_at(np.zeros((1, part.inputs))))
    if isinstance(found, MeanStd) and facts.guard is not None:
        for k in precision.double_columns(found.mean[0], facts.guard.fallback):
            raise refusal(to, said("target", k, facts.targets))


def said(what: str, column: int, names: Sequence[str] | None) -> str:
    """Name an input or a target."""
    return f"{what} {column if names is None else repr(names[column])}"


def refusal(to: str, column: str, about: str = "") -> InputError:
    """Return the error that names a column and says what can be done."""
    about = f" ({about})" if about else ""
    return InputError(
        f"{to} computes in float32, which does not tell the values of {column} apart{about}; "
        "subtract a constant from it and fit again, or export with to='folded', which reads float64"
    )
