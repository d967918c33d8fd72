"""The configuration of the runtime: its switches, and the section that model.c has of its own."""

from __future__ import annotations

from rdeepsense.deploy.c.encoding import encoding_sizes, encoding_switches
from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.layout import Dimensions, begins, int8_sizes, up
from rdeepsense.deploy.c.links import macros
from rdeepsense.deploy.c.narrowing import narrow_config
from rdeepsense.deploy.c.tables import Table
from rdeepsense.deploy.c.text import number
from rdeepsense.deploy.c.watch import watch_config
from rdeepsense.deploy.quantise import BYTE, Int8Network
from rdeepsense.guard import EMBEDDING_REACH
from rdeepsense.link import OPERATIONS, LocationWidth

FUNCTIONS = tuple(name for name, count in OPERATIONS.items() if count == 1)
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
        **{f"USES_{name.upper()}": name in used for name in FUNCTIONS},
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
