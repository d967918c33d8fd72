"""Networks of a given shape, whose weights are drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from deploy.c_models import write
from deploy.folded_models import hand_made
from deploy.targets.machines import HERE

from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.inputs import number
from rdeepsense.deploy.folded.model import DenseLayer, Embedding
from rdeepsense.deploy.quantise import prepare

ROWS = 8
EMBEDDED = 8  # numbers of each input


@dataclass(frozen=True)
class Shape:
    """Inputs, hidden layers, columns of the last layer.

    On an input about half of the hidden units are zero; with `busy`, none is. With `waves` the
    first layer also reads EMBEDDED numbers of each input, made of so many frequencies.
    """

    widths: tuple[int, ...]
    head: str = "gaussian"
    busy: bool = False
    waves: int = 0
    seed: int = 0

    def __str__(self) -> str:
        note = " classes" if self.head == "categorical" else ", no unit zero" * self.busy
        return "-".join(map(str, self.widths)) + note + " periodic" * (self.waves > 0)

    def write(self, folder: Path, dtype: str) -> Source:
        """The exported C of such a network, and rows.c, which predicts eight rows."""
        rng = np.random.default_rng(self.seed)
        layers = []
        read = self.widths[0] * (1 + EMBEDDED * (self.waves > 0))
        for inputs, outputs in pairwise((read, *self.widths[1:])):
            weight = rng.normal(size=(outputs, inputs)) * (2 / inputs) ** 0.5
            shift = 100.0 if self.busy and len(layers) < len(self.widths) - 2 else 0.0
            layers.append(DenseLayer(weight, rng.normal(size=outputs) * 0.1 + shift))
        centre = rng.normal(size=self.widths[0])
        # A std above 1: half floats are then precise enough for every layer.
        folded = hand_made(self.head, centre, layers, floor=1.1)
        if self.waves:
            embedding = self._embedding(rng)
            folded = replace(folded, layers=replace(folded.layers, embedding=embedding))
        X = (centre + rng.normal(size=(200, len(centre)))).astype(np.float32)
        source = Source(folded, prepare(folded, dtype, X))
        write(source, folder, X)
        body = ",\n".join("{" + ", ".join(map(number, row)) + "}" for row in X[:ROWS])
        table = f"static const float rows[ROWS][MODEL_INPUTS] = {{\n{body}}};\n"
        kind = "#define CLASSES\n" * folded.facts.is_classifier
        (folder / "rows.h").write_text(f"#define ROWS {ROWS}\n{kind}{table}")
        (folder / "rows.c").write_text((HERE / "rows.c").read_text())
        return source

    def _embedding(self, rng: np.random.Generator) -> Embedding:
        inputs = self.widths[0]
        weight = rng.normal(size=(inputs * EMBEDDED, 2 * self.waves)) * self.waves**-0.5
        frequency = rng.normal(size=(inputs, self.waves)) * 0.3
        return Embedding(frequency, weight, rng.normal(size=(inputs, EMBEDDED)) * 0.1)
