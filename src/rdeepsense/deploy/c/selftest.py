"""The self-test that goes with a model: its tables and its predictions, checked on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.inputs import predicted
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.tables import Table, checksum
from rdeepsense.deploy.c.text import table

ROWS = 8
TOLERANCE = "2e-4f"
# A compiler that fuses products and sums moves an embedding's last bits, and so perhaps a byte.
OF_EMBEDDED_BYTES = "2e-2f"


def selftest(source: Source, X: NDArray[Any]) -> str:
    """selftest.c, with the first of these rows (drawn ones if there are none) in range."""
    return source.banner() + source.assembled("selftest.c", {"rows.h": rows_section(source, X)})


def rows_section(source: Source, X: NDArray[Any]) -> str:
    """The section of selftest.c that is the model's own: rows, and what it says of them."""
    name = source.name.upper()
    rows = rows_in_range(source, X)
    vectors = [table("float", "inputs", rows, f"ROWS * {name}_INPUTS")]
    told = predicted(source.folded, source.network, rows)
    for result, values in zip(source.model.results, told, strict=True):
        vectors.append(table("float", f"expected_{result}", values, f"ROWS * {name}_OUTPUTS"))
    if (novelty := source.model.novelty) is not None:
        surprise = novelty.surprise(source.folded.facts.numbers(rows))
        vectors.append(table("float", "expected_surprise", surprise, "ROWS"))
    lines = [
        *(t.declaration() for t in source.tables),
        "",
        f"#define ROWS {len(rows)}",
        f"#define TOLERANCE {tolerance(source)}",
        f"#define CHECKSUM {checksum(source.tables)}u",
        "#define ADD_TABLES" + "".join(f" \\\n    {_added(t)}" for t in source.tables),
        "",
    ]
    return "\n".join(lines + [f"static {vector}" for vector in vectors])


def tolerance(source: Source) -> str:
    """Give what a prediction may be apart from the expected one, in probability or in std."""
    embedded_bytes = source.switches["EMBEDDED"] and source.switches["INT8"]
    return OF_EMBEDDED_BYTES if embedded_bytes else TOLERANCE


def rows_in_range(source: Source, X: NDArray[Any]) -> NDArray[np.float32]:
    """Give the first of these rows, or drawn ones, that the model takes as they are."""
    model, network = source.model, source.network
    numbers = model.network_inputs * model.window
    drawn = source.rows_at(np.random.default_rng(0).normal(size=(ROWS, numbers)))
    drawn = drawn if model.guard is None else model.guard.inside(drawn)
    typical = source.rows_at(np.zeros((1, numbers)))
    for candidates in (np.asarray(X)[:ROWS].reshape(-1, *typical.shape[1:]), drawn):
        rows = np.where(np.isfinite(candidates), candidates, typical).astype(np.float32)
        read = rows if model.encoding is None else model.encoding.expand(rows)
        near = np.abs(read - network.centre) <= 0.99 * network.reach * model.scale
        inside = near.all(tuple(range(1, near.ndim)))
        if model.guard is not None:
            inside &= model.guard.status(rows) == 0
        if inside.any():
            found: NDArray[np.float32] = rows[inside]
            return found
    return typical.astype(np.float32)


def _added(t: Table) -> str:
    word = "bits_of" if t.kind == "float" else "(uint32_t)"
    return f"ADD({t.name}, {t.values.size}, {word})"
