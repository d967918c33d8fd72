"""A folded model run by its own generated C, built once and kept in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

from rdeepsense.deploy.c.build import LIBRARY, SHARED, Program, Target, build, need_compiler
from rdeepsense.deploy.c.called import CompiledRunner
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.c.graph.stored import as_stored
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.levels import levels_of, renamed
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.layout import check_folded
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import as_float32
from rdeepsense.deploy.single_precision import check_single
from rdeepsense.errors import InputError


def compiled(folded: Folded | FoldedGraph) -> CompiledRunner:
    """Build the C of a model, or find it in the cache."""
    source: Source
    if isinstance(folded, FoldedGraph):
        check_single(folded, "C")
        source = GraphSource(folded, as_stored(folded, "float32"), many=True)
    else:
        check_folded(folded)
        check_single(folded, "C")
        source = Source(folded, as_float32(folded), many=True)
    return compiled_source(source)


def compiled_source(source: Source) -> CompiledRunner:
    """Build the C of a source for `many` rows, with weights of any type."""
    folded = source.folded
    path = library_of(source, need_compiler("compile=True"))
    return CompiledRunner.of(path, folded.facts, folded.output.laplace is not None)


def library_of(source: Source, cc: str, machine: str | None = None) -> Path:
    """Build the library of a source, with the levels of this machine or of the one named."""
    levels = levels_of(source.network.dtype, machine)
    named = {level: (*flags, *renamed(header(source), level)) for level, flags in levels.items()}
    program = single(source)
    try:
        every = Target(".so", SHARED, {"levels.c": source.assembled("levels.c")}, (), named)
        (path,) = build(cc, program, [every if levels else Target(".so", LIBRARY)])
    except InputError:  # a compiler that is older than the levels
        (path,) = build(cc, program, [Target(".so", LIBRARY)])
    return path


def single(source: Source) -> Program:
    """Make the program that is a model as exported."""
    return Program({"model.h": header(source), "model.c": source.code()}, (source,))
