"""A folded model run by its own generated C, built once and kept in the user's cache folder."""

from __future__ import annotations

from rdeepsense.deploy.c.build import LIBRARY, Program, Target, build, need_compiler
from rdeepsense.deploy.c.called import CompiledRunner
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.layout import check_folded
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import as_float32


def compiled(folded: Folded | FoldedGraph) -> CompiledRunner:
    """Build the C of a model, or find it in the cache."""
    cc = need_compiler("compile=True")
    source: Source
    if isinstance(folded, FoldedGraph):
        source = GraphSource(folded, as_stored(folded, "float32"))
    else:
        check_folded(folded)
        source = Source(folded, as_float32(folded))
    rows = Target(".so", LIBRARY, {"rows.c": source.assembled("rows.c")})
    (path,) = build(cc, single(source), [rows])
    return CompiledRunner.of(path, folded.facts, folded.output.laplace is not None)


def single(source: Source) -> Program:
    """Make the program that is a model as exported."""
    return Program({"model.h": header(source), "model.c": source.code()}, (source,))
