"""How the C is emitted: configuration header, tables of weights, model.c and model.h."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.compact_novelty import FARTHEST, FURTHEST, SCORE_STEP
from rdeepsense.data.columns import CLOCK
from rdeepsense.deploy.c.inputs import (
    CLaplace,
    CLive,
    CModel,
    StoredGraph,
    c_model,
    labelled,
    number,
    remark,
    table,
)
from rdeepsense.deploy.c.layout import (
    Array,
    Dimensions,
    begins,
    column_floats,
    flash_bytes,
    int8_sizes,
    scratch,
    struct_bytes,
    tables,
    trapezoid,
    up,
)
from rdeepsense.deploy.folded.graph import FoldedGraph
from rdeepsense.deploy.folded.model import Folded, VarianceReduction
from rdeepsense.deploy.quantise import BYTE, FloatNetwork, Int8Network, StoredEmbedding
from rdeepsense.encoding import Category, Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import EMBEDDING_REACH, LARGEST
from rdeepsense.link import OPERATIONS, Expression, LocationWidth, evaluate
from rdeepsense.status import Status

# --------------------------------------------------------------------------------------------------
# Assembly of runtime files into one file of an export
#
# The runtime is C that compiles as it lies there, with switches (`#if LAPLACE`) for what only some
# models need. An export is the same text, less what its switches turn off, with the files it
# includes in their places, and with the model's own prefix: `model_predict` of the runtime is
# `gait_predict`.
# --------------------------------------------------------------------------------------------------

RUNTIME = Path(__file__).parent / "runtime"
SWITCHES = "switches.h"  # there are none left in an export
INCLUDE = re.compile(r'#include "(\w+\.h)"')
DIRECTIVE = re.compile(r"#(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")


@dataclass(frozen=True)
class Assembly:
    """What a file's text depends on; `sections` stand where it includes a file of their name."""

    name: str
    switches: Mapping[str, bool]
    sections: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: Path) -> str:
        """The text of a runtime file, as the export has it."""
        return re.sub(r"\n{3,}", "\n\n", "".join(self._lines(path, set())))

    def _lines(self, path: Path, included: set[str]) -> Iterator[str]:
        lines = path.read_text().splitlines(keepends=True)
        for line in select_lines(lines, self.switches):
            found = INCLUDE.match(line)
            if found and found[1] == SWITCHES:
                continue
            if found and found[1] in self.sections:
                yield self.sections[found[1]]
            elif found and found[1] != "model.h" and (RUNTIME / found[1]).exists():
                yield from self._lines(RUNTIME / found[1], included)
            elif not (line.startswith("#include <std") and line in included):
                included.add(line)
                yield renamed(line, self.name)


def renamed(text: str, name: str) -> str:
    """The text with this prefix in place of the runtime's own, `model`."""
    text = re.sub(r"\bmodel_(?=\w)", f"{name}_", text)
    return re.sub(r"\bMODEL_(?=\w)", f"{name.upper()}_", text)


def select_lines(lines: list[str], switches: Mapping[str, bool]) -> Iterator[str]:
    """The lines that the preprocessor would leave, as far as switches alone decide it.

    A condition of switches is one without parentheses, such as `A && !B || C`. Any other, such as
    one on the processor, stays with all its branches.
    """
    # Of every open #if: whether it is ours, whether this branch is on, whether one has been.
    depth: list[tuple[bool, bool, bool]] = []
    for line in lines:
        found = DIRECTIVE.match(line)
        if found is None:
            if all(on for _, on, _ in depth):
                yield line
            continue
        word, condition = found[1], found[2]
        holds = _holds(condition, switches) if word in ("if", "elif") else None
        if word in ("if", "ifdef", "ifndef"):
            ours = holds is not None
            depth.append((ours, holds is not False, holds is not False))
        else:
            ours, _, before = depth.pop()
            if ours and word == "elif" and holds is None:
                raise ValueError(
                    f"{line.strip()}: part of an #if on switches, but not on them alone"
                )
            if ours and word != "endif":
                depth.append((True, not before and holds is not False, before or holds is True))
            elif word != "endif":
                depth.append((False, True, True))
        if not ours and all(on for _, on, _ in depth):
            yield line


def _holds(condition: str, switches: Mapping[str, bool]) -> bool | None:
    """Whether a condition of switches holds; None for any other."""
    alternatives = [[term.strip() for term in one.split("&&")] for one in condition.split("||")]
    if any(term.removeprefix("!") not in switches for one in alternatives for term in one):
        return None
    return any(
        all(switches[term.removeprefix("!")] != term.startswith("!") for term in one)
        for one in alternatives
    )


# --------------------------------------------------------------------------------------------------
# Categories and missing values in C: tables, sizes, names of levels
# --------------------------------------------------------------------------------------------------

LONGEST_MACRO = 63  # letters that C99 tells apart
ABOUT = """
/* Categories are given as the number of their level, as a float. Any other number is a level that
   was never seen. */"""


def encoding_switches(encoding: Encoding | None) -> dict[str, bool]:
    """What of the runtime's encoding a model needs."""
    return {
        "ENCODED": encoding is not None,
        "NUMBERED": encoding is not None and bool(encoding.numbers),
        "FLAGGED": encoding is not None and bool(encoding.flagged),
        "CODED": encoding is not None and bool(encoding.categories),
    }


def encoding_sizes(encoding: Encoding | None) -> list[str]:
    """The part of config.h that is the encoding's."""
    if encoding is None:
        return []
    found = (
        ("NUMBERS", len(encoding.numbers), "of a row"),
        ("FLAGS", len(encoding.flagged), "of numbers that may be missing"),
        ("CATEGORIES", len(encoding.categories), "of a row"),
    )
    return [f"#define {name} {count} /* {what} */" for name, count, what in found if count]


def encoding_arrays(model: CModel) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """The tables of the encoding, by name: floats, and whole numbers of 32 bits."""
    encoding = model.encoding
    if encoding is None:
        return {}
    found = {"numbers": np.array(encoding.numbers, np.int32)}
    found["flags"] = np.array(encoding.flagged, np.int32)
    categories = encoding.categories
    found["categories"] = np.array([c.column for c in categories], np.int32)
    found["category_levels"] = np.array([len(c.levels) for c in categories], np.int32)
    found["category_width"] = np.array([c.width for c in categories], np.int32)
    tables: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {**found}
    if categories:
        tables["vectors"] = np.concatenate([c.vectors.ravel() for c in categories])
        if model.guard is not None:
            tables["levels"] = encoding.counts
    return {name: values for name, values in tables.items() if values.size}


def level_macros(model: CModel) -> list[str]:
    """The part of sizes.h that names levels: a macro for each, with its code."""
    if model.encoding is None or not model.encoding.categories:
        return []
    lines, used = [ABOUT], set[str]()
    for category in model.encoding.categories:
        feature = model.features[category.column] if model.features else f"x{category.column}"
        lines.append(f"/* x[{category.column}], {remark(feature)}: */")
        for code, level in enumerate(category.levels):
            macro = _macro(model.name, feature, level, code, used)
            lines.append(f"#define {macro} {code} /* {remark(level)} */")
    return lines


def about(category: Category) -> str:
    """What the header says of an input that is a category."""
    return f"the number of its level, one of {len(category.levels)}"


def _macro(name: str, feature: str, level: str, code: int, used: set[str]) -> str:
    parts = [re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") for part in (feature, level)]
    macro = "_".join([name, "LEVEL", *filter(None, parts)]).upper()
    if len(macro) > LONGEST_MACRO or macro in used or not parts[1]:
        macro = f"{macro[: LONGEST_MACRO - 8]}_{code}"
    while macro in used:
        macro = f"{macro}_"
    used.add(macro)
    return macro


# --------------------------------------------------------------------------------------------------
# Links as C macros of the columns `raw` of output `k`
# --------------------------------------------------------------------------------------------------

LINK_FUNCTIONS = {"softplus": "softplus", "exp": "exp_of", "sqrt": "root", "square": "square"}
SIGNS = {"add": "+", "multiply": "*"}


class CArithmetic:
    """Expressions of C; `used` gathers the functions in them, by their operation."""

    def __init__(self, outputs: str) -> None:
        self.outputs = outputs
        self.used: set[str] = set()

    def column(self, number: int) -> str:
        start = {0: "", 1: f"{self.outputs} + "}.get(number, f"{number} * {self.outputs} + ")
        return f"raw[{start}k]"

    def constant(self, value: float) -> str:
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float32(value)):
                raise InputError(f"the link holds {value}, which float32 cannot hold")
        return number(value)

    def apply(self, operation: str, *arguments: str) -> str:
        if operation in SIGNS:
            return f"({f' {SIGNS[operation]} '.join(arguments)})"
        self.used.add(operation)
        (argument,) = arguments
        # Only sums and products begin with a parenthesis, and it closes at their end.
        argument = argument if argument.startswith("(") else f"({argument})"
        return f"{LINK_FUNCTIONS[operation]}{argument}"


def macros(link: LocationWidth, outputs: str, laplace: bool) -> tuple[str, set[str]]:
    """LOCATION and WIDTH, with a Laplace part VARIANCE; and the operations that they use.

    That part is added to the variance, width = root(variance + gain size^2), so it needs a root.
    """
    arithmetic = CArithmetic(outputs)
    width: Expression | None = link.variance if laplace else link.width
    parts = {
        "LOCATION": evaluate(link.location, arithmetic),
        "VARIANCE" if laplace else "WIDTH": evaluate(0.0 if width is None else width, arithmetic),
    }
    text = "".join(f"#define {name}(raw, k) {body}\n" for name, body in parts.items())
    return text, arithmetic.used


# --------------------------------------------------------------------------------------------------
# Tables for UNSURE and UNLIKE; code: `runtime/refuse.h`, `runtime/novelty.h`
# --------------------------------------------------------------------------------------------------

UNLIKE = """
/* A row whose surprise is above this is MODEL_UNLIKE; one healthy row in a hundred is. */"""
SUMMARY = 7  # numbers that are kept of an interval, of each channel


def watch_arrays(model: CModel) -> dict[str, NDArray[Any]]:
    """Return the tables by name; of factors the upper triangle, column by column."""
    found: dict[str, NDArray[Any]] = {}
    if model.refusal is not None and not model.is_classifier:
        found["refuse"] = 1 / (model.refusal.spread * model.outputs)
    if (own := model.novelty) is None:
        return found
    columns, rows = np.tril_indices(own.components)
    return found | {
        "novelty_lines": own.lines,
        "novelty_knots": own.knots,
        "novelty_scores": own.scores.astype(np.int8),
        "novelty_axes": own.axes.astype(np.int8),
        "novelty_steps": own.axis_steps,
        "novelty_bytes": own.factors[:, rows, columns].astype(np.int8),
        "novelty_sizes": own.factor_steps,
        "novelty_means": own.means,
        "novelty_levels": own.constants,
        **({} if model.missing == "refuse" else {"novelty_centre": own.centre}),
    }


def watch_sizes(model: CModel, name: str) -> list[str]:
    """Return the macros of model.h."""
    if model.novelty is None:
        return []
    lines = [UNLIKE.replace("MODEL", name)]
    lines.append(f"#define {name}_UNLIKE_ABOVE {number(model.novelty.threshold[0])}")
    if model.window > 1:
        lines.append(f"#define {name}_SUMMARY {SUMMARY} /* numbers of a channel of an interval */")
    return lines


def watch_config(model: CModel) -> list[str]:
    """Return the macros of model.c."""
    lines = []
    if model.refusal is not None:
        lines.append(f"#define REFUSED_ABOVE {number(model.refusal.threshold[0])}")
        flags = 0 if model.missing == "mean" else int(Status.MISSING)
        lines.append(f"#define REFUSED_STATUS {flags} /* flags of rows that are always unsure */")
    if (own := model.novelty) is not None:
        sizes = {
            "NOVELTY_INPUTS": _inputs(model),
            "KNOTS": own.knots.shape[1],
            "COMPONENTS": own.components,
            "GAUSSIANS": own.gaussians,
        }
        lines += [f"#define {name} {size}u" for name, size in sizes.items()]
        if model.guard is not None:
            lines.append(f"#define PER_WIDTH {number(1 / own.width[0])} /* of doubt */")
        lines.append(f"#define SCORE_STEP {number(SCORE_STEP)}")
        lines.append(f"#define MOST_SCORE {number(FARTHEST)}")
        lines.append(f"#define MOST_INPUT {number(FURTHEST)}")
    return lines


def _inputs(model: CModel) -> int:
    """Return how many inputs a novelty reads: all but categories."""
    if model.encoding is None:
        return model.channels
    return len(model.encoding.numbers)


# --------------------------------------------------------------------------------------------------
# Tables for the narrower predictions of adapted models; code: `runtime/narrow.h`
# --------------------------------------------------------------------------------------------------


def narrow_arrays(narrowing: VarianceReduction) -> dict[str, Floats]:
    """Return the tables by name: triangles, row by row, one direction after the other."""
    rows, size = narrowing.turned.shape[1:]
    lower, upper = np.tril_indices(rows, m=size), np.triu_indices(size)
    return {
        "narrow_turned": narrowing.turned[:, *lower].ravel(),
        "narrow_left": narrowing.left[:, *upper].ravel(),
        "narrow_shares": narrowing.shares.ravel(),
    }


def narrow_config(narrowing: VarianceReduction, hidden: int) -> list[str]:
    """Return the macros of model.c."""
    count, size = narrowing.left.shape[:2]
    return [
        f"#define HIDDEN {hidden} /* numbers that the last layer reads */",
        f"#define NARROW_COUNT {count} /* directions of the outputs */",
        f"#define NARROW_SIZE {size}",
        f"#define NARROW_TURNED {trapezoid(hidden + 1, size)}",
        f"#define NARROW_LEAST {number(narrowing.least)}",
    ]


# --------------------------------------------------------------------------------------------------
# Values of the constant tables; `layout` has their names and sizes
# --------------------------------------------------------------------------------------------------

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """A constant array; `more` is a macro of the runtime: how many zeros lie behind it.

    `where` is a macro of the runtime that says how it is to lie.
    """

    kind: str
    name: str
    values: NDArray[Any]
    more: str = ""
    where: str = ""

    @property
    def layout(self) -> Array:
        """What it takes in flash."""
        return Array(self.kind, self.name, self.values.size, self.more, self.where)

    def declaration(self) -> str:
        return f"extern const {self.kind} {self.name}[];"

    def definition(self) -> str:
        size = f"{self.values.size} + {self.more}" if self.more else None
        return self.where + table(self.kind, self.name, self.values, size)

    def check(self) -> None:
        """Refuse numbers that float32 cannot hold."""
        if self.kind == "float":
            with np.errstate(over="ignore"):
                narrow = self.values.astype(np.float32)
            if not np.isfinite(narrow).all():
                raise InputError(f"the table {self.name} holds what float32 cannot; change units")

    def words(self) -> NDArray[np.uint32]:
        """What the self-test sees of each number."""
        if self.kind == "float":
            return self.values.astype(np.float32).ravel().view(np.uint32)
        return self.values.ravel().astype(np.int64).astype(np.uint32)


def checksum(tables: list[Table]) -> int:
    """Sum of word_i (2 i + 1), modulo 2^32."""
    words = np.concatenate([t.words() for t in tables])
    factors = 2 * np.arange(len(words), dtype=np.uint32) + np.uint32(1)
    return int((words * factors).sum(dtype=np.uint32))


def tables_of(model: CModel, dimensions: Dimensions) -> list[Table]:
    """Return the tables of a model, of windows those beside the steps, with prefixed names.

    Refuses a table that C would read beyond, or whose numbers float32 cannot hold.
    """
    values, found = _arrays(model), []
    for array in tables(dimensions):
        own = values[array.name]
        if array.name.startswith("weight_"):
            own = _apart(own, dimensions.many)
        if own.size != array.count:
            raise InputError(
                f"the table {array.name} has {own.size} numbers where the model's sizes "
                f"need {array.count}"
            )
        one = Table(array.kind, array.name, own, array.pad, array.align)
        one.check()
        found.append(replace(one, name=f"{model.name}_{array.name}"))
    return found


def _arrays(model: CModel) -> Arrays:
    """Return the numbers of every table by its name; more than a model may need."""
    network, guard = model.network, model.guard
    found: dict[str, NDArray[Any] | None] = {"centre": network.centre}
    found |= {"spread": model.spread, "shift": model.shift}
    if isinstance(network, Int8Network):
        found |= _int8(network)
    elif isinstance(network, FloatNetwork):
        found |= _float(network, model.laplace)
    else:
        found |= {"per_scale": network.per_scale, "offset": network.offset}
    if guard is not None:
        found["low"] = np.maximum(guard.low, -LARGEST)
        found["high"] = np.minimum(guard.high, LARGEST)
        found |= {"fallback": guard.fallback, "takes_nan": guard.missing.astype(np.int8)}
    found |= _embedding(network.embedding) | watch_arrays(model) | encoding_arrays(model)
    found |= {} if model.narrowing is None else narrow_arrays(model.narrowing)
    found |= {} if model.live is None else model.live.arrays()
    return {name: values for name, values in found.items() if values is not None}


def _float(network: FloatNetwork, laplace: CLaplace | None) -> Arrays:
    found: Arrays = {"per_scale": network.per_scale}
    for k, layer in enumerate(network.layers):
        columns: NDArray[Any] = np.ascontiguousarray(layer.weight.T)
        halves = layer.dtype == "float16"
        found[f"weight_{k}"] = columns.view(np.uint16) if halves else columns
        found[f"bias_{k}"] = layer.bias
    if laplace is not None:
        found["root"] = _triangle(laplace.root, network)
        found |= {"gain": laplace.gain, "epistemic": laplace.std}
    return found


def _apart(columns: NDArray[Any], many: bool) -> NDArray[Any]:
    """Fill columns of weights up with zeros."""
    width = columns.shape[1]
    return np.pad(columns, ((0, 0), (0, column_floats(width, many) - width))) if many else columns


def _int8(network: Int8Network) -> Arrays:
    parts = [layer.packed() for layer in network.layers]
    starts, length = begins(part.size for part in parts)
    weights = np.zeros(length, np.int8)
    found: Arrays = {"weights": weights, "head_bias": network.head_bias}
    for k, (start, part, layer) in enumerate(zip(starts, parts, network.layers, strict=True)):
        weights[start : start + part.size] = part
        found |= {f"bias_{k}": layer.bias, f"factor_{k}": layer.factor}
    if network.per_scale is None:
        return {**found, "per_step": network.per_step}
    return {**found, "per_scale": network.per_scale}


def _embedding(embedding: StoredEmbedding | None) -> Arrays:
    if embedding is None:
        return {}
    return {
        "frequency": embedding.frequency,
        "embedding_weight": embedding.weight,
        "embedding_bias": embedding.bias,
    }


def _triangle(root: NDArray[np.float32], network: FloatNetwork) -> NDArray[np.float32]:
    """The upper triangle, row by row; C has h and z times the gains of their layers."""
    root, hidden = root.copy(), 0
    if len(network.layers) > 1:
        hidden = network.layers[-1].weight.shape[1]
        root[:hidden] /= np.float32(network.layers[-1].gain)
    root[hidden:-1] /= np.float32(network.layers[0].gain)
    return root[np.triu_indices(len(root))]


# --------------------------------------------------------------------------------------------------
# Configuration of the runtime: switches, and the generated section of model.c
# --------------------------------------------------------------------------------------------------

UNARY_OPERATIONS = tuple(name for name, count in OPERATIONS.items() if count == 1)
# What networks of windows need; see `deploy.c.graph`.
OF_GRAPHS = ("WINDOWS", "BYTES", "STREAMS", "GATED", "HAS_GRU", "HAS_LSTM", "SIGMOIDAL",
             "TANGENTIAL", "SPECTRAL", "NORMED", "CONVOLVED", "POOLED", "AVERAGED", "ADDED",
             "MOVED", "COPIED", "RUNS", "USES_RELU", "USES_SIGMOID", "USES_TANH", "SAMPLED",
             "STEPWISE", "STEPWISE_EXACT", "SMOOTHED", "PERSONAL", "TOGETHER")  # fmt: skip
LINK = "/* Where output k lies and how wide it is, from the columns of the last layer. */\n"


def switches(model: CModel) -> dict[str, bool]:
    """Every switch of the runtime, by the name that its #if has."""
    kinds = {str(layer.weight.dtype) for layer in model.network.layers}
    laplace, used = model.laplace, link_macros(model)[1]
    return {
        "INT8": "int8" in kinds,
        "HALVES": "float16" in kinds,
        "SINGLES": "float32" in kinds,
        "CLASSES": model.is_classifier,
        "EMBEDDED": model.network.embedding is not None,
        **encoding_switches(model.encoding),
        "SHIFTED": model.is_shifted,
        "REFUSES_NAN": model.missing == "refuse",
        "GUARD": model.guard is not None,
        "REFUSES": model.refusal is not None,
        "NOVELTY": model.novelty is not None,
        "LAPLACE": laplace is not None,
        "LAPLACE_READS_HIDDEN": laplace is not None and model.hidden > 0,
        "LAPLACE_READS_INPUTS": laplace is not None and model.hidden + 1 < len(laplace.root),
        "MANY": False,  # for processes alone, not for firmware
        "DROPOUT": False,  # for what a model's cost is compared with
        "NARROWED": model.narrowing is not None,
        "LIVE": model.live is not None,
        **dict.fromkeys(OF_GRAPHS, False),
        "TAILS": model.live is not None and model.live.freedom is not None,
        **{f"USES_{name.upper()}": name in used for name in UNARY_OPERATIONS},
    }


def config(model: CModel, d: Dimensions, tables: list[Table]) -> str:
    """config.h: the tables' declarations, sizes, layers and link."""
    rows = _layers(model, d)
    table = "".join(f" \\\n    {row}" + "," * (row is not rows[-1]) for row in rows)
    lines = [
        *(t.declaration() for t in tables),
        "",
        f"#define LAYERS {len(rows)}",
        f"#define LAYER_TABLE{table}",
        f"#define NETWORK_INPUTS {model.network_inputs} /* what the network reads of a row */",
        *encoding_sizes(model.encoding),
        f"#define ROOM {d.room} /* for the inputs of a layer */",
        f"#define SUMS {d.sums} /* of a layer */",
    ]
    if isinstance(model.network, Int8Network):
        lines.append(f"#define COLUMNS {d.widths[-1]} /* of the last layer */")
        lines.append(f"#define LIMIT {number(2 * model.network.levels)}")
        lines.append(f"#define ZERO {2 * model.network.levels + 1}")
    if d.embedding is not None:
        frequencies, width = d.embedding
        lines.append(f"#define FREQUENCIES {frequencies} /* of the embedding of each input */")
        lines.append(f"#define EMBEDDING_WIDTH {width} /* numbers that come out of it */")
        lines.append(f"#define EMBEDDING_REACH {number(EMBEDDING_REACH)}")
        if isinstance(model.network, Int8Network):
            lines.append(f"#define PER_STEP {number(model.network.per_step[0])}")
    if d.laplace:
        lines.append(f"#define LAPLACE_ROWS {d.laplace}")
        lines.append(f"#define LAPLACE_HIDDEN {d.hidden} /* rows before those of the inputs */")
    lines += learning_config(model) + watch_config(model)
    link = link_macros(model)[0]
    return "\n".join(lines) + "\n" + (f"\n{LINK}{link}" if link else "")


def learning_config(model: CModel) -> list[str]:
    """The macros of what was learnt from labels, or will be."""
    lines = []
    if model.narrowing is not None:
        lines += narrow_config(model.narrowing, model.hidden)
    if model.live is not None:
        lines += model.live.config(model.hidden, model.source)
    return lines


def link_macros(model: CModel) -> tuple[str, set[str]]:
    """The macros of the link, and the functions that it, a Laplace part and a stream need."""
    needed = set() if model.laplace is None else {"sqrt"}
    needed |= set() if model.narrowing is None else {"sqrt"}
    needed |= set() if model.live is None else {"sqrt", "exp"}
    needed |= set() if model.novelty is None or model.window == 1 else {"sqrt"}
    if not isinstance(model.link, LocationWidth):
        return "", needed
    outputs = f"{model.name.upper()}_OUTPUTS"
    text, used = macros(model.link, outputs, model.laplace is not None)
    return text, used | needed


def _layers(model: CModel, d: Dimensions) -> list[str]:
    """The initialisers of the layers."""
    name, widths, network = model.name, model.widths, model.network
    rows = []
    if isinstance(network, Int8Network):
        starts = begins(int8_sizes(d))[0]
        for k, (begin, layer) in enumerate(zip(starts, network.layers, strict=True)):
            rows.append(
                f"{{{name}_weights + {begin}, {name}_bias_{k}, {name}_factor_{k}, "
                f"{number(BYTE * layer.least)}, {up(widths[k], 4) // 4}, {widths[k + 1]}}}"
            )
        return rows
    kinds = {layer.dtype for layer in network.layers}
    for k, stored in enumerate(network.layers):
        weight = f"{name}_weight_{k}"
        if len(kinds) > 1:
            weight = f"{weight}, 0" if stored.dtype == "float16" else f"0, {weight}"
        gain = f"{number(stored.gain)}, " if "float16" in kinds else ""
        rows.append(f"{{{weight}, {name}_bias_{k}, {gain}{widths[k + 1]}}}")
    return rows


# --------------------------------------------------------------------------------------------------
# Code and tables of one model
# --------------------------------------------------------------------------------------------------


class Source:
    """The C of one model: the runtime, with the model's own tables and configuration.

    With `live` the model learns on. With `many` it is for a library that predicts many rows: the
    function for that is in it, and tables lie as is best for a processor with caches.
    """

    def __init__(
        self,
        folded: Folded,
        network: FloatNetwork | Int8Network,
        name: str = "model",
        live: CLive | None = None,
        many: bool = False,
    ) -> None:
        self.folded: Folded | FoldedGraph = folded
        self.network: FloatNetwork | Int8Network | StoredGraph = network
        self.many = many
        self.model: CModel = c_model(folded, network, name, live)
        self.name = self.model.name
        self.dimensions = Dimensions.of(self.model, many)
        self.tables: list[Table] = tables_of(self.model, self.dimensions)

    @cached_property
    def switches(self) -> dict[str, bool]:
        """What of the runtime this model needs."""
        return switches(self.model) | {"MANY": self.many}

    @cached_property
    def values(self) -> dict[str, Any]:
        """The model in words: the type of its weights, and its widths."""
        mixed = self.switches["HALVES"] and self.switches["SINGLES"]
        return {
            "dtype": "float16 and float32" if mixed else self.network.dtype,
            "widths": self._widths(),
        }

    def _widths(self) -> str:
        widths = "-".join(map(str, self.model.widths))
        embedded = self.model.network.embedding is not None
        widths = f"{self.model.network_inputs} (embedded) {widths}" if embedded else widths
        return widths if self.model.encoding is None else f"{self.model.inputs} (encoded) {widths}"

    def config(self) -> str:
        """The section of model.c that is the model's own."""
        return config(self.model, self.dimensions, self.tables)

    def sections(self) -> dict[str, str]:
        """What model.c has of this model's own."""
        return {"config.h": self.config()}

    def code(self) -> str:
        """model.c."""
        return self.banner() + self.assembled("model.c", self.sections())

    def weights(self) -> str:
        """weights.c."""
        tables = "\n".join(t.definition() for t in self.tables)
        return self.banner() + self.assembled("weights.c", {"tables.h": tables})

    def assembled(self, path: str | Path, sections: Mapping[str, str] | None = None) -> str:
        """A file of the runtime, or one that includes it, with the sections that are its own."""
        return Assembly(self.name, self.switches, sections or {}).text(RUNTIME / path)

    def banner(self, more: str = "") -> str:
        """The comment that every generated file begins with."""
        version, model = remark(self.model.version), remark(self.model.source[:16])
        return f"/* Generated by rdeepsense {version} from the model {model}.{more} */\n"

    def rows_at(self, z: Floats) -> Floats:
        """Rows whose numbers lie so many scales from the centre of the training rows."""
        assert isinstance(self.folded, Folded)
        return self.folded.layers.rows_at(z)

    @property
    def multiply_adds(self) -> int:
        """Of one prediction."""
        assert isinstance(self.folded, Folded)
        return self.folded.layers.multiply_adds

    def more_sizes(self) -> list[str]:
        """What model.h says of windows."""
        return []

    @property
    def table_bytes(self) -> int:
        """What the tables take in flash, on a core of 32 bits."""
        return flash_bytes([table.layout for table in self.tables])

    def bytes_of(self, *names: str) -> int:
        """Return what some of the tables take there, by their names without the prefix."""
        named = {f"{self.name}_{name}" for name in names}
        return flash_bytes([table.layout for table in self.tables if table.name in named])

    def scratch(self) -> list[Array]:
        """The members of `work` in model.c."""
        return scratch(self.dimensions)

    def scratch_bytes(self) -> int:
        """The size of `work` in model.c."""
        return struct_bytes(self.scratch())


# --------------------------------------------------------------------------------------------------
# model.h
# --------------------------------------------------------------------------------------------------

SCRATCH = """
/* What predict needs for its sums; the caller gives it, aligned for float. */"""
REACH = """
/* An input further than this many standard deviations of the training rows from their mean is moved
   there, and out of range. */"""
INTERVALS = """
/* The interval of a coverage in percent: from mean + LOW std to mean + HIGH std. Where the factors
   of several outputs differ, this is an initialiser with one for each. */"""


def header(source: Source) -> str:
    """model.h."""
    about = f"\n   Weights: {source.values['dtype']}. Layers: {source.values['widths']}."
    banner = source.banner(about + _about(source.model))
    return banner + source.assembled("model.h", {"sizes.h": sizes(source)})


def sizes(source: Source) -> str:
    """The section of model.h that is the model's own: what the caller may need as a number."""
    model, name = source.model, source.name.upper()
    lines = [
        f"#define {name}_INPUTS {model.inputs}",
        f"#define {name}_OUTPUTS {model.outputs}",
        SCRATCH,
        f"#define {name}_SCRATCH_BYTES {source.scratch_bytes()}",
        REACH,
        f"#define {name}_REACH {number(model.network.reach)}",
        *_factors(model, name),
        *level_macros(model),
        *watch_sizes(model, name),
        *([] if model.live is None else model.live.sizes(name)),
        *source.more_sizes(),
    ]
    return "\n".join(lines) + "\n"


def _about(model: CModel) -> str:
    inputs = labelled(model.features, model.feature_units, model.channels)
    for category in () if model.encoding is None else model.encoding.categories:
        said = about(category)
        named = inputs[category.column]
        inputs[category.column] = f"{named}, {said}" if named else said
    what = "x" if model.window == 1 else "channel "
    formulas = model.formulas
    lines = []
    for k, text in enumerate(inputs):
        lines += [f"   {what}[{k}]: {text}"] * bool(text)
        if k in formulas:
            lines.append(f"      = {formulas[k]}")
    if formulas:
        lines.append(f"   {CLOCK}")
    if model.classes is not None:
        lines += [f"   Classes of {remark(name)}:" for name in model.targets or ()]
        lines += [f"   probs[{k}]: {remark(str(label))}" for k, label in enumerate(model.classes)]
    else:
        outputs = labelled(model.targets, model.target_units, model.outputs)
        lines += [f"   mean[{k}], std[{k}]: {text}" for k, text in enumerate(outputs) if text]
    if model.missing == "mean":
        lines.append("   An input that is NaN counts as the mean of the training rows.")
    if model.missing == "indicator":
        lines.append("   An input that is NaN is missing, which the model knows of some inputs.")
    return "".join(f"\n{line}" for line in lines)


def _factors(model: CModel, name: str) -> list[str]:
    intervals = model.intervals
    if intervals is None:
        return []
    lines = [INTERVALS]
    for k, coverage in enumerate(intervals.coverages):
        percent = round(100 * coverage)
        lines.append(f"#define {name}_LOW_{percent} {_factor(intervals.low[k])}")
        lines.append(f"#define {name}_HIGH_{percent} {_factor(intervals.high[k])}")
    if intervals.conformal is not None:
        lines.append("/* The conformal one: mean - CONFORMAL std to mean + CONFORMAL std. */")
        for coverage, reach in zip(intervals.coverages, intervals.conformal, strict=True):
            if np.isfinite(reach).all():
                lines.append(f"#define {name}_CONFORMAL_{round(100 * coverage)} {_factor(reach)}")
    return lines


def _factor(values: Floats) -> str:
    """One number where all outputs share it, else a C initialiser."""
    if np.all(values == values[0]):
        return f"({number(values[0])})"
    return "{" + ", ".join(number(v) for v in values) + "}"
