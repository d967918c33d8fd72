"""What a model was promised to take of a microcontroller is what its firmware takes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c.test_layout import drawn, promised
from deploy.furnished import Furnished
from deploy.targets.machines import CORTEX, HERE, Machine
from deploy.targets.test_machines import sizes

from rdeepsense.deploy.c.emit import Source, header
from rdeepsense.deploy.c.inputs import number
from rdeepsense.deploy.c.layout import (
    CODE_SLACK,
    CORTEX_M,
    HELIUM,
    STACK_SLACK,
    Memory,
    begins,
    flash_bytes,
    int8_sizes,
    scratch,
    struct_bytes,
    tables,
)
from rdeepsense.deploy.quantise import DTYPES

ROWS = 4
SHAPES = 24  # drawn ones, for each machine
# A core without floats takes them from the compiler's library, whose functions have own frames.
STACK_OF_LIBRARY = {"cortex-m3": 64}
NOT_AT_ONCE = 96  # bytes at most of frames that no prediction has at the same time
# 129-67-65-2 in int8, whose second layer begins on a cache line, was promised 75 bytes less.
SHORT = Furnished(129, (67, 65))
WORK = """
extern const char like_work[sizeof(work)];
__attribute__((section(".like_work"))) const char like_work[sizeof(work)] = {0};
"""


@dataclass(frozen=True)
class Built:
    """Bytes of a model in the firmware of a machine."""

    tables: int
    code: int
    variables: int
    scratch: int
    frames: int  # of all functions together
    stack: int  # that predictions wrote
    beyond: int  # the scratch memory, that predictions wrote


def build(machine: Machine, source: Source, rng: np.random.Generator, folder: Path) -> Built:
    """Compile a model, measure its parts, and predict rows where the memory is painted."""
    folder.mkdir()
    for name, text in {
        "model.h": header(source),
        "model.c": source.code() + WORK,
        "weights.c": source.weights(),
        "rows.h": _rows(source, rng),
        "depth.c": (HERE / "depth.c").read_text(),
    }.items():
        (folder / name).write_text(text)
    machine.build(folder, "-fstack-usage", "-c", "model.c", "weights.c")
    code, stored = (dict(sizes(machine, folder, f"{name}.o")) for name in ("model", "weights"))
    ((_, work),) = sizes(machine, folder, "model.o", r"\.like_work")
    variables = [k for k in (*code, *stored) if re.match(r"\.(data(?!\.rel\.ro)|bss)", k)]
    machine.build(folder, "depth.c", "model.o", "weights.o", *machine.link, "-o", "depth")
    stack, beyond = map(int, machine.run(folder, "./depth").split())
    frames = (folder / "model.su").read_text().splitlines()
    return Built(
        sum(stored.values()),
        sum(code.values()),
        sum(code.get(k, 0) + stored.get(k, 0) for k in set(variables)),
        work,
        sum(int(line.split("\t")[1]) for line in frames),
        stack,
        beyond,
    )


def _rows(source: Source, rng: np.random.Generator) -> str:
    """Rows, of which one holds infinity."""
    model: Any = source.model
    X = rng.normal(size=(ROWS, model.inputs)).astype(np.float32)
    for category in () if model.encoding is None else model.encoding.categories:
        X[:, category.column] = 0
    cells = [["INFINITY" if np.isinf(v) else number(v) for v in row] for row in X]
    cells[-1][0] = "INFINITY"
    body = ",\n".join("{" + ", ".join(row) + "}" for row in cells)
    kinds = "".join(f"#define {kind}\n" for kind, has in {
        "CLASSES": model.is_classifier, "EPISTEMIC": model.laplace is not None
    }.items() if has)  # fmt: skip
    table = f"static const float rows[ROWS][MODEL_INPUTS] = {{\n{body}}};\n"
    return f"#include <math.h>\n#define ROWS {ROWS}\n{kinds}{table}"


def check(
    machine: Machine,
    shape: Furnished,
    dtype: str,
    source: Source,
    rng: np.random.Generator,
    folder: Path,
) -> tuple[Memory, Built]:
    """Compare what is promised of a shape, whatever its weights, with the firmware of a model."""
    network: Any = source.network
    d = promised(shape, tuple(str(k.weight.dtype) for k in network.layers), source, many=False)
    built, memory = build(machine, source, rng, folder), Memory.of(d, dtype)
    assert source.table_bytes == memory.tables
    assert source.scratch_bytes() == memory.scratch
    target = HELIUM if machine.name == "cortex-m55" else CORTEX_M
    assert built.tables == flash_bytes(tables(d), target), shape
    assert built.scratch == struct_bytes(scratch(d)), shape
    assert built.variables == built.beyond == 0, shape
    assert built.stack <= built.frames + STACK_OF_LIBRARY.get(machine.name, 0), shape
    return memory, built


def within(memory: Memory, built: Built) -> bool:
    """Whether code and stack are within their bounds, and so the sums that a budget counts."""
    return (
        built.code <= memory.code
        and built.frames <= memory.stack
        and built.tables + built.code <= memory.flash
        and built.scratch + built.frames <= memory.ram
    )


def plain(shape: Furnished) -> Furnished:
    """The shape without what is exported on request, for which a budget counts nothing."""
    return replace(shape, reject=False, novelty=None, laplace=False, narrowed=0, filters=0)


@pytest.mark.parametrize("machine", CORTEX, ids=str)
def test_drawn_shapes_take_what_was_promised(
    machine: Machine, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Whatever parts a model has, tables and RAM to the byte; where they are counted also code."""
    gaps = 0
    for k in range(SHAPES):
        dtype, shape = DTYPES[k % 3], drawn(rng, large=k % 4 == 0)
        if shape.laplace:
            shape = replace(shape, reject=False)  # an export has one of them
        if dtype == "int8":  # which has neither
            shape = replace(shape, laplace=False, narrowed=0)
        shape = shape if k % 2 else plain(shape)
        source = shape.source(rng, dtype)
        memory, built = check(machine, shape, dtype, source, rng, tmp_path / f"m{k}")
        assert shape != plain(shape) or within(memory, built), (shape, memory, built)
        if dtype == "int8":
            layers = int8_sizes(source.dimensions)
            gaps += begins(layers)[1] > sum(layers)
    assert gaps > 0


@pytest.mark.parametrize("machine", CORTEX, ids=str)
def test_what_was_75_bytes_short_is_exact(
    machine: Machine, rng: np.random.Generator, tmp_path: Path
) -> None:
    source = SHORT.source(rng, "int8")
    memory, built = check(machine, SHORT, "int8", source, rng, tmp_path / "m")
    assert within(memory, built)
    assert built.tables == (16_780 if machine is CORTEX[-1] else 16_740)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_are_close(dtype: str, rng: np.random.Generator, tmp_path: Path) -> None:
    """Of each kind there is a model that takes almost all the code that is promised."""
    frames, stacks = [], []
    for embedding, levels in product((None, (8, 4)), ((), (2, 3))):
        shape = Furnished(30, (67, 65), 2, "gaussian", embedding, levels, missing="refuse")
        source = shape.empty(dtype, wide=(0,) if dtype == "float16" else ())
        folder, most = tmp_path / f"{embedding} {levels}", 0
        folder.mkdir()
        for machine in CORTEX:
            memory, built = check(machine, shape, dtype, source, rng, folder / machine.name)
            assert within(memory, built), (machine, shape, memory, built)
            most = max(most, built.code)
            frames.append(memory.stack - built.frames)
            stacks.append(memory.stack - built.stack)
        assert memory.code - most <= CODE_SLACK, (shape, memory, most)
    assert min(frames) <= STACK_SLACK
    assert min(stacks) <= STACK_SLACK + NOT_AT_ONCE
