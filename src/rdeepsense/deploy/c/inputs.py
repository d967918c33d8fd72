"""What the C generator reads of a model: text of C tokens, stored weights, sizes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.adaptation import last_layer, rates
from rdeepsense.adaptation.rates import STRETCHES, Rates, prior_weights
from rdeepsense.arrays import Floats, Singles
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.columns import formula
from rdeepsense.deploy.folded.file import check_folded
from rdeepsense.deploy.folded.graph import (
    Activation,
    Affine,
    Convolution,
    FoldedGraph,
    Graph,
    Gru,
    Linear,
    Lstm,
    Node,
    Recurrent,
    Spectrum,
    Stream,
)
from rdeepsense.deploy.folded.model import (
    Facts,
    Folded,
    Intervals,
    Layers,
    MeanStd,
    Output,
    Texts,
    VarianceReduction,
)
from rdeepsense.deploy.quantise import FloatNetwork, Int8Network, StoredNetwork
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH, Guard
from rdeepsense.link import Link, Softmax
from rdeepsense.refusal import Refusal

# --------------------------------------------------------------------------------------------------
# Int8 layers: integer weights, a factor for each output, rounded inputs
#
# Of a vector x that such a layer reads, with its largest size t = max |x|,
#
#     q = floor(x 255 / t + 1/2),   or with signs   q = floor(x 127 / t + 128 + 1/2) - 128
#
# are multiplied, and x is taken for q t / 255, or q t / 127. A Linear layer rounds each row by
# itself, a convolution all that it reads at once, a recurrent layer its states. Layers that read
# what no layer has made yet, inputs or spectra, of which some may be far larger than others, have
# two bytes:
#
#     q = floor(x levels / t + levels + 3/2) - (levels + 1)
#
# with at most 32,767 levels, and so few that sums of products stay within 32 bits. `signed` says
# whether there may be signs at all; where there are none, C needs no sums of weights.
# --------------------------------------------------------------------------------------------------

LEAST = np.float32(1e-30)  # a vector that is nowhere larger counts as zero
MOST_LEVELS = 32_767
LARGEST_BYTE = 127
Weighted = Linear | Convolution | Recurrent


def rounded(x: Floats, levels: int = 0) -> Floats:
    """Round vectors along the last axis, in float32 as C does; `levels` are those of two bytes."""
    narrow = x.astype(np.float32)
    top = np.abs(narrow).max(-1, keepdims=True)
    signed = (narrow < 0).any(-1, keepdims=True)
    most = np.float32(levels) if levels else np.where(signed, np.float32(127), np.float32(255))
    zero = most + np.float32(1) if levels else np.where(signed, np.float32(128), np.float32(0))
    none = top < LEAST
    top = np.where(none, np.float32(1), top)
    whole = np.floor(narrow * (most / top) + (zero + np.float32(0.5))) - zero
    return np.where(none, 0.0, whole.astype(np.float64) * (top / most))


def levels_of(inputs: int) -> int:
    """Return how many levels two bytes may have so that W q of so many inputs fits 32 bits."""
    return min(MOST_LEVELS, ((1 << 31) // (LARGEST_BYTE * inputs) - 1) // 2)


@dataclass(frozen=True)
class RoundedLinear(Linear):
    levels: int = 0
    signed: bool = True

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.weight.shape[1])
        return super().run(rounded(x, self.levels).reshape(len(x), -1))


@dataclass(frozen=True)
class RoundedConvolution(Convolution):
    levels: int = 0
    signed: bool = True

    def run(self, *values: Floats) -> Floats:
        return super().run(rounded(values[0], self.levels))


@dataclass(frozen=True)
class RoundedGru(Gru):
    def products(self, h: Floats) -> Floats:
        return super().products(rounded(h))


@dataclass(frozen=True)
class RoundedLstm(Lstm):
    def products(self, h: Floats) -> Floats:
        return super().products(rounded(h))


ROUNDED: dict[type[Node], type[Node]] = {
    Linear: RoundedLinear,
    Convolution: RoundedConvolution,
    Gru: RoundedGru,
    Lstm: RoundedLstm,
}


def as_rounded(node: Node, reads: Reads) -> Node:
    """Return the layer that rounds what it reads."""
    own = {field.name: getattr(node, field.name) for field in fields(node)}
    if isinstance(node, Linear | Convolution):
        inputs = node.weight.size // len(node.weight)
        own["levels"] = levels_of(inputs) if reads.raw else 0
        own["signed"] = reads.signed or reads.raw  # two bytes have an offset always
    return ROUNDED[type(node)](**own)


@dataclass(frozen=True)
class Reads:
    """What is known of a value: that no layer has made it, and that it may have signs."""

    raw: bool
    signed: bool = True


def reads_of(nodes: tuple[Node, ...], raw: bool) -> tuple[Reads, ...]:
    """Tell what each step reads; `raw`: whether the row itself is so."""
    values = [Reads(raw)]
    found = []
    for node in nodes:
        read = [values[k] for k in node.reads]
        found.append(Reads(any(one.raw for one in read), any(one.signed for one in read)))
        values.append(_made(node, found[-1]))
    return tuple(found)


def _made(node: Node, reads: Reads) -> Reads:
    """Tell what is known of the value that a step makes."""
    if isinstance(node, Activation):
        return Reads(reads.raw and node.name == "relu", node.name == "tanh")
    if isinstance(node, Linear | Convolution | Affine):
        return Reads(reads.raw and isinstance(node, Affine), not node.relu)
    if isinstance(node, Recurrent):
        return Reads(raw=False)
    return Reads(reads.raw, reads.signed or isinstance(node, Spectrum))


# --------------------------------------------------------------------------------------------------
# A graph with its weights in the type of the export
#
# Weights of Linear layers, convolutions and recurrent layers are float32, or int8 with one factor
# for each output, and then layers round what they read to bytes (`rounded`); everything else,
# states among it, is float32. On a device
#
#     z = (x - centre) per_scale + offset
#
# in float32, where the offset is what the float32 centre lacks of the true one.
# --------------------------------------------------------------------------------------------------

DTYPES = ("float32", "int8")


@dataclass(frozen=True)
class StoredGraph:
    """A graph whose weights are numbers of their type, in float64."""

    dtype: str
    centre: Singles
    per_scale: Singles
    offset: Singles
    graph: Graph
    stream: Stream | None
    reach: float = REACH
    embedding: None = None
    layers: tuple[()] = ()

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute what `Graph.raw` gives, with the weights as stored.

        C goes interval by interval where there is a stream, so these are what is rounded.
        """
        if self.stream is None:
            return self.graph.raw(X)
        return self.stream.raw(self.stream.found(self.graph.read(X)))


def as_stored(folded: FoldedGraph, dtype: str) -> StoredGraph:
    """Round the weights of a graph, and of its stream."""
    if dtype not in DTYPES:
        accepted = ", ".join(map(repr, DTYPES))
        raise InputError(f"dtype={dtype!r} is for fully-connected networks; accepted: {accepted}")
    graph, stream = folded.graph, folded.stream
    with np.errstate(over="ignore", divide="ignore"):
        centre = graph.centre.astype(np.float32)
        per_scale = (1 / graph.scale).astype(np.float32)
        offset = ((centre - graph.centre) / graph.scale).astype(np.float32)
    bad = ~(np.isfinite(centre) & np.isfinite(per_scale) & (per_scale > 0) & np.isfinite(offset))
    if bad.any():
        column = int(np.argmax(bad))
        raise InputError(
            f"input {column} has mean {graph.centre[column]:g} and standard deviation "
            f"{graph.scale[column]:g}, which float32 cannot hold; change its unit"
        )
    if stream is not None:
        stream = replace(
            stream,
            interval=_all(stream.interval, dtype, raw=True),
            step=_all(stream.step, dtype, raw=False),
            last=_all(stream.last, dtype, raw=False),
        )
    nodes = _all(graph.nodes, dtype, raw=True)
    return StoredGraph(dtype, centre, per_scale, offset, replace(graph, nodes=nodes), stream)


def bytes_of(weight: Floats) -> tuple[NDArray[np.int8], Singles]:
    """Return whole numbers from -127 to 127, and the factor of each output; exact if repeated."""
    largest = np.abs(weight.reshape(len(weight), -1)).max(1)
    factor = np.where(largest > 0, largest / LARGEST_BYTE, 1.0).astype(np.float32)
    shape = (-1, *[1] * (weight.ndim - 1))
    whole = np.rint(weight / factor.astype(np.float64).reshape(shape))
    return np.clip(whole, -LARGEST_BYTE, LARGEST_BYTE).astype(np.int8), factor


def _all(nodes: tuple[Node, ...], dtype: str, raw: bool) -> tuple[Node, ...]:
    reads = reads_of(nodes, raw)
    return tuple(
        _stored(node, dtype, own) if isinstance(node, Weighted) else node
        for node, own in zip(nodes, reads, strict=True)
    )


def _stored(node: Weighted, dtype: str, reads: Reads) -> Node:
    if dtype != "int8":
        return replace(node, weight=node.weight.astype(np.float32).astype(np.float64))
    whole, factor = bytes_of(node.weight)
    shape = (-1, *[1] * (node.weight.ndim - 1))
    return as_rounded(replace(node, weight=whole * factor.astype(np.float64).reshape(shape)), reads)


# --------------------------------------------------------------------------------------------------
# Numbers and names as C text, the only path for text into C
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
# Tables, sizes and constants of a live model; code: `runtime/live.h`
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
# Everything that the C generator reads of a folded model
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
    narrowing: VarianceReduction | None = None
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
