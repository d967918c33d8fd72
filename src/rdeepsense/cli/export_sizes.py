"""How large the exports of a model would be, without making them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdeepsense.fitting.fitted import Fitted


def export_sizes(fitted: Fitted) -> dict[str, int | str]:
    """Return the bytes of C tables by type of the weights, or why there is no such export.

    int8 and float16 are rounded by rows of the model file; without rows float32 alone is told.
    """
    from rdeepsense.deploy.c.emit import Source
    from rdeepsense.deploy.c.graph import GraphSource
    from rdeepsense.deploy.c.stored import DTYPES as OF_GRAPHS
    from rdeepsense.deploy.c.stored import as_stored
    from rdeepsense.deploy.fold import folded_form
    from rdeepsense.deploy.folded.graph import FoldedGraph
    from rdeepsense.deploy.quantise import DTYPES, prepare
    from rdeepsense.errors import RDeepSenseError

    rows = fitted.kept_rows[0]
    try:
        folded = folded_form(fitted)
        if isinstance(folded, FoldedGraph):
            return {
                f"C {dtype}": GraphSource(folded, as_stored(folded, dtype)).table_bytes
                for dtype in OF_GRAPHS
            }
        return {
            f"C {dtype}": Source(folded, prepare(folded, dtype, rows)).table_bytes
            for dtype in DTYPES
            if dtype == "float32" or len(rows)
        }
    except RDeepSenseError as error:
        return {"C": f"none, {error}"}
