"""Baselines for the cost, not the quality, of a prediction: the same C, the same shape.

    point:     the mean alone, without the rows of the last layer and the head that make the std
    MCDrop-k:  k passes of the point network, each with a dropout mask of its own (section 4.3)
    SSP-k:     k networks with weights of their own, one after the other (section 4.3)

The passes end in the moments of their mixture; classes in the mean of their probabilities:

    mean = 1/k sum m_i,   var = 1/k sum (s_i^2 + m_i^2) - mean^2

The weights are the model's own: SSP's members are copies that lie apart in memory, so their mixture
is the model's prediction, and MCDrop's kept units are divided by the keep probability.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rdeepsense.deploy.c.assemble import Assembly
from rdeepsense.deploy.c.build import Program
from rdeepsense.deploy.c.compiled import single
from rdeepsense.deploy.c.config import switches
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.layers import DenseLayer
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.networks import as_float32
from rdeepsense.link import Column, LocationWidth, Softmax

DROP_PROB = 0.1
C = Path(__file__).parent / "c"


class DroppingSource(Source):
    """A network that drops hidden units at random; of one thread, as its generator is shared."""

    @cached_property
    def switches(self) -> dict[str, bool]:
        return {**switches(self.model), "DROPOUT": True}

    def config(self) -> str:
        return f"{super().config()}#define DROPPED {round(DROP_PROB * 2**32)}u\n"


def point(folded: Folded) -> Folded:
    """Leave out the rows of the std; a classifier has none and stays as it is."""
    if isinstance(folded.output.link, Softmax):
        return folded
    outputs, layers = folded.facts.outputs, folded.layers
    last, none = layers.dense[-1], np.zeros(outputs)
    mean = DenseLayer(last.weight[:outputs], last.bias[:outputs])
    return Folded(
        replace(folded.facts, head="point", intervals=None, guard=None),
        replace(layers, dense=(*layers.dense[:-1], mean)),
        Output(LocationWidth(Column(0), None), none, none),
    )


def point_program(folded: Folded) -> Program:
    """Build the point estimate."""
    alone = point(folded)
    return single(Source(alone, as_float32(alone)))


def mcdrop(folded: Folded, passes: int) -> Program:
    """Build MCDrop-k: every pass is one of the same network."""
    alone = point(folded)
    first, *others = alone.layers.dense
    scaled = [DenseLayer(layer.weight / (1 - DROP_PROB), layer.bias) for layer in others]
    alone = replace(alone, layers=replace(alone.layers, dense=(first, *scaled)))
    return _mixture([DroppingSource(alone, as_float32(alone), "member0")], passes)


def ssp(folded: Folded, members: int) -> Program:
    """Build SSP-k: every pass is one of another network."""
    folded = replace(folded, facts=replace(folded.facts, guard=None))
    network = as_float32(folded)
    return _mixture([Source(folded, network, f"member{k}") for k in range(members)], members)


def _mixture(sources: list[Source], passes: int) -> Program:
    names = [f"{sources[k % len(sources)].name}_predict" for k in range(passes)]
    includes = "".join(f'#include "{s.name}/model.h"\n' for s in sources)
    members = f"{includes}#define PASSES {passes}\n#define MEMBERS {', '.join(names)}\n"
    around = Assembly("model", sources[0].switches, {"members.h": members})
    files = {"model.h": around.text(C / "mixture.h"), "model.c": around.text(C / "mixture.c")}
    for source in sources:
        files[f"{source.name}/model.h"] = header(source)
        files[f"{source.name}/model.c"] = source.code()
    return Program(files, tuple(sources))
