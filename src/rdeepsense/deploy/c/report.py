"""What is found out about exported C: the content of report.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.sampled_cost import SampledCost
from rdeepsense.deploy.c.live import CLive
from rdeepsense.deploy.c.measure import code_and_stack
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.fields import TEXTS
from rdeepsense.deploy.report import ExportReport
from rdeepsense.deploy.watch import UNWATCHED, Watch


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
    watch: Watch = UNWATCHED

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
