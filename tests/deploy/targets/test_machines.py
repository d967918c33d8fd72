"""Generated C on microcontrollers and other processors, all of them emulated."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import STRICT
from deploy.targets.machines import CORTEX, LINUX, M4, MORE, Machine, run
from deploy.targets.shapes import ROWS, Shape

from rdeepsense.deploy.folded.model import MeanStd
from rdeepsense.deploy.quantise import DTYPES

SMALL = Shape((16, 64, 64, 2))
BUSY = Shape((16, 64, 64, 2), busy=True)
PERIODIC = Shape((16, 64, 64, 2), waves=16)
WIDE = Shape((128, 64, 2))  # what reading the inputs costs shows
NET_A = Shape((16, 500, 500, 500, 4))
CLASSES = Shape((16, 64, 64, 6), head="categorical")
# Widths that leave a rest in every loop: of 4 inputs, of 4, 8 and 64 outputs.
ODD = [Shape((5, 67, 130, 6)), Shape((1, 1, 2)), Shape((13, 9, 3), head="categorical")]

# Most instructions. The counts do not vary; a wide path that is not taken goes far beyond.
MOST = {
    ("cortex-m4", SMALL, "float32"): 26_000,
    ("cortex-m4", SMALL, "float16"): 24_000,
    ("cortex-m4", SMALL, "int8"): 17_400,
    ("cortex-m7", SMALL, "int8"): 17_400,
    ("cortex-m55", SMALL, "int8"): 4_200,
    ("aarch64", SMALL, "int8"): 5_500,
    ("aarch64 dotprod", SMALL, "int8"): 3_700,
    ("aarch64 i8mm", SMALL, "int8"): 2_600,
    ("armhf", SMALL, "int8"): 5_900,
    ("cortex-m55", WIDE, "int8"): 8_500,
    ("aarch64", WIDE, "int8"): 9_900,
    ("aarch64 i8mm", WIDE, "int8"): 3_600,
    ("armhf", WIDE, "int8"): 12_000,
    ("aarch64", NET_A, "int8"): 290_000,
    ("aarch64 dotprod", NET_A, "int8"): 105_000,
    ("aarch64 i8mm", NET_A, "int8"): 77_000,
}


CASES = [
    (machine, shape, dtype)
    for machine in (*CORTEX, *LINUX)
    for shape, dtype in (
        *((SMALL, dtype) for dtype in DTYPES),
        (CLASSES, "float32"),
        (CLASSES, "int8"),
    )
] + [
    *((M4, BUSY, dtype) for dtype in ("float32", "int8")),
    *((machine, PERIODIC, dtype) for machine in (M4, *LINUX) for dtype in DTYPES),
    *((machine, SMALL, "int8") for machine in MORE),
    *((machine, WIDE, "int8") for machine in (CORTEX[-1], *LINUX[:2], MORE[-1])),
    *((machine, NET_A, "int8") for machine in (*LINUX, *MORE)),
]


@pytest.mark.parametrize(("machine", "shape", "dtype"), CASES, ids=str)
def test_the_self_test_passes_and_the_cost_is_bounded(
    machine: Machine,
    shape: Shape,
    dtype: str,
    tmp_path: Path,
    plugin: Path,
    record_property: Callable[[str, Any], None],
) -> None:
    folder = tmp_path / "model"
    source = shape.write(folder, dtype)
    machine.build(folder, "-fstack-usage", "-c", "model.c", "weights.c", "selftest.c")
    machine.build(folder, "selftest.o", "model.o", "weights.o", *machine.link, "-o", "selftest")
    assert machine.run(folder, "./selftest") == "self-test passed\n"

    # With what the compiler's own library adds, such as floats for a core that has none.
    library = run([machine.compiler, *machine.flags, "-print-libgcc-file-name"], folder).strip()
    run([f"{machine.tools}ld", "-r", "model.o", library, "-o", "code.o"], folder)
    sections = sizes(machine, folder, "code.o") + sizes(machine, folder, "weights.o")
    assert sum(size for name, size in sections if re.match(r"\.(data(?!\.rel\.ro)|bss)", name)) == 0
    frames = (folder / "model.su").read_text().splitlines()
    once, twice = (instructions(machine, folder, plugin, times) for times in (1, 2))
    measured = {
        "machine": machine.name,
        "flags": " ".join(machine.flags),
        "model": str(shape),
        "dtype": dtype,
        "flash": sum(size for _, size in sections),
        "code": sum(size for name, size in sections if name.startswith(".text")),
        "ram": source.scratch_bytes(),
        "stack": sum(int(line.split("\t")[1]) for line in frames),
        "instructions": round((twice - once) / ROWS),
    }
    record_property("measured", measured)
    if (machine.name, shape, dtype) in MOST:
        assert measured["instructions"] <= MOST[machine.name, shape, dtype]
    if machine is M4 and shape not in (CLASSES, PERIODIC) and dtype == "float32":
        assert measured["code"] <= 1_000
        assert measured["stack"] <= 600
        assert measured["instructions"] <= 26_000


def sizes(
    machine: Machine, folder: Path, file: str, kinds: str = r"\.(text|rodata|data|bss)"
) -> list[tuple[str, int]]:
    """The sections that go to the device, or those of other names."""
    listed = run([f"{machine.tools}size", "-A", file], folder).splitlines()
    found = [line.split() for line in listed if re.match(kinds, line)]
    return [(name, int(size)) for name, size, _ in found]


def instructions(machine: Machine, folder: Path, plugin: Path, times: int) -> int:
    """All that the emulator executes when the eight rows are predicted so many times."""
    objects = ["model.o", "weights.o", *machine.link]
    machine.build(folder, f"-DTIMES={times}", "rows.c", *objects, "-o", "rows")
    machine.run(folder, "./rows", "-plugin", str(plugin), "-d", "plugin", "-D", "count.log")
    return int((folder / "count.log").read_text().removeprefix("instructions "))


@pytest.mark.parametrize("shape", [SMALL, PERIODIC, *ODD], ids=str)
def test_int8_is_the_same_to_the_bit_everywhere(shape: Shape, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    source = shape.write(folder, "int8")
    files = ["-DTIMES=1", "rows.c", "model.c", "weights.c", "-o", "rows"]
    # Without these macros the plain C is compiled.
    run(["gcc", *STRICT, "-O2", "-U__SSE2__", "-U__ARM_NEON", *files], folder)
    plain = run(["./rows"], folder)
    assert len(set(plain.splitlines())) > 3
    assert len(plain.splitlines()) == 2 * ROWS * source.folded.facts.outputs
    for machine in (*CORTEX, *LINUX, *MORE):
        machine.build(folder, *files, *machine.link)
        assert machine.run(folder, "./rows") == plain, machine.name


@pytest.mark.parametrize("machine", [M4, *LINUX], ids=str)
def test_sines_are_those_of_python(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    source = PERIODIC.write(folder, "float32")
    files = ["-DTIMES=1", "rows.c", "model.c", "weights.c", *machine.link, "-o", "rows"]
    machine.build(folder, *files)
    bits = [int(line, 16) for line in machine.run(folder, "./rows").split()]
    found = np.array(bits, np.uint32).view(np.float32).reshape(ROWS, 2)
    text = (folder / "rows.h").read_text().split("= {", 1)[1].replace("f", "")
    X = np.array(re.findall(r"[-+.\de]+", text), np.float32).reshape(ROWS, -1)
    wanted = source.folded.run(X.astype(np.float64))
    assert isinstance(wanted, MeanStd)
    assert np.abs(found[:, :1] - wanted.mean).max() < 1e-5 * wanted.std.min()
    assert np.abs(found[:, 1:] - wanted.std).max() < 1e-5 * wanted.std.min()


CLANG = ["arm-none-eabi -mcpu=cortex-m4 -mfloat-abi=hard", "arm-none-eabi -mcpu=cortex-m0plus",
         "arm-none-eabi -mcpu=cortex-m55 -mfloat-abi=hard", "aarch64-none-elf",
         "riscv32-none-elf -march=rv32imc"]  # fmt: skip


@pytest.mark.parametrize("target", CLANG)
def test_clang_has_no_complaint(target: str, tmp_path: Path) -> None:
    for dtype in DTYPES:
        SMALL.write(tmp_path / dtype, dtype)
        flags = f"-O2 -ffreestanding --target={target} -c model.c weights.c".split()
        run(["clang", *STRICT, *flags], tmp_path / dtype)
