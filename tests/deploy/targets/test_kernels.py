"""Every way that int8 multiplies on emulated processors: the bits of plain C99."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import STRICT
from deploy.targets.machines import (
    CORTEX,
    HERE,
    LINUX,
    MORE,
    PLAIN_WASM,
    PRINTF,
    SIMD,
    Machine,
    newest,
    run,
)
from deploy.targets.shapes import ROWS, Shape
from deploy.targets.test_machines import instructions

from rdeepsense.deploy.c.emit import RUNTIME, Source

EVERY = [*CORTEX, *LINUX, *MORE, PLAIN_WASM, SIMD, *newest()]
NET_A = (16, 500, 500, 500, 4)
MODELS = 200 if os.environ.get("RDEEPSENSE_LONG") else 3
MANY_ROWS = (HERE / "many_rows.c").read_text()
IN_C = HERE.parent / "c" / "runtime"
# For int8_test.c where there is no C library; the exit status tells.
NO_LIBRARY = {
    "math.h": "",
    "stdio.h": f"{PRINTF}#define stderr 0\n#define fprintf(to, ...) printf(__VA_ARGS__)\n",
}


def drawn(seed: int) -> Shape:
    """1 to 4 layers of any width; every second model has no unit that is zero."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(1, 150, rng.integers(0, 4))
    head, columns = (("gaussian", 2), ("categorical", 3))[seed % 2]
    widths = (int(rng.integers(1, 90)), *map(int, hidden), columns * int(rng.integers(1, 20)))
    return Shape(widths, head, busy=bool(rng.integers(2)), seed=seed)


@pytest.mark.parametrize("seed", range(MODELS))
def test_random_models_have_the_bits_of_plain_c(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shape = drawn(seed)
    source = shape.write(folder, "int8")
    (folder / "stdio.h").write_text(PRINTF)
    files = ["-DTIMES=1", "rows.c", "model.c", "weights.c", "-o", "rows"]
    # Without this macro the plain C is compiled.
    run(["gcc", *STRICT, "-O2", "-U__SSE2__", *files], folder)
    plain = run(["./rows"], folder)
    assert len(plain.splitlines()) == 2 * ROWS * source.folded.facts.outputs
    wide = Source(source.folded, source.network, many=True)
    (folder / "many.c").write_text(wide.code())
    (folder / "many_weights.c").write_text(wide.weights())
    (folder / "many_rows.c").write_text(MANY_ROWS)
    for machine in EVERY:
        machine.build(folder, *files, *machine.link)
        assert machine.run(folder, "./rows") == plain, f"{machine.name}: {shape}"
        if machine not in CORTEX:
            many = ["many_rows.c", "many.c", "many_weights.c", *machine.link, "-o", "many"]
            machine.build(folder, *many)
            assert machine.run(folder, "./many") == plain, f"{machine.name}, many rows: {shape}"


TESTS = [
    ("int8_test", "-O1"),
    ("int8_test", "-O2"),
    ("int8_test", "-O3"),
    ("int8_read_test", "-O1"),
    ("int8_read_test", "-O2 -DREFUSES_NAN=0"),
    ("int8_read_test", "-O3 -DGUARD=0"),
    ("int8_read_test", "-O2 -DREFUSES_NAN=0 -DGUARD=0"),
]


@pytest.mark.parametrize(("name", "options"), TESTS)
@pytest.mark.parametrize("machine", EVERY[1:], ids=str)
def test_the_tests_in_c_pass(machine: Machine, name: str, options: str, tmp_path: Path) -> None:
    """Products, bytes and inputs against plain loops; the board of the Cortex-M3 is too small."""
    if "wasm" in machine.name:
        for file, text in NO_LIBRARY.items():
            (tmp_path / file).write_text(text)
    flags = [f"-I{RUNTIME}", f"-I{IN_C}", *options.split(), *machine.link]
    if machine in CORTEX:
        flags.append("-Wl,--defsym=__ram_size=0x40000")
    machine.build(tmp_path, *flags, str(IN_C / f"{name}.c"), "-o", "test")
    machine.run(tmp_path, "./test")


@pytest.mark.parametrize("march", ["armv8-a", "armv8.2-a+dotprod", "armv8.6-a"])
def test_sanitisers_find_nothing(march: str, tmp_path: Path) -> None:
    flags = ["-O1", f"-march={march}", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    # Leaks cannot be looked for under an emulator.
    emulator = ["env", "ASAN_OPTIONS=detect_leaks=0", "qemu-aarch64", "-cpu", "max"]
    for name in ("int8_test", "int8_read_test"):
        files = [f"-I{RUNTIME}", str(IN_C / f"{name}.c"), "-o", name]
        run(["aarch64-linux-gnu-gcc", *STRICT, *flags, *files], tmp_path)
        run([*emulator, "-L", "/usr/aarch64-linux-gnu", f"./{name}"], tmp_path)


VECTORS = [machine for machine in newest() if machine.name == "riscv64 V 128"]


@pytest.mark.parametrize(("widths", "most"), [((16, 64, 64, 2), 9_000), (NET_A, 280_000)], ids=str)
@pytest.mark.parametrize("machine", VECTORS, ids=str)
def test_vectors_of_riscv_are_counted(
    machine: Machine,
    widths: tuple[int, ...],
    most: int,
    tmp_path: Path,
    plugin: Path,
    record_property: Callable[[str, Any], None],
) -> None:
    shape = Shape(widths)
    source = shape.write(tmp_path / "model", "int8")
    machine.build(tmp_path / "model", "-c", "model.c")
    machine.build(tmp_path / "model", "-c", "weights.c")
    once, twice = (instructions(machine, tmp_path / "model", plugin, times) for times in (1, 2))
    measured = {
        "machine": machine.name,
        "flags": " ".join(machine.flags),
        "model": str(shape),
        "dtype": "int8",
        "ram": source.scratch_bytes(),
        "instructions": round((twice - once) / ROWS),
    }
    record_property("measured", measured)
    assert measured["instructions"] <= most


@pytest.mark.skipif(not newest(), reason="RISC-V V and relaxed SIMD need the package ziglang")
def test_what_takes_a_newer_compiler_is_among_them() -> None:
    names = [machine.name for machine in EVERY]
    assert {"riscv64 V 128", "riscv64 V 512", "wasm32 relaxed SIMD"} <= set(names)
