"""A folded model run by its own generated C, built once and kept in the user's cache folder."""

from __future__ import annotations

from rdeepsense.deploy.c.build import LIBRARY, Program, Target, build, need_compiler
from rdeepsense.deploy.c.called import CompiledRunner
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.layout import check_folded
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import as_float32


def compiled(folded: Folded) -> CompiledRunner:
    """Build the C of a model, or find it in the cache."""
    check_folded(folded)
    cc = need_compiler("compile=True")
    source = Source(folded, as_float32(folded))
    rows = Target(".so", LIBRARY, {"rows.c": source.assembled("rows.c")})
    (path,) = build(cc, single(source), [rows])
    return CompiledRunner.of(path, folded.facts, folded.output.laplace is not None)


def single(source: Source) -> Program:
    """Make the program that is a model as exported."""
    return Program({"model.h": header(source), "model.c": source.code()}, (source,))
