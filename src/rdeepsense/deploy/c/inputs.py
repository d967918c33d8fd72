"""What the C generator reads of a folded model, and the text of C tokens."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.adaptation import last_layer, rates
from rdeepsense.adaptation.rates import STRETCHES, Rates, prior_weights
from rdeepsense.arrays import Floats, Singles
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.dates import formula
from rdeepsense.deploy.c.stored import StoredGraph
from rdeepsense.deploy.folded.file import check_folded
from rdeepsense.deploy.folded.graph import FoldedGraph, Graph
from rdeepsense.deploy.folded.model import (
    Facts,
    Folded,
    Intervals,
    Layers,
    MeanStd,
    Narrowing,
    Output,
    Texts,
)
from rdeepsense.deploy.quantise import FloatNetwork, Int8Network, StoredNetwork
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import Guard
from rdeepsense.link import Link, Softmax
from rdeepsense.refusal import Refusal

# --------------------------------------------------------------------------------------------------
# Numbers and names as C text. No text from a model file gets into C but through here
# --------------------------------------------------------------------------------------------------

LONGEST_NAME = 16  # C99 promises 31 letters of an external name, and ours add up to 11
PER_LINE = 8
# Degree, micro, ohm, dot and minus, as Unicode's compatible spelling (NFKD) has them.
SPELT = str.maketrans(
    {"\u00b0": "deg", "\u03bc": "u", "\u03a9": "ohm", "\u00b7": ".", "\u2212": "-"}
)


def identifier(name: str) -> str:
    """A prefix for C names out of any text: letters, digits and underscores."""
    if not isinstance(name, str):
        raise InputError(f"name = {name!r:.60} is no text")
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_").lower()
    plain = plain if not plain[:1].isdigit() else f"m{plain}"
    if not plain:
        raise InputError(f"name={name!r} has no letter or digit to make a C name of")
    if len(plain) > LONGEST_NAME:
        raise InputError(f"name={name!r} is too long; at most {LONGEST_NAME} letters")
    return plain


def remark(text: str) -> str:
    """Text that can stand in a C comment: no *, \\, ?, <, > or line break.

    Units keep their sense where they can: m/s² as m/s2, °C as degC, s⁻¹ as s-1.
    """
    plain = unicodedata.normalize("NFKD", text).translate(SPELT)
    return re.sub(r"[^A-Za-z0-9 _.,:;()\[\]%+/=^-]", "_", plain)[:80]


def labelled(
    names: Texts | None,
    units: Texts | None,
    count: int,
    written: Callable[[str], str] = remark,
) -> list[str]:
    """For each the name and, in brackets, the unit, as far as they are known."""
    parts = zip(names or ("",) * count, units or ("",) * count, strict=True)
    return [" ".join([written(n)] * bool(n) + [f"[{written(u)}]"] * bool(u)) for n, u in parts]


def number(value: float) -> str:
    """A float constant that reads back as the same float32."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def table(kind: str, name: str, values: NDArray[Any], size: str | None = None) -> str:
    """The definition of a constant table."""
    flat = values.ravel()
    items = [number(v) for v in flat] if kind == "float" else [str(v) for v in flat.tolist()]
    lines = [", ".join(items[start : start + PER_LINE]) for start in range(0, len(items), PER_LINE)]
    body = ",\n    ".join(lines)
    return f"const {kind} {name}[{size or len(items)}] = {{\n    {body}}};\n"


# --------------------------------------------------------------------------------------------------
# What C needs to learn on in a stream: tables, sizes, constants; the code is `runtime/live.h`
# --------------------------------------------------------------------------------------------------

MAGIC = 0x6C646172  # "radl" in the order of bytes that most processors have
ABOVE = 1e-3  # what rounding may add to a covariance of at most 1
FAR = 100.0  # standard deviations, beyond which a label teaches nothing
FARTHEST = 1e6  # standard deviations, so that likelihoods and squares stay numbers


@dataclass(frozen=True)
class CLive:
    """Rates, and what is computed from the training.

    `turned` is B (hidden + 1, directions), lower triangular, of what the last layer reads in C: in
    its order and units, with the 1 last. `interval` is how many standard deviations the interval of
    the coverage reaches from the mean.
    """

    turned: Floats
    unit: Floats  # (outputs,)
    interval: Floats  # (outputs,)
    freedom: Floats | None  # degrees of freedom (outputs,) of a Student-t
    rates: Rates
    coverage: float

    @property
    def directions(self) -> int:
        """How many numbers psi has."""
        return int(self.turned.shape[1])

    @property
    def filters(self) -> int:
        """How many rates of forgetting there are."""
        return len(self.rates.keep)

    def arrays(self) -> dict[str, Floats]:
        """Return the tables by name; of B, the lower triangle row by row."""
        # What is lost of a factor near 1 has more digits in float32 than the factor itself.
        keep = np.array(self.rates.keep)
        found = {
            "turned": self.turned[np.tril_indices(len(self.turned), m=self.directions)],
            "unit": self.unit,
            "interval": self.interval,
            "forget": 1 - keep,
            "fade": 1 - np.sqrt(keep),
            "prior": prior_weights(self.filters).ravel(),
            "stretch": STRETCHES**2,
        }
        return found if self.freedom is None else {**found, "freedom": self.freedom}

    def sizes(self, name: str) -> list[str]:
        """Return the macros of model.h."""
        return [
            "",
            "/* Of what is learnt in a stream: rates of forgetting, directions of the last hidden",
            f"   layer, spreads of each. Intervals are of {100 * self.coverage:g} %. */",
            f"#define {name}_FILTERS {self.filters}",
            f"#define {name}_DIRECTIONS {self.directions}",
            f"#define {name}_STRETCHES {len(STRETCHES)}",
        ]

    def digest(self, source: str) -> int:
        """Return 32 bits that tell whose a state is: the model's and those of its tables here."""
        found = hashlib.sha256(source.encode())
        for name, array in self.arrays().items():
            found.update(name.encode() + np.ascontiguousarray(array, "<f4").tobytes())
        found.update(repr((self.rates, self.coverage)).encode())
        return int.from_bytes(found.digest()[:4], "little")

    def config(self, hidden: int, source: str) -> list[str]:
        """Return the macros of model.c."""
        own = self.rates
        values = {
            "WITHIN": own.within,
            "ETA": own.eta,
            "ALPHA": 1 - self.coverage,
            "SHARED": rates.SHARE,
            "MOST_OFF": FAR,
            "FARTHEST": last_layer.FARTHEST,
            "MOST_APART": FARTHEST,
            "MOST_LOG_Q": rates.FARTHEST,
            "MOST_COVARIANCE": 1 + ABOVE,
        }
        return [
            f"#define HIDDEN {hidden} /* numbers that the last layer reads */",
            f"#define STATE_MAGIC {MAGIC:#010x}u",
            f"#define STATE_OF {self.digest(source):#010x}u",
            *(f"#define {name} {number(value)}" for name, value in values.items()),
        ]

    def state_bytes(self, outputs: int) -> int:
        """Return the size of the state."""
        n, each = self.directions, len(STRETCHES)
        own = n * (n + 1) // 2 + outputs * n
        return 4 * (self.filters * own + (self.filters + 1) * each + outputs + 5)

    def row_bytes(self, outputs: int) -> int:
        """Return the size of a row that waits for its label."""
        return 4 * (self.directions + 4 * outputs + self.filters * (outputs + 1))

    def multiply_adds(self, outputs: int) -> int:
        """Count those of a label: a product with each covariance, its update, and the weights."""
        n = self.directions
        return self.filters * (n * n + n * (n + 1) + (1 + 2 * outputs) * n)


# --------------------------------------------------------------------------------------------------
# What the C of a model is made of. Nothing else in this folder looks into a folded model
# --------------------------------------------------------------------------------------------------

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
    dated: Texts
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
    def formulas(self) -> dict[int, str]:
        """How the inputs that are made of dates are computed, by their number."""
        found = {k: formula(name, self.dated) for k, name in enumerate(self.features or ())}
        return {k: text for k, text in found.items() if text is not None}

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
        dated=facts.dated,
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
