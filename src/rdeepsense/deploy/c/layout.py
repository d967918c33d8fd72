"""How much memory the C of a model takes: constant tables, scratch memory, code and stack.

All of it follows from the `Dimensions` of a model, which are known before the model is trained.
`tables` and `scratch` are exact. The generator writes tables and macros from them; a budget and the
report of an export add up the same entries. Only a compiler knows code and stack. For these there
are upper bounds, which tests compare with compiled firmware.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rdeepsense.adaptation.rates import STRETCHES
from rdeepsense.compact_novelty import NUMBERS, CompactNovelty
from rdeepsense.deploy.c.inputs import CLive, CModel, StoredGraph
from rdeepsense.deploy.folded.model import SINE_TERMS, VarianceReduction
from rdeepsense.deploy.quantise import BLOCK
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError

# Bytes of each C type, which are also its alignment on the processors that this is for.
BYTES = {"float": 4, "int32_t": 4, "uint32_t": 4, "uint16_t": 2, "int8_t": 1, "uint8_t": 1,
         "int64_t": 8}  # fmt: skip
LINE = 64  # bytes of a cache line
LARGE = 4_096  # bytes of an int8 layer that begins on a cache line
ON_A_LINE = "ON_A_LINE "

# Upper bounds in bytes of what GCC -O2 makes of a model for Cortex-M3, M4, M7 and M55, without the
# compiler's own library: code with the constants beside it, and stack.
CODE = {"float32": 1_664, "float16": 2_048, "int8": 3_648}
CODE_OF_EMBEDDING = {"float32": 704, "float16": 704, "int8": 544}
CODE_OF_ENCODING = 192
CODE_OF_LAYER = 20
STACK = {"float32": 224, "float16": 336, "int8": 368}
# The largest model of each kind is at most this far below, which tests assert.
CODE_SLACK, STACK_SLACK = 320, 64


@dataclass(frozen=True)
class Dimensions:
    """What sizes depend on. Of a novelty and of what learns, only the shapes are read.

    Attributes
    ----------
    inputs : numbers that the network reads of a row, or of one time of a window.
    outputs : targets, or classes.
    widths : numbers that the first layer reads, hidden layers, columns of the last layer.
    dtypes : type of the weights of each layer; empty for networks of windows.
    embedding : frequencies and width of the embedding of each input.
    laplace : rows of the matrix of the epistemic part.
    classes, shifted, guard, takes_nan, refuses : whether outputs are classes, and whether the model
        has the tables `shift`, those of the guard, `takes_nan` and `refuse`.
    window : times of a window; None where rows are those of a table.
    many : whether the tables are for a library that predicts many rows.
    """

    inputs: int
    outputs: int
    widths: tuple[int, ...]
    dtypes: tuple[str, ...]
    embedding: tuple[int, int] | None = None
    encoding: Encoding | None = None
    laplace: int = 0
    classes: bool = False
    shifted: bool = True
    guard: bool = True
    takes_nan: bool = True
    refuses: bool = False
    novelty: CompactNovelty | None = None
    narrowing: VarianceReduction | None = None
    live: CLive | None = None
    window: int | None = None
    many: bool = False

    @classmethod
    def planned(
        cls,
        inputs: int,
        outputs: int,
        widths: Sequence[int],
        dtype: str,
        embedding: tuple[int, int] | None = None,
        encoding: Encoding | None = None,
    ) -> Dimensions:
        """Return those of a network before training, with every table that training may add.

        `widths` are the hidden layers and the columns of the last one; as many columns as outputs
        are classes. float16 counts as float32, because layers may have to stay that.
        """
        read = inputs * (1 + (embedding or (0, 0))[1])
        stored = "int8" if dtype == "int8" else "float32"
        classes = widths[-1] == outputs
        return cls(
            inputs,
            outputs,
            (read, *widths),
            (stored,) * len(widths),
            embedding,
            encoding,
            classes=classes,
        )

    @classmethod
    def of(cls, model: CModel, many: bool = False) -> Dimensions:
        """Return those of a model, or say which of its parts do not fit together."""
        network, embedding = model.network, model.network.embedding
        found = cls(
            model.network_inputs,
            model.outputs,
            model.widths,
            tuple(str(layer.weight.dtype) for layer in network.layers),
            None if embedding is None else _embedding_of(embedding.weight.shape),
            model.encoding,
            0 if model.laplace is None else len(model.laplace.root),
            classes=model.spread is None or model.shift is None,
            shifted=model.is_shifted,
            guard=model.guard is not None,
            takes_nan=model.missing != "refuse",
            refuses=model.refusal is not None and not model.is_classifier,
            novelty=model.novelty,
            narrowing=model.narrowing,
            live=model.live,
            window=model.window if isinstance(network, StoredGraph) else None,
            many=many,
        )
        found.check()
        return found

    @property
    def columns(self) -> int:
        """The numbers of a row of the caller, at one time of a window."""
        return self.inputs if self.encoding is None else self.encoding.inputs

    @property
    def is_int8(self) -> bool:
        return "int8" in self.dtypes

    @property
    def hidden(self) -> int:
        """Width of the last hidden layer."""
        return self.widths[-2] if len(self.widths) > 2 else 0

    @property
    def room(self) -> int:
        """Inputs that a layer has at most, in fours."""
        return up(max(self.widths[:-1]), 4)

    @property
    def sums(self) -> int:
        """Outputs that a layer has at most; of int8 whole blocks."""
        return up(max(self.widths[1:]), BLOCK if self.is_int8 else 1)

    @property
    def waves(self) -> int:
        """Multiply-adds of the embedding of an input."""
        frequencies, width = self.embedding or (0, 0)
        return frequencies * (1 + 2 * SINE_TERMS) + 2 * frequencies * width

    @property
    def multiply_adds(self) -> int:
        """Of one prediction of a network of layers, without an epistemic part."""
        return self.inputs * self.waves + sum(a * b for a, b in pairwise(self.widths))

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        if self.window is not None:
            return
        layers, first, inputs = len(self.widths) - 1, self.widths[0], self.inputs
        if len(self.dtypes) != layers:
            raise InputError(f"the network has {len(self.dtypes)} layers, the model {layers}")
        if self.encoding is not None and self.encoding.width != inputs:
            raise InputError(
                f"the encoding makes {self.encoding.width} numbers of a row, not {inputs}"
            )
        if self.embedding is not None and first != inputs * (1 + self.embedding[1]):
            raise InputError(
                f"the first layer reads {first} numbers, which are not {inputs} inputs and "
                f"{self.embedding[1]} more of each"
            )
        if self.embedding is None and first != inputs:
            raise InputError(f"the first layer reads {first} numbers of {inputs} inputs")
        if self.laplace and self.laplace - 1 not in (self.hidden, self.hidden + inputs):
            raise InputError(
                f"the epistemic matrix has {self.laplace} rows, which do not fit the layers"
            )


@dataclass(frozen=True)
class Array:
    """An array in C: a table, or a member of a struct.

    `pad` is a macro that says how many zeros follow the numbers of a table, and `align` one that
    aligns it. A compiler gives both their values, see `Target`.
    """

    kind: str
    name: str
    count: int
    pad: str = ""
    align: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of its numbers."""
        return BYTES[self.kind] * self.count


@dataclass(frozen=True)
class Target:
    """How GCC -O2 lays out tables on a processor.

    Attributes
    ----------
    word : alignment of an array.
    aligned : alignment of an array that fills a vector, unless its definition says another.
    vector : bytes of a vector; 0 where there are none.
    pad : the macro PAD, by the type of the array.
    """

    word: int = 4
    aligned: int = 4
    vector: int = 0
    pad: Mapping[str, int] = field(default_factory=dict)

    def bytes(self, array: Array) -> int:
        """Return the size of a table with the zeros behind its numbers."""
        return array.bytes + bool(array.pad) * BYTES[array.kind] * self.pad.get(array.kind, 0)

    def alignment(self, array: Array) -> int:
        """Return what the address of a table is a multiple of."""
        return self.word if array.align or self.bytes(array) < self.vector else self.aligned


CORTEX_M = Target()  # M3, M4, M7
HELIUM = Target(aligned=8, vector=16, pad={"int8_t": 16})  # M55


def flash_bytes(arrays: Sequence[Array], target: Target = CORTEX_M) -> int:
    """Return the size of the section of the tables, of which GCC lays out the last one first."""
    end = 0
    for array in reversed(arrays):
        end = up(end, target.alignment(array)) + target.bytes(array)
    return up(end, target.word)


def struct_bytes(members: Iterable[Array]) -> int:
    """Return what sizeof says of a struct."""
    end = largest = 0
    for member in members:
        step = BYTES[member.kind]
        end, largest = up(end, step) + member.bytes, max(largest, step)
    return up(end, largest or 1)


def tables(d: Dimensions) -> list[Array]:
    """Return the tables of a model in the order of weights.c; of windows, those beside the steps.

    Names have no prefix yet.
    """
    return [
        *_layers(d),
        *_embedding(d),
        *_outputs(d),
        *_novelty(d),
        *_laplace(d),
        *_learning(d),
        *_encoding(d),
    ]


def begin_of(end: int, size: int) -> int:
    """Return where an int8 layer of this size begins behind the one that ends here.

    A large layer begins on a cache line, so that wide registers read no line twice.
    """
    return up(end, LINE) if size >= LARGE else end


def begins(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Return where the weights of each int8 layer begin in their table, and its length."""
    found, end = [], 0
    for size in sizes:
        found.append(begin_of(end, size))
        end = found[-1] + size
    return found, end


def int8_sizes(d: Dimensions) -> list[int]:
    """Return the bytes of the weights of each int8 layer, whose inputs lie in fours."""
    return [up(before, 4) * width for before, width in pairwise(d.widths)]


def column_floats(width: int, many: bool) -> int:
    """Return how far apart columns of float weights lie: `APART` in C.

    For many rows they lie on cache lines, an odd number of them apart.
    """
    return up(width, 16) | 16 if many and width >= LINE else width


def scratch(d: Dimensions) -> list[Array]:
    """Return the members of `work` of a network of layers, in their order."""
    wide = [] if d.encoding is None else [Array("float", "wide", d.inputs)]
    embedded = []
    if d.embedding is not None:
        embedded = [Array("float", "wave", 2 * d.embedding[0])]
        embedded += [Array("float", "value", d.embedding[1])]
    if d.is_int8:
        return [
            Array("int32_t", "sum", d.sums),
            Array("float", "raw", d.widths[-1]),
            *wide,
            *embedded,
            *([] if d.live is None else [Array("float", "step", 1)]),
            Array("uint8_t", "byte", d.room),
            Array("uint16_t", "room", d.room // 2),  # a union, whose other part has bytes
        ]
    counted = d.live is not None or d.narrowing is not None
    return [
        Array("float", "value", d.room),
        Array("float", "raw", d.sums),
        *wide,
        *([Array("float", "laplace", d.laplace)] if d.laplace else []),
        *embedded,
        *([Array("uint32_t", "count", 1)] if counted else []),
        Array("uint16_t", "index", d.room),
    ]


@dataclass(frozen=True)
class Memory:
    """Bytes: exact ones of tables and scratch memory, upper bounds of code and stack."""

    tables: int
    code: int
    scratch: int
    stack: int

    @classmethod
    def of(cls, d: Dimensions, dtype: str) -> Memory:
        """Count those of a network of layers whose weights are of this type."""
        code = CODE[dtype] + CODE_OF_LAYER * len(d.dtypes)
        code += 0 if d.embedding is None else CODE_OF_EMBEDDING[dtype]
        code += 0 if d.encoding is None else CODE_OF_ENCODING
        return cls(flash_bytes(tables(d)), code, struct_bytes(scratch(d)), STACK[dtype])

    @property
    def flash(self) -> int:
        return self.tables + self.code

    @property
    def ram(self) -> int:
        return self.scratch + self.stack


def up(value: int, step: int) -> int:
    """Round up to a multiple."""
    return -(-value // step) * step


def _embedding_of(shape: tuple[int, ...]) -> tuple[int, int]:
    _, waves, width = shape
    return waves // 2, width


def _layers(d: Dimensions) -> list[Array]:
    if d.window is not None:
        return _floats(d.inputs, "centre", "per_scale", "offset")
    found = _floats(
        d.inputs, "centre", "per_step" if d.is_int8 and not d.embedding else "per_scale"
    )
    if d.is_int8:
        found.append(Array("int8_t", "weights", begins(int8_sizes(d))[1], "PAD", ON_A_LINE))
        for k, width in enumerate(d.widths[1:]):
            found += _floats(width, f"bias_{k}", f"factor_{k}")
        return [*found, *_floats(d.widths[-1], "head_bias")]
    for k, (before, width) in enumerate(pairwise(d.widths)):
        count = before * column_floats(width, d.many)
        align = ON_A_LINE if d.many and width >= LINE else ""
        kind, pad = ("uint16_t", "PAD") if d.dtypes[k] == "float16" else ("float", "")
        found.append(Array(kind, f"weight_{k}", count, pad, align))
        found += _floats(width, f"bias_{k}")
    return found


def _embedding(d: Dimensions) -> list[Array]:
    if d.embedding is None:
        return []
    frequencies, width = d.embedding
    return [
        *_floats(d.inputs * frequencies, "frequency"),
        *_floats(d.inputs * 2 * frequencies * width, "embedding_weight"),
        *_floats(d.inputs * width, "embedding_bias"),
    ]


def _outputs(d: Dimensions) -> list[Array]:
    """Return the tables of outputs and guard, which a model has whatever its network is."""
    found = []
    if not d.classes:
        found += _floats(d.outputs, "spread", *["shift"] * d.shifted)
    if d.guard:
        found += _floats(d.columns, "low", "high") + _floats(d.outputs, "fallback")
        found += [Array("int8_t", "takes_nan", d.columns)] if d.takes_nan else []
    return found + (_floats(d.outputs, "refuse") if d.refuses else [])


def _novelty(d: Dimensions) -> list[Array]:
    own = d.novelty
    if own is None:
        return []
    inputs = d.columns if d.encoding is None else len(d.encoding.numbers)
    columns = inputs * (NUMBERS if (d.window or 1) > 1 else 1)
    if own.lines.shape != (columns, 4):
        raise InputError(f"the novelty has {len(own.lines)} columns, the inputs have {columns}")
    k, gaussians, knots = own.components, own.gaussians, columns * own.knots.shape[1]
    return [
        *_floats(4 * columns, "novelty_lines"),
        *_floats(knots, "novelty_knots"),
        Array("int8_t", "novelty_scores", knots),
        Array("int8_t", "novelty_axes", columns * k),
        *_floats(k, "novelty_steps"),
        Array("int8_t", "novelty_bytes", gaussians * k * (k + 1) // 2),
        *_floats(gaussians * k, "novelty_sizes", "novelty_means"),
        *_floats(gaussians, "novelty_levels"),
        *(_floats(inputs, "novelty_centre") if d.takes_nan else []),
    ]


def _laplace(d: Dimensions) -> list[Array]:
    if not d.laplace:
        return []
    triangle = d.laplace * (d.laplace + 1) // 2
    return _floats(triangle, "root") + _floats(d.outputs, "gain", "epistemic")


def _learning(d: Dimensions) -> list[Array]:
    """Return the tables of what was learnt from labels, or will be."""
    found = []
    if d.narrowing is not None:
        count, size = d.narrowing.left.shape[:2]
        found += _floats(count * trapezoid(d.hidden + 1, size), "narrow_turned")
        found += _floats(count * size * (size + 1) // 2, "narrow_left")
        found += _floats(d.outputs * count, "narrow_shares")
    if d.live is not None:
        filters = d.live.filters
        found += _floats(trapezoid(d.hidden + 1, d.live.directions), "turned")
        found += _floats(d.outputs, "unit", "interval") + _floats(filters, "forget", "fade")
        found += _floats((filters + 1) * len(STRETCHES), "prior")
        found += _floats(len(STRETCHES), "stretch")
        found += [] if d.live.freedom is None else _floats(d.outputs, "freedom")
    return found


def _encoding(d: Dimensions) -> list[Array]:
    if d.encoding is None:
        return []
    categories = d.encoding.categories
    found = [
        Array("int32_t", "numbers", len(d.encoding.numbers)),
        Array("int32_t", "flags", len(d.encoding.flagged)),
        *(
            Array("int32_t", name, len(categories))
            for name in ("categories", "category_levels", "category_width")
        ),
        *_floats(sum(c.block * c.width for c in categories), "vectors"),
        *(_floats(d.columns, "levels") if categories and d.guard else []),
    ]
    return [array for array in found if array.count]


def trapezoid(rows: int, size: int) -> int:
    """Return how many numbers the lower triangle of a matrix (rows, size) has."""
    return size * (size + 1) // 2 + (rows - size) * size


def _floats(count: int, *names: str) -> list[Array]:
    return [Array("float", name, count) for name in names]
