"""The self-test that goes with a model: its tables and its predictions, checked on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.epistemic import of_check
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.tables import checksum
from rdeepsense.deploy.c.text import fill, joined, table

ROWS = 8
TOLERANCE = "2e-4f"


def selftest(source: Source, X: NDArray[Any]) -> str:
    """selftest.c, with the first of these rows (drawn ones if there are none) in range."""
    folded, network = source.folded, source.network
    rows = _rows(source, X)
    expected = folded.finish(network.raw(rows))
    name = source.name
    outputs, inputs = f"ROWS * {name.upper()}_OUTPUTS", f"ROWS * {name.upper()}_INPUTS"
    vectors = [table("float", "inputs", rows, inputs)]
    if folded.is_classifier:
        vectors.append(table("float", "expected", expected, outputs))
    else:
        vectors.append(table("float", "means", expected[0], outputs))
        vectors.append(table("float", "stds", expected[1], outputs))
    ok, nan = f"{name.upper()}_OK", f"{name.upper()}_NAN"
    values = {
        **source.values,
        "rows": len(rows),
        "tolerance": TOLERANCE,
        "checksum": checksum(source.tables),
        "tables": "".join(t.declaration() for t in source.tables),
        "hash": "".join(_hash(t.kind, t.name, t.values.size) for t in source.tables),
        "nan_status": ok if folded.missing == "mean" else nan,
    }
    values |= of_check(source, values)
    if folded.doubt is not None:
        told = folded.epistemic_of(network.raw(rows))
        vectors.append(table("float", "epistemics", told, outputs))
    kind = "classes_check" if folded.is_classifier else "regression_check"
    values["check"] = "".join(f"static {v}\n" for v in vectors) + fill(joined([kind]), values)
    return fill(joined(["selftest"]), values)


def _rows(source: Source, X: NDArray[Any]) -> NDArray[np.float32]:
    folded, network = source.folded, source.network
    drawn = np.random.default_rng(0).normal(size=(ROWS, folded.inputs)) * folded.scale
    for candidates in (np.asarray(X)[:ROWS], folded.centre + drawn):
        rows = np.where(np.isfinite(candidates), candidates, folded.centre).astype(np.float32)
        inside = np.abs(rows - network.centre) <= 0.99 * network.reach * folded.scale
        if inside.all(1).any():
            found: NDArray[np.float32] = rows[inside.all(1)]
            return found
    return folded.centre.astype(np.float32)[None]


def _hash(kind: str, name: str, size: int) -> str:
    word = f"bits_of({name}[i])" if kind == "float" else f"(uint32_t){name}[i]"
    return (
        f"    for (i = 0; i < {size}; ++i, factor += 2) {{\n"
        f"        sum += {word} * factor;\n    }}\n"
    )
