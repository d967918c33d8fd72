"""Generated C as WebAssembly, run by Node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deploy.c_models import STRICT
from deploy.targets.machines import HERE, run
from deploy.targets.shapes import Shape

from rdeepsense.deploy.prepare import DTYPES

# There is no C library: printf is given by Node, and main gets a name that can be exported.
FLAGS = "-O3 --target=wasm32 -mbulk-memory -ffreestanding -nostdlib -I. -Dmain=start -Wl,--no-entry"
MODEL = ["model.c", "weights.c"]
CASES = [
    *((Shape((16, 64, 64, 2)), dtype) for dtype in DTYPES),
    (Shape((16, 64, 64, 6), head="categorical"), "int8"),
]


def build(folder: Path, export: str, *arguments: str) -> None:
    flags = [*STRICT, *FLAGS.split(), f"-Wl,--export={export}", "-Wl,--allow-undefined"]
    run(["clang", *flags, *arguments], folder)


def node(folder: Path, program: str) -> str:
    return run(["node", str(HERE / "run_wasm.mjs"), program], folder)


@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_the_self_test_passes_under_node(
    shape: Shape, dtype: str, tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    folder = tmp_path / "model"
    source = shape.write(folder, dtype)
    (folder / "stdio.h").write_text("int printf(const char *, ...);\n")
    build(folder, "start", "selftest.c", *MODEL, "-o", "selftest.wasm")
    assert node(folder, "selftest.wasm") == "self-test passed\n"
    build(folder, "model_predict", *MODEL, "-o", "model.wasm")
    measured: dict[str, Any] = {
        "machine": "wasm32",
        "flags": FLAGS,
        "model": str(shape),
        "dtype": dtype,
        "flash": (folder / "model.wasm").stat().st_size,
        "ram": source.scratch_bytes(),
    }
    record_property("measured", measured)
    if dtype == "int8":
        rows = ["-DTIMES=1", "rows.c", *MODEL, "-o"]
        build(folder, "start", *rows, "rows.wasm")
        run(["gcc", *STRICT, *rows, "rows"], folder)
        assert node(folder, "rows.wasm") == run(["./rows"], folder)
    elif dtype == "float32":
        text = (folder / "weights.c").read_text()
        (folder / "weights.c").write_text(text.replace("0.", "0.0", 1))
        build(folder, "start", "selftest.c", *MODEL, "-o", "broken.wasm")
        with pytest.raises(AssertionError, match="FAILED: the tables hold the exported numbers"):
            node(folder, "broken.wasm")
