"""`export(to='c99')`: files, self-test, report, and the C that learns on the device."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from rdeepsense._files import check_strangers, write_folder
from rdeepsense._progress import Progress
from rdeepsense.adaptation.choose import basis, of_last_layer
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.deploy.c.build import code_and_stack
from rdeepsense.deploy.c.emit import SUMMARY, Source, Table, checksum, header
from rdeepsense.deploy.c.graph import GraphSource, Sampled
from rdeepsense.deploy.c.inputs import CLive, StoredGraph, Weighted, as_stored, predicted, table
from rdeepsense.deploy.c.readme import readme
from rdeepsense.deploy.c.streams import SampledCost, StreamCost, decided_quality, running_quality
from rdeepsense.deploy.fine_tune import judge, stored_network
from rdeepsense.deploy.fold import (
    before_last,
    check_hidden,
    dense_layers,
    flat,
    fold_fitted,
    fold_graph,
    narrowing,
    with_adaptation_folded,
    without_embedding,
)
from rdeepsense.deploy.folded.file import TEXTS
from rdeepsense.deploy.folded.graph import Stream
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quality import ExportReport, Quality
from rdeepsense.deploy.quantise import FloatNetwork, Int8Network, NetworkRunner
from rdeepsense.deploy.status import UNWATCHED, StatusRules
from rdeepsense.distributions import Gaussian, StudentT
from rdeepsense.errors import InputError, share
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing.stream import Sampling

# --------------------------------------------------------------------------------------------------
# The self-test: tables and predictions, checked on the device
# --------------------------------------------------------------------------------------------------

ROWS = 8
TOLERANCE = "2e-4f"
# A compiler that fuses products and sums moves an embedding's last bits, and so perhaps a byte.
OF_EMBEDDED_BYTES = "2e-2f"


def selftest(source: Source, X: NDArray[Any]) -> str:
    """selftest.c, with the first of these rows (drawn ones if there are none) in range."""
    return source.banner() + source.assembled("selftest.c", {"rows.h": rows_section(source, X)})


def rows_section(source: Source, X: NDArray[Any]) -> str:
    """The section of selftest.c that is the model's own: rows, and what it says of them."""
    name = source.name.upper()
    rows = rows_in_range(source, X)
    vectors = [table("float", "inputs", rows, f"ROWS * {name}_INPUTS")]
    told = predicted(source.folded, source.network, rows)
    for result, values in zip(source.model.results, told, strict=True):
        vectors.append(table("float", f"expected_{result}", values, f"ROWS * {name}_OUTPUTS"))
    if (novelty := source.model.novelty) is not None:
        surprise = novelty.surprise(source.folded.facts.numbers(rows))
        vectors.append(table("float", "expected_surprise", surprise, "ROWS"))
    lines = [
        *(t.declaration() for t in source.tables),
        "",
        f"#define ROWS {len(rows)}",
        f"#define TOLERANCE {tolerance(source)}",
        f"#define CHECKSUM {checksum(source.tables)}u",
        "#define ADD_TABLES" + "".join(f" \\\n    {_added(t)}" for t in source.tables),
        "",
    ]
    return "\n".join(lines + [f"static {vector}" for vector in vectors])


def tolerance(source: Source) -> str:
    """Give what a prediction may be apart from the expected one, in probability or in std."""
    embedded_bytes = source.switches["EMBEDDED"] and source.switches["INT8"]
    return OF_EMBEDDED_BYTES if embedded_bytes else TOLERANCE


def rows_in_range(source: Source, X: NDArray[Any]) -> NDArray[np.float32]:
    """Give the first of these rows, or drawn ones, that the model takes as they are."""
    model, network = source.model, source.network
    numbers = model.network_inputs * model.window
    drawn = source.rows_at(np.random.default_rng(0).normal(size=(ROWS, numbers)))
    drawn = drawn if model.guard is None else model.guard.inside(drawn)
    typical = source.rows_at(np.zeros((1, numbers)))
    for candidates in (np.asarray(X)[:ROWS].reshape(-1, *typical.shape[1:]), drawn):
        rows = np.where(np.isfinite(candidates), candidates, typical).astype(np.float32)
        read = rows if model.encoding is None else model.encoding.expand(rows)
        near = np.abs(read - network.centre) <= 0.99 * network.reach * model.scale
        inside = near.all(tuple(range(1, near.ndim)))
        if model.guard is not None:
            inside &= model.guard.status(rows) == 0
        if inside.any():
            found: NDArray[np.float32] = rows[inside]
            return found
    return typical.astype(np.float32)


def _added(t: Table) -> str:
    word = "bits_of" if t.kind == "float" else "(uint32_t)"
    return f"ADD({t.name}, {t.values.size}, {word})"


# --------------------------------------------------------------------------------------------------
# The report of an export to C (report.json)
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerCost:
    """One layer and the type of its weights; `kind` names those that are not dense."""

    inputs: int
    outputs: int
    multiply_adds: int
    dtype: str
    kind: str = "dense"

    def to_json(self) -> dict[str, object]:
        own = asdict(self)
        return own if own["kind"] != "dense" else {k: v for k, v in own.items() if k != "kind"}


@dataclass(frozen=True)
class EpistemicCost:
    """The laplace's matrix: its upper triangle is stored, and its sums are squared."""

    method: str
    matrix: int  # rows and columns
    bytes_in_flash: int
    multiply_adds: int

    @classmethod
    def of(cls, source: Source) -> EpistemicCost | None:
        rows = source.dimensions.laplace
        size = source.bytes_of("root", "gain", "epistemic")
        numbers = rows * (rows + 1) // 2
        return cls("laplace", rows, size, numbers + rows) if rows else None


@dataclass(frozen=True)
class EmbeddingCost:
    """The embedding of the inputs, which is float32 whatever the weights."""

    frequencies: int  # of each input
    width: int
    bytes_in_flash: int
    multiply_adds: int

    @classmethod
    def of(cls, source: Source) -> EmbeddingCost | None:
        d = source.dimensions
        if d.embedding is None:
            return None
        size = source.bytes_of("frequency", "embedding_weight", "embedding_bias")
        return cls(*d.embedding, size, d.inputs * d.waves)


@dataclass(frozen=True)
class LiveCost:
    """What learning on takes: bytes of RAM, and multiply-adds of a label."""

    coverage: float
    filters: int
    directions: int
    state_bytes: int
    row_bytes: int  # of each row that waits for its label
    multiply_adds_of_a_label: int

    @classmethod
    def of(cls, live: CLive, outputs: int) -> LiveCost:
        state, row = live.state_bytes(outputs), live.row_bytes(outputs)
        cost = live.multiply_adds(outputs)
        return cls(live.coverage, live.filters, live.directions, state, row, cost)


@dataclass(frozen=True)
class Sizes:
    """Bytes; of code and stack None where no compiler could measure them."""

    tables_in_flash: int
    code_in_flash: int | None
    ram_scratch: int
    stack: int | None
    measured_with: str | None

    @classmethod
    def of(cls, source: Source, files: dict[str, str]) -> Sizes:
        """Measure with the compiler at hand."""
        tables, scratch = source.table_bytes, source.scratch_bytes()
        measured = code_and_stack(files)
        if measured is None:
            return cls(tables, None, scratch, None, None)
        code, stack = int(str(measured["code"])), int(str(measured["stack"]))
        return cls(tables, code, scratch, stack, str(measured["compiler"]))


@dataclass(frozen=True)
class C99Report(ExportReport):
    """What one prediction costs in C, and how good it is."""

    name: str
    dtype: str
    facts: Facts
    layers: tuple[LayerCost, ...]
    epistemic: EpistemicCost | None
    bytes: Sizes
    embedding: EmbeddingCost | None = None
    live: LiveCost | None = None
    stream: StreamCost | None = None
    samples: SampledCost | None = None
    watch: StatusRules = UNWATCHED

    @property
    def kept_float32(self) -> list[int]:
        """Dense layers that are not stored in `dtype`, because that would be too coarse."""
        dense = [k for k, layer in enumerate(self.layers) if layer.kind == "dense"]
        return [k for k in dense if self.layers[k].dtype != self.dtype]

    @property
    def multiply_adds(self) -> int:
        """Of one prediction."""
        parts = [*self.layers, self.epistemic, self.embedding]
        return sum(part.multiply_adds for part in parts if part is not None)

    def to_json(self) -> dict[str, object]:
        """Give the content of report.json."""
        facts = self.facts
        parts = {
            "epistemic": self.epistemic,
            "embedding": self.embedding,
            "live": self.live,
            "stream": self.stream,
            "samples": self.samples,
            "novelty": self.watch.report,
        }
        known = {name: asdict(part) for name, part in parts.items() if part is not None}
        return {
            "name": self.name,
            "dtype": self.dtype,
            "head": facts.head,
            "calibration": facts.calibration,
            "rdeepsense": facts.version,
            "model_sha256": facts.source,
            **{key: getattr(facts, key) for key in TEXTS},
            "classes": None if facts.classes is None else [str(c) for c in facts.classes],
            "missing": facts.missing,
            "layers": [layer.to_json() for layer in self.layers],
            "kept_float32": self.kept_float32,
            **known,
            **({} if (why := self.watch.left_out) is None else {"novelty_left_out": why}),
            "multiply_adds": self.multiply_adds,
            "bytes": asdict(self.bytes),
            "quality": self.quality_json(),
            "reject": None if (refusal := self.watch.refusal) is None else refusal.to_json(),
        }


def layer_costs(weights: list[NDArray[Any]], stored: list[str]) -> tuple[LayerCost, ...]:
    """Count each layer (outputs, inputs), stored in its own type."""
    return tuple(
        LayerCost(weight.shape[1], weight.shape[0], weight.size, kind)
        for weight, kind in zip(weights, stored, strict=True)
    )


# --------------------------------------------------------------------------------------------------
# Constants for learning in C; `live.state` has the same in Python
#
# psi = B^T phi may be turned by any orthogonal matrix: the prior of a filter is the identity, so
# nothing that it predicts changes. With B^T = Q R, R^T is lower triangular whatever order and units
# the last layer reads its numbers in, and only a triangle needs to be stored.
# --------------------------------------------------------------------------------------------------


def fold_live(
    fitted: Fitted,
    network: FloatNetwork | Int8Network | StoredGraph,
    coverage: float,
    rates: Rates,
) -> CLive:
    """Take what C needs beside a stored network; refuse a model that cannot learn there."""
    _check(fitted, network)
    if not 0 < coverage < 1:
        raise InputError(f"coverage = {coverage!r}; accepted: between 0 and 1{share(coverage)}")
    assert fitted.target_scaler is not None
    unit = fitted.network.head.unit()
    if not isinstance(unit, Gaussian | StudentT):
        raise InputError(
            f"live=True is not for the head {type(fitted.network.head).__name__}; accepted: "
            'likelihood="gaussian" and "student"'
        )
    return CLive(
        triangular(_stored(_folded_basis(fitted, network, rates), network)),
        fitted.target_scaler.scale,
        unit.interval(coverage)[1] / unit.std,
        unit.df if isinstance(unit, StudentT) else None,
        rates,
        coverage,
    )


def triangular(turned: Floats) -> Floats:
    """Turn the coordinates so that row i of B has at most i + 1 numbers."""
    return np.ascontiguousarray(np.linalg.qr(turned.T)[1].T)


def _check(fitted: Fitted, network: FloatNetwork | Int8Network | StoredGraph) -> None:
    if fitted.target.is_classes:
        dense = ', and to="onnx" with features=True gives a host what it needs'
        dense += '; to="web" learns on from classes of windows alone'
        raise InputError(
            "live=True is for numbers, and this model predicts classes; model.live() learns on in "
            f"Python{'' if isinstance(network, StoredGraph) else dense}"
        )
    if isinstance(fitted.calibration, Isotonic):
        raise InputError(
            "live=True cannot stretch an isotonic calibration in C; fit the model with "
            'calibrate="scale"'
        )
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than what live=True needs, the information of its training "
            "rows; fit the model again"
        )
    if isinstance(network, StoredGraph):
        check_hidden(fitted, network.graph)
    elif len(network.layers) < 2:
        raise InputError("live=True needs a network with a hidden layer")


def _folded_basis(
    fitted: Fitted, network: FloatNetwork | Int8Network | StoredGraph, rates: Rates
) -> Floats:
    """Return B of the numbers that the last folded layer reads."""
    assert fitted.epistemic is not None
    layer = fitted.network.body.get_submodule(fitted.network.output)
    assert isinstance(layer, nn.Linear)
    information = of_last_layer(fitted.epistemic.laplace.root, layer.in_features)
    turned = basis(information, fitted.training.rows, rates.rows, rates.between)
    if isinstance(network, StoredGraph):
        return turned
    before = dense_layers(before_last(without_embedding(flat(fitted.network.body))))
    if len(before) < len(network.layers):
        return turned
    weight, bias = before[-1]  # no ReLU stands between the last two, which became one
    return np.vstack([weight.T @ turned[:-1], turned[-1:] + bias @ turned[:-1]])


def _stored(turned: Floats, network: FloatNetwork | Int8Network | StoredGraph) -> Floats:
    """Put rows of B into the order and the units of what C has of the last hidden layer."""
    if isinstance(network, StoredGraph):
        return turned
    if isinstance(network, FloatNetwork):
        scale = np.full(len(turned) - 1, 1 / network.layers[-1].gain)
        order = np.arange(len(scale))
    else:
        assert network.unit is not None
        assert network.order is not None
        scale, order = network.unit, network.order
    return np.vstack([turned[:-1][order] * scale[:, None], turned[-1:]])


# --------------------------------------------------------------------------------------------------
# Export of a dense model to C99
# --------------------------------------------------------------------------------------------------

FILES = ("model.h", "model.c", "weights.c", "selftest.c", "README.md", "report.json")


@dataclass(frozen=True)
class C99:
    """The files of C that a model became, not yet written, and the report of them."""

    source: Source
    files: dict[str, str]
    report: C99Report

    def write(self) -> C99Report:
        """Write the folder, with a README and the report."""
        content = self.report.to_json()
        more = {
            "README.md": readme(self.source, content),
            "report.json": json.dumps(content, indent=2, allow_nan=False) + "\n",
        }
        write_folder(self.report.path, self.files | more, FILES)
        return self.report


def export_c99(
    fitted: Fitted,
    folder: Path,
    options: Options,
    rows: LabelledRows,
    progress: Progress | None = None,
) -> C99:
    """Make the C of a model and the report of it."""
    check_unsampled(options)
    plain = with_adaptation_folded(fitted, options.epistemic)
    folded = replace(
        fold_fitted(plain, options.epistemic),
        narrowing=narrowing(fitted, options.dtype, options.live),
    )
    network, tuned = stored_network(plain, folded, rows, options, progress)
    watch = StatusRules.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    found = judge(NetworkRunner(watched, network), fitted, rows, options, tuned)
    live = None
    if options.live:
        live = fold_live(plain, network, options.coverage, options.rates or plain.rates or Rates())
    source = Source(watched, network, options.name, live)
    costs = layer_costs(
        [layer.weight for layer in folded.layers.dense],
        [str(layer.weight.dtype) for layer in network.layers],
    )
    return made_c99(
        source,
        folder,
        found,
        options.dtype,
        rows,
        costs,
        epistemic=EpistemicCost.of(source),
        embedding=EmbeddingCost.of(source),
        live=None if live is None else LiveCost.of(live, source.model.outputs),
        watch=watch,
    )


def made_c99(
    source: Source,
    folder: Path,
    found: Quality | None,
    dtype: str,
    rows: LabelledRows,
    costs: tuple[LayerCost, ...],
    epistemic: EpistemicCost | None = None,
    embedding: EmbeddingCost | None = None,
    live: LiveCost | None = None,
    stream: StreamCost | None = None,
    samples: SampledCost | None = None,
    watch: StatusRules = UNWATCHED,
) -> C99:
    """Give the files of a source, with what was found out about it."""
    files = {
        "model.h": header(source),
        "model.c": source.code(),
        "weights.c": source.weights(),
        "selftest.c": selftest(source, rows.X),
    }
    report = C99Report(
        "c99",
        folder,
        found,
        source.name,
        dtype,
        source.folded.facts,
        costs,
        epistemic,
        Sizes.of(source, files),
        embedding,
        live,
        stream,
        samples,
        watch,
    )
    return C99(source, files, report)


def check_folder(folder: Path, own: Collection[str] = FILES) -> None:
    """Refuse a folder that holds anything but files of an earlier export."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    if folder.exists():
        check_strangers(folder, own)
    if folder.resolve() == Path.cwd():
        raise InputError(
            f"{folder}: is the folder you are in, and an export replaces its folder as one; give "
            "a folder inside or call from outside of it"
        )
    if not folder.resolve().parent.is_dir():
        raise InputError(f"{folder}: there is no folder {folder.parent}; create it first")


def check_unsampled(options: Options) -> None:
    """Refuse options of a stream of samples for a model that takes none."""
    for name in ("stream", "smoothing", "hop"):
        if getattr(options, name) is not None:
            raise InputError(
                f"{name}={getattr(options, name)!r} is for models of windows that "
                "rdeepsense.windows(...) cut, which know their rate; this one takes no samples"
            )


# --------------------------------------------------------------------------------------------------
# Cost of each step of a graph, for the report
# --------------------------------------------------------------------------------------------------


def graph_costs(network: StoredGraph) -> tuple[LayerCost, ...]:
    """Count steps that multiply; those without weights of their own are in float32."""
    graph, found = network.graph, []
    for k, (node, cost) in enumerate(zip(graph.nodes, graph.costs, strict=True)):
        if not cost:
            continue
        inputs = sum(graph.sizes[read] for read in node.reads)
        dtype = network.dtype if isinstance(node, Weighted) else "float32"
        found.append(LayerCost(inputs, graph.sizes[k + 1], cost, dtype, node.kind))
    return tuple(found)


# --------------------------------------------------------------------------------------------------
# Export of a network of windows to C99
# --------------------------------------------------------------------------------------------------


def export_graph_c99(
    fitted: Fitted, folder: Path, options: Options, rows: LabelledRows, personal: bool = False
) -> C99:
    """Make the C of a network of windows and the report of it.

    With `personal` the caller may change the last layer, see `model_personal` in `runtime/model.h`.
    """
    for name in ("epistemic", "fine_tune"):
        if getattr(options, name):
            raise InputError(
                f"{name}={getattr(options, name)!r} is for fully-connected networks; export this "
                "one without it"
            )
    plain = with_adaptation_folded(fitted)
    folded = fold_graph(plain)
    streamed = folded.facts.streamed(options.smoothing, options.hop)
    if (narrowed := narrowing(fitted, options.dtype, options.live)) is not None:
        check_hidden(plain, folded.graph)
        folded = replace(folded, narrowing=narrowed)
    network = as_stored(folded, options.dtype)
    runner = NetworkRunner(folded, network)
    watch = StatusRules.of(fitted, rows, options)
    watched = replace(folded, facts=watch.on(folded.facts))
    found = judge(NetworkRunner(watched, network), fitted, rows, options)
    running = running_quality(folded, network, fitted, rows)
    factor = 1.0 if running is None else running.factor
    smoothing, decided = decided_quality(runner, folded.facts, rows, options.smoothing)
    if options.smoothing is None:
        streamed = replace(folded.facts, smoothing=smoothing).streamed(None, options.hop)
    sampled = _sampled(streamed, network.stream, options)
    live = None
    if options.live:
        live = fold_live(plain, network, options.coverage, options.rates or plain.rates or Rates())
    source = GraphSource(watched, network, options.name, factor, sampled, live, personal=personal)
    stream = None
    if network.stream is not None:
        kept = 0 if watch.novelty is None else SUMMARY
        stream = StreamCost.of(network.stream, source.model.channels, running, kept)
    samples = None
    if sampled is not None:
        work, outputs = source.multiply_adds, source.model.outputs
        states = {} if stream is None else stream.state_bytes
        samples = SampledCost.of(sampled, work, network.stream, states, outputs, decided)
    return made_c99(
        source,
        folder,
        found,
        options.dtype,
        rows,
        graph_costs(network),
        live=None if live is None else LiveCost.of(live, source.model.outputs),
        stream=stream,
        samples=samples,
        watch=watch,
    )


def _sampled(facts: Facts, stream: Stream | None, options: Options) -> Sampled | None:
    """Plan the stream of samples of a model that knows how its windows are cut."""
    if facts.recipe is None:
        check_unsampled(options)
        return None
    return Sampled.of(Sampling.of(facts.recipe), facts.smoothing, stream, options.stream)
