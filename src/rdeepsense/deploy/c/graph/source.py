"""A network of windows as C: code and tables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.config import LINK, OF_GRAPHS, learning_config, link_macros, switches
from rdeepsense.deploy.c.graph.model import graph_model
from rdeepsense.deploy.c.graph.sampled import Sampled
from rdeepsense.deploy.c.graph.steps import Steps
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.layout import Array, Dimensions
from rdeepsense.deploy.c.live import CLive
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.tables import tables_of
from rdeepsense.deploy.c.text import number
from rdeepsense.deploy.c.watch import watch_config
from rdeepsense.deploy.folded.graph.model import FoldedGraph

ROOMY = 16_384  # bytes of scratch, of which a process has room for a few on its stack
STREAM = """
/* In a stream: times of an interval, intervals of a window, and sizes of what is kept. */"""


class GraphSource(Source):
    """The C of one model of windows.

    `running` is what its running form multiplies logits, or standard deviations, by; with `sampled`
    it takes samples, with `live` it learns on, with `personal` the caller may add to its last
    layer.
    """

    network: StoredGraph
    folded: FoldedGraph

    def __init__(
        self,
        folded: FoldedGraph,
        network: StoredGraph,
        name: str = "model",
        running: float = 1.0,
        sampled: Sampled | None = None,
        live: CLive | None = None,
        many: bool = False,
        personal: bool = False,
    ) -> None:
        self.folded, self.network, self.many = folded, network, many
        self.running, self.stream = running, network.stream
        self.sampled, self.personal = sampled, personal
        self.model = graph_model(folded, network, name, live)
        self.name = self.model.name
        self.steps = self._steps()
        self.dimensions = Dimensions.of(self.model, many)
        for table in self.steps.all_tables:
            table.check()
        self.tables = [*tables_of(self.model, self.dimensions), *self.steps.all_tables]

    def _steps(self) -> Steps:
        steps, graph = Steps(self.name, self.network.dtype), self.network.graph
        if self.stream is None:
            gated = any(node.kind in ("gru", "lstm") for node in graph.nodes)
            steps.program("whole_steps", graph.inputs, graph.nodes, gated, self.model.hidden > 0)
            return steps
        stream, (found, top, _) = self.stream, self.stream.sizes
        steps.program("interval_steps", stream.read, stream.interval, many=True)
        steps.program("recurrent_steps", found, stream.step, states=True, many=True)
        steps.program("last_steps", top, stream.last, hidden=self.model.hidden > 0)
        return steps

    @cached_property
    def switches(self) -> dict[str, bool]:
        """What of the runtime this model needs."""
        plain = switches(self.model)
        own = {name: name in self.steps.switches for name in OF_GRAPHS}
        own |= {"WINDOWS": True, "BYTES": self.network.dtype == "int8"}
        own |= {"STREAMS": self.stream is not None, "PERSONAL": self.personal}
        own |= {} if self.sampled is None else self.sampled.switches
        own |= {"MANY": self.many, "TOGETHER": self.scratch_bytes() < ROOMY}
        return plain | own | {"USES_SQRT": plain["USES_SQRT"] or own["SPECTRAL"]}

    @cached_property
    def values(self) -> dict[str, Any]:
        """The model in words: the type of its weights, and its steps."""
        kinds = [node.kind for node in self.network.graph.nodes if node.arrays]
        joined = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        shape = " x ".join(map(str, self.network.graph.shape))
        return {"dtype": self.network.dtype, "widths": f"windows of {shape}, {joined}"}

    def config(self) -> str:
        """The section of model.c that is the model's own."""
        steps, network = self.steps, self.network
        read = network.graph.inputs if self.stream is None else self.stream.read
        lines = [
            *(t.declaration() for t in self.tables),
            "",
            _macro_table("WEIGHT_TABLE", steps.layers.rows),
            *([_macro_table("PLANE_TABLE", steps.planes)] if steps.planes else []),
            f"#define CHANNELS {self.model.channels}u",
            f"#define COLUMNS {network.graph.columns} /* of the last layer */",
            f"#define READ {read} /* inputs that are scaled at once */",
            f"#define ARENA {steps.arena} /* numbers that steps hand on */",
            f"#define SUMS {steps.sums} /* of a layer */",
            *steps.layers.config("CONVOLVED" in steps.switches),
        ]
        if "GATED" in steps.switches:
            lines.append(f"#define STATES {steps.states} /* of recurrent layers */")
        if self.stream is not None:
            found, top, _ = self.stream.sizes
            lines += [f"#define FOUND {found}", f"#define TOP {top}"]
            lines.append(f"#define POOLS_MEAN {int(self.stream.mean)}")
            lines.append(f"#define RUNNING_FACTOR {number(self.running)}")
        if self.sampled is not None:
            lines += self.sampled.config(self.folded.facts)
        lines += watch_config(self.model) + learning_config(self.model)
        link = link_macros(self.model)[0]
        return "\n".join(lines) + "\n" + (f"\n{LINK}{link}" if link else "")

    def sections(self) -> dict[str, str]:
        """What model.c has of this model's own."""
        return super().sections() | {"steps.h": self.steps.text}

    def rows_at(self, z: Floats) -> Floats:
        """Windows whose numbers lie so many scales from the centre of the training rows."""
        return self.network.graph.rows_at(z)

    @property
    def multiply_adds(self) -> int:
        """Of one prediction."""
        return self.network.graph.multiply_adds

    def more_sizes(self) -> list[str]:
        """What model.h says of windows."""
        name = self.name.upper()
        lines = [f"#define {name}_CHANNELS {self.model.channels}"]
        if self.sampled is not None:
            lines += self.sampled.sizes(name)
        if self.stream is None:
            return lines
        stream, (found, top, _) = self.stream, self.stream.sizes
        sizes = {
            "INTERVAL": stream.read // self.model.channels,
            "INTERVALS": stream.count,
            "FOUND": found,
            "STATES": self.steps.states,
            "TOP": top,
            "TOPS": stream.count if stream.mean else 1,
        }
        return [*lines, STREAM, *(f"#define {name}_{key} {size}" for key, size in sizes.items())]

    def scratch(self) -> list[Array]:
        """The members of `work` in model.c."""
        steps, network, outputs = self.steps, self.network, self.model.outputs
        read = network.graph.inputs if self.stream is None else self.stream.read
        sizes = {"raw": network.graph.columns, "z": read, "arena": steps.arena}
        if "GATED" in steps.switches:
            sizes["states"] = steps.states
        if self.stream is not None:
            found, top, _ = self.stream.sizes
            sizes |= {"found": found, "top": top, "pooled": top}
            sizes |= {"personal": outputs * (top + 2) + top} if self.personal else {}
        if self.model.hidden:
            sizes["hidden"] = self.model.hidden
        own = [Array("float", name, count) for name, count in sizes.items()]
        return [
            *own,
            Array("float", "sum", steps.sums),
            *steps.layers.lists("CONVOLVED" in steps.switches),
        ]


def _macro_table(name: str, rows: list[str]) -> str:
    return f"#define {name} " + ", \\\n    ".join(["\\\n    " + rows[0], *rows[1:]])
