"""Generated C as WebAssembly, run by Node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deploy.targets.machines import PLAIN_WASM, PRINTF, SIMD, Machine
from deploy.targets.shapes import Shape

from rdeepsense.deploy.quantise import DTYPES

MODEL = ["model.c", "weights.c"]
SMALL = Shape((16, 64, 64, 2))
CASES = [
    *((PLAIN_WASM, SMALL, dtype) for dtype in DTYPES),
    (PLAIN_WASM, Shape((16, 64, 64, 6), head="categorical"), "int8"),
    *((SIMD, SMALL, dtype) for dtype in ("float32", "int8")),
]


@pytest.mark.parametrize(("machine", "shape", "dtype"), CASES, ids=str)
def test_the_self_test_passes_under_node(
    machine: Machine,
    shape: Shape,
    dtype: str,
    tmp_path: Path,
    record_property: Callable[[str, Any], None],
) -> None:
    folder = tmp_path / "model"
    source = shape.write(folder, dtype)
    (folder / "stdio.h").write_text(PRINTF)
    machine.build(folder, "selftest.c", *MODEL, *machine.link, "-o", "selftest.wasm")
    assert machine.run(folder, "selftest.wasm") == "self-test passed\n"
    machine.build(folder, *MODEL, "-Wl,--export=model_predict", "-o", "model.wasm")
    measured: dict[str, Any] = {
        "machine": machine.name,
        "flags": " ".join(machine.flags),
        "model": str(shape),
        "dtype": dtype,
        "flash": (folder / "model.wasm").stat().st_size,
        "ram": source.scratch_bytes(),
    }
    record_property("measured", measured)
    if machine is PLAIN_WASM and dtype == "float32":
        text = (folder / "weights.c").read_text()
        (folder / "weights.c").write_text(text.replace("0.", "0.0", 1))
        machine.build(folder, "selftest.c", *MODEL, *machine.link, "-o", "broken.wasm")
        with pytest.raises(AssertionError, match="FAILED: the tables hold the exported numbers"):
            machine.run(folder, "broken.wasm")
