"""What the C of a model is made of. Nothing else in this folder looks into a folded model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdeepsense import link as links
from rdeepsense.deploy.c.text import identifier
from rdeepsense.deploy.folded.model import Floats, Folded, Intervals, Texts
from rdeepsense.deploy.networks import FloatNetwork, Singles
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.errors import InputError
from rdeepsense.link import Column, Link, LocationWidth, Softmax

WIDEST = 65_535  # indices are 16 bits


@dataclass(frozen=True)
class CLaplace:
    """|[h, z, 1] root|, and for each output the `gain` of the variance and the epistemic `std`."""

    root: Singles  # square, upper triangular
    gain: Floats
    std: Floats


@dataclass(frozen=True)
class CModel:
    """A network, what its columns mean, and what is said of it.

    `sure` is the largest std of each output, or the least probability, that `is_sure` accepts.
    """

    name: str
    network: FloatNetwork | Int8Network
    widths: tuple[int, ...]  # inputs, hidden layers, columns of the last layer
    link: Link
    spread: Floats | None  # None, as shift is, for classes
    shift: Floats | None
    laplace: CLaplace | None
    sure: Floats | None
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

    @property
    def inputs(self) -> int:
        return self.widths[0]

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
    def results(self) -> tuple[str, ...]:
        """What predict writes, one number for each output."""
        first = ("probs",) if self.is_classifier else ("mean", "std")
        return first if self.laplace is None else (*first, "epistemic")


def c_model(
    folded: Folded, network: FloatNetwork | Int8Network, name: str, sure: Floats | None
) -> CModel:
    """Take from a folded model what its C needs."""
    if max(folded.widths) > WIDEST:
        raise InputError(f"a layer of {max(folded.widths)} is too wide; at most {WIDEST}")
    laplace = None
    if folded.doubt is not None:
        assert isinstance(network, FloatNetwork)
        assert network.root is not None
        laplace = CLaplace(network.root, folded.doubt.gain, folded.doubt.std)
    return CModel(
        name=identifier(name),
        network=network,
        widths=folded.widths,
        link=link_of(folded),
        spread=folded.spread,
        shift=folded.shift,
        laplace=laplace,
        sure=sure,
        intervals=folded.intervals,
        missing=folded.missing,
        centre=folded.centre,
        scale=folded.scale,
        head=folded.head,
        classes=folded.classes,
        features=folded.features,
        feature_units=folded.feature_units,
        targets=folded.targets,
        target_units=folded.target_units,
        version=folded.version,
        source=folded.source,
    )


def link_of(folded: Folded) -> Link:
    """The link of a folded model's head."""
    width = links.add(links.softplus(Column(1)), folded.floor)
    known: dict[str, Link] = {
        "gaussian": LocationWidth(Column(0), links.sqrt(width)),
        "student": LocationWidth(Column(0), width),
        "point": LocationWidth(Column(0), None),
        "categorical": Softmax(),
    }
    return known[folded.head]


def predicted(
    folded: Folded, network: FloatNetwork | Int8Network, rows: NDArray[np.float32]
) -> list[NDArray[np.float64]]:
    """What predict must write for rows, in the order of `CModel.results`."""
    raw = network.raw(rows)
    found = folded.finish(raw)
    parts = [found] if folded.is_classifier else list(found)
    return parts if folded.doubt is None else [*parts, folded.epistemic_of(raw)]
