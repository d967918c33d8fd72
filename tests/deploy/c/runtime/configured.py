"""The runtime's own build: its files as they lie, beside headers that hold a model's sections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.deploy.c.emit import RUNTIME, Source, sizes
from rdeepsense.deploy.c.export import rows_section
from rdeepsense.deploy.folded.model import DenseLayer, Facts, Folded, Layers, Output
from rdeepsense.deploy.quantise import as_float32
from rdeepsense.guard import Guard
from rdeepsense.heads import GaussianHead

EXAMPLE = Path(__file__).parent / "example"
FILES = [str(RUNTIME / name) for name in ("model.c", "weights.c", "selftest.c")]


def sections(source: Source, X: Any) -> dict[str, str]:
    """The headers that the runtime includes."""
    switches = "".join(f"#define {name} {int(on)}\n" for name, on in source.switches.items())
    tables = "\n".join(t.definition() for t in source.tables)
    return {
        "switches.h": switches,
        "sizes.h": sizes(source),
        "config.h": source.config(),
        "tables.h": tables,
        "rows.h": rows_section(source, X),
    }


def example() -> tuple[Source, Any]:
    """Gaussian, 3-5-2, of numbers that a reader can follow."""
    hidden = DenseLayer(
        np.linspace(-1.75, 1.75, 15).reshape(5, 3), np.array([0.5, 0, -0.5, 0.25, 1])
    )
    last = DenseLayer(np.array([[1, -1, 0.5, 0, 2], [0, 0.5, -0.25, 1, 0]]), np.array([0.125, -1]))
    layers = Layers(np.array([20.0, 0, -3]), np.array([4.0, 0.5, 1]), (hidden, last))
    output = Output(GaussianHead.link, spread=np.array([2.0]), shift=np.zeros(1))
    guard = Guard(np.array([0.0, -2, -8]), np.array([40.0, 2, 2]), np.zeros(3), np.array([6.0]))
    facts = Facts(3, 1, head="gaussian", guard=guard, version="0.0")
    folded = Folded(facts, layers, output)
    X = np.array([[20.0, 0, -3], [24, 0.25, -2], [14, -0.5, -4]])
    return Source(folded, as_float32(folded)), X
