"""The promised sizes of tables and scratch memory are those that a compiler finds in the C."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deploy.c_models import STRICT
from deploy.furnished import Furnished

from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.layout import (
    CORTEX_M,
    HELIUM,
    LARGE,
    LINE,
    Array,
    Dimensions,
    Memory,
    Target,
    begins,
    flash_bytes,
    int8_sizes,
    scratch,
    struct_bytes,
    tables,
)
from rdeepsense.deploy.quantise import DTYPES

SHAPES = 200
HOST = Target(pad={"int8_t": 256, "uint16_t": 16})  # PAD as weights.c has it for wide registers
needs_tools = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64")
    or not all(shutil.which(tool) for tool in ("gcc", "nm")),
    reason="needs gcc and nm on x86 or 64-bit ARM",
)
MACRO = re.compile(r"#define (\w+) (\d+)\b")


def drawn(rng: np.random.Generator, large: bool) -> Furnished:
    """A shape with any of the parts that the C of a table's model may have."""

    def few(share: float) -> bool:
        return bool(rng.random() < share)

    hidden = tuple(int(n) for n in rng.integers(1, 40, rng.integers(0, 4)))
    if large:
        hidden = (*hidden[:1], *(int(n) for n in rng.integers(64, 100, 2)))
    head = ("gaussian", "student", "categorical")[rng.integers(3)]
    inputs, numbers = int(rng.integers(1, 33)), head != "categorical"
    levels = tuple(int(n) for n in rng.integers(1, 5, min(inputs - 1, 3))) if few(0.2) else ()
    return Furnished(
        inputs,
        hidden,
        int(rng.integers(2 - numbers, 9)),
        head,
        (int(rng.integers(1, 5)), int(rng.integers(1, 4))) if hidden and few(0.3) else None,
        levels,
        int(rng.integers(inputs - len(levels) + 1)) if few(0.2) else 0,
        guard=few(0.8),
        missing="mean" if few(0.7) else "refuse",
        shifted=few(0.5),
        reject=few(0.3),
        novelty=(3, 2, 2) if few(0.3) else None,
        laplace=few(0.2),
        narrowed=1 if numbers and hidden and few(0.2) else 0,
        filters=2 if numbers and hidden and few(0.2) else 0,
    )


def promised(shape: Furnished, dtypes: tuple[str, ...], source: Source, many: bool) -> Dimensions:
    """Dimensions from the shape, whatever arrays its model has."""
    layers = shape.widths[1:]
    planned = Dimensions.planned(
        shape.read, shape.outputs, layers, dtypes[0], shape.embedding, shape.encoding
    )
    rows = shape.read + 1 + (shape.hidden[-1] if shape.hidden else 0)
    return replace(
        planned,
        dtypes=dtypes,
        laplace=rows if shape.laplace else 0,
        shifted=shape.shifted,
        guard=shape.guard,
        takes_nan=shape.missing != "refuse",
        refuses=shape.reject and not planned.classes,
        novelty=source.model.novelty,
        narrowing=source.model.narrowing,
        live=source.model.live,
        many=many,
    )


def struct(source: Source) -> str:
    """The scratch memory of model.c with its macros filled in, as an array of its size."""
    code, found = source.code(), ""
    values = dict(MACRO.findall(code))
    for kind in ("embedding", "work"):
        end = code.find(f"}} {kind};")
        if end >= 0:
            found += code[code.rindex("typedef struct {", 0, end) : end] + f"}} {kind};\n"
    found = re.sub(r"\w+", lambda word: values.get(word[0], word[0]), found)
    found = re.sub(r"\b(embedding|work)\b", rf"{source.name}_\1_t", found)
    return f"{found}const char {source.name}_work[sizeof({source.name}_work_t)] = {{0}};\n"


def compiled(folder: Path, text: str) -> dict[str, tuple[int, int]]:
    """Where the symbols of a file of C lie, and their sizes."""
    (folder / "bulk.c").write_text(text)
    for command in (["gcc", *STRICT, "-c", "bulk.c"], ["nm", "-S", "bulk.o"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
    rows = [line.split() for line in done.stdout.splitlines()]
    return {name: (int(at, 16), int(size, 16)) for at, size, _, name in rows}


@needs_tools
def test_promised_sizes_are_those_of_the_compiled_c(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    """Every table of 200 shapes in each type, and their scratch memory, found by nm."""
    wanted: dict[str, int] = {}
    aligned, texts, gaps = [], [], 0
    for k in range(SHAPES):
        shape, many = drawn(rng, large=k % 5 == 0), bool(rng.random() < 0.2)
        for dtype in DTYPES:
            name, own = f"t{k}_{dtype}", shape
            if dtype == "int8":  # which has neither
                own = replace(shape, laplace=False, narrowed=0)
            count = len(own.widths) - 1
            wide = tuple(range(0, count - 1, 2)) if dtype == "float16" else ()
            source = own.empty(dtype, name, wide, many)
            dtypes = tuple("float32" if n in wide else dtype for n in range(count))
            d = promised(own, dtypes, source, many)
            for array in tables(d):
                wanted[f"{name}_{array.name}"] = HOST.bytes(array)
                weights = array.kind == "uint16_t" or array.name == "weights"
                assert (array.pad == "PAD") == weights  # kernels read beyond these
                aligned += [f"{name}_{array.name}"] if array.align else []
            wanted[f"{name}_work"] = struct_bytes(scratch(d))
            assert source.table_bytes == flash_bytes(tables(d))
            assert source.scratch_bytes() == struct_bytes(scratch(d))
            texts += [source.weights(), "#undef PAD\n#undef ON_A_LINE\n", struct(source)]
            gaps += dtype == "int8" and begins(int8_sizes(d))[1] > sum(int8_sizes(d))
    found = compiled(tmp_path, "".join(texts))
    assert {name: size for name, (_, size) in found.items()} == wanted
    assert gaps > SHAPES / 8
    assert len(aligned) > SHAPES
    assert all(found[name][0] % LINE == 0 for name in aligned)


def test_what_was_35_to_75_bytes_short() -> None:
    """Layers 129-67-65 in int8: the second one is large, so it begins on a cache line."""
    d = Dimensions.planned(129, 1, (67, 65, 2), "int8")
    first, second, last = int8_sizes(d)
    assert (first, second, last) == (132 * 67, 68 * 65, 68 * 2)
    assert min(first, second) >= LARGE > last
    starts, length = begins([first, second, last])
    assert starts == [0, first + 52, first + 52 + second]
    assert starts[1] % LINE == 0
    weights = Array("int8_t", "weights", length, "PAD", "ON_A_LINE ")
    assert weights in tables(d)
    # What arm-none-eabi-gcc makes of it; 129 flags of inputs that may be missing fill 132 bytes.
    assert sum(array.bytes for array in tables(d)) == 16_737
    assert flash_bytes(tables(d)) == Memory.of(d, "int8").tables == 16_740
    assert flash_bytes(tables(d), HELIUM) == 16_780


def test_tables_lie_as_gcc_lays_them() -> None:
    """The last table is the first one; on an M55 those that fill 16 bytes lie on 8 bytes."""
    arrays = [Array("float", "a", 4), Array("int8_t", "b", 5), Array("int8_t", "c", 9, "PAD", "A")]
    assert flash_bytes(arrays, CORTEX_M) == 12 + 8 + 16
    assert flash_bytes(arrays, Target(aligned=8, vector=16)) == 40  # c at 0, b at 12, a at 24
    assert flash_bytes(arrays, HELIUM) == 56  # c and 16 zeros at 0, b at 28, a at 40
    assert flash_bytes([Array("float", "a", 3), *arrays[1:]], HELIUM) == 28 + 8 + 12
    assert flash_bytes([]) == 0


def test_structs_are_padded_as_c_pads_them() -> None:
    members = [Array("uint8_t", "a", 3), Array("int64_t", "b", 1), Array("uint16_t", "c", 1)]
    assert struct_bytes(members) == 24
    assert struct_bytes(members[:1]) == 3
    assert struct_bytes([members[0], members[2]]) == 6
