"""What the C of a model is made of. Nothing else in this folder looks into a folded model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Singles
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.live import CLive
from rdeepsense.deploy.c.text import identifier
from rdeepsense.deploy.folded.facts import Facts, Intervals, Texts
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.layers import Layers
from rdeepsense.deploy.folded.layout import check_folded
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.narrowing import Narrowing
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.folded.runner import MeanStd
from rdeepsense.deploy.networks import FloatNetwork, StoredNetwork
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import Guard
from rdeepsense.link import Link, Softmax
from rdeepsense.refusal import Refusal

WIDEST = 65_535  # indices are 16 bits


@dataclass(frozen=True)
class CLaplace:
    """|[h, z, 1] root|, and for each output the `gain` of the variance and the epistemic `std`."""

    root: Singles  # square, upper triangular
    gain: Floats
    std: Floats


@dataclass(frozen=True)
class CModel:
    """A network, what its columns mean, and what is said of it."""

    name: str
    network: FloatNetwork | Int8Network | StoredGraph
    widths: tuple[int, ...]  # what the first layer reads, hidden layers, columns of the last layer
    link: Link
    spread: Floats | None  # None, as shift is, for classes
    shift: Floats | None
    laplace: CLaplace | None
    guard: Guard | None
    encoding: Encoding | None
    intervals: Intervals | None
    missing: str
    centre: Floats
    scale: Floats
    head: str  # for the reader alone
    classes: NDArray[np.generic] | None
    features: Texts | None
    feature_units: Texts | None
    targets: Texts | None
    target_units: Texts | None
    version: str
    source: str
    live: CLive | None = None
    narrowing: Narrowing | None = None
    refusal: Refusal | None = None
    novelty: CompactNovelty | None = None
    window: int = 1  # how often a row has each of its channels

    @property
    def inputs(self) -> int:
        """The numbers of a row."""
        return self.channels * self.window

    @property
    def channels(self) -> int:
        """The numbers of a row at one time."""
        return self.network_inputs if self.encoding is None else self.encoding.inputs

    @property
    def network_inputs(self) -> int:
        """The numbers that the network reads of a row."""
        return len(self.centre)

    @property
    def outputs(self) -> int:
        """Targets, or classes."""
        return self.widths[-1] // self.link.columns

    @property
    def hidden(self) -> int:
        """Width of the last hidden layer."""
        return self.widths[-2] if len(self.widths) > 2 else 0

    @property
    def is_classifier(self) -> bool:
        return isinstance(self.link, Softmax)

    @property
    def is_shifted(self) -> bool:
        """Whether any mean lies elsewhere than the location of its distribution."""
        return self.shift is not None and bool(np.any(self.shift))

    @property
    def results(self) -> tuple[str, ...]:
        """What predict writes, one number for each output."""
        first = ("probs",) if self.is_classifier else ("mean", "std")
        return first if self.laplace is None else (*first, "epistemic")


def c_model(
    folded: Folded,
    network: FloatNetwork | Int8Network,
    name: str,
    live: CLive | None = None,
) -> CModel:
    """Take from a folded model what its C needs."""
    check_folded(folded)
    facts, layers, output = folded.facts, folded.layers, folded.output
    if max(layers.widths) > WIDEST:
        raise InputError(f"a layer of {max(layers.widths)} is too wide; at most {WIDEST}")
    laplace = None
    if output.laplace is not None:
        assert isinstance(network, FloatNetwork)
        assert network.root is not None
        laplace = CLaplace(network.root, output.laplace.gain, output.laplace.std)
    plain = plain_model(name, network, layers.widths, facts, output, layers)
    return replace(
        plain,
        laplace=laplace,
        encoding=layers.encoding,
        live=live,
        narrowing=folded.narrowing,
    )


def plain_model(
    name: str,
    network: FloatNetwork | Int8Network | StoredGraph,
    widths: tuple[int, ...],
    facts: Facts,
    output: Output,
    reader: Layers | Graph,
) -> CModel:
    """Take what every kind of network has; `reader` is what scales its inputs."""
    return CModel(
        name=identifier(name),
        network=network,
        widths=widths,
        link=output.link,
        spread=output.spread,
        shift=output.shift,
        laplace=None,
        guard=facts.guard,
        encoding=None,
        intervals=facts.intervals,
        missing=facts.missing,
        centre=reader.centre,
        scale=reader.scale,
        head=facts.head,
        classes=facts.classes,
        features=facts.features,
        feature_units=facts.feature_units,
        targets=facts.targets,
        target_units=facts.target_units,
        version=facts.version,
        source=facts.source,
        refusal=facts.refusal,
        novelty=facts.novelty,
    )


def predicted(
    folded: Folded | FoldedGraph, network: StoredNetwork, rows: NDArray[np.float32]
) -> list[NDArray[np.float64]]:
    """Compute what predict must write for rows, in the order of `CModel.results`."""
    found = folded.finish(network.raw(folded.facts.inside(rows)), rows)
    parts = [found.mean, found.std] if isinstance(found, MeanStd) else [found.probs]
    return parts if found.epistemic is None else [*parts, found.epistemic]
