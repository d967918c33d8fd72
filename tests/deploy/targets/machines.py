"""The machines that the generated C is tried on: how to compile for each, and how to run it."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.c_models import STRICT

HERE = Path(__file__).parent
PICOLIBC = ["--specs=picolibc.specs", "--oslib=semihost", "--crt0=hosted", "-mthumb"]
MEMORY = {"__flash": 0, "__flash_size": 0x40000, "__ram": 0x20000000, "__ram_size": 0x10000}
LAYOUT = [f"-Wl,--defsym={name}={value:#x}" for name, value in MEMORY.items()]
FPU = ("-mfloat-abi=hard", "-mfp16-format=ieee")


@dataclass(frozen=True)
class Machine:
    """`compiler` with `flags`, and the emulator that runs what it makes."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    emulator: tuple[str, ...]
    link: tuple[str, ...] = ("-static",)

    def __str__(self) -> str:
        return self.name

    @property
    def tools(self) -> str:
        return self.compiler.removesuffix("gcc")

    def build(self, folder: Path, *arguments: str) -> None:
        """Compile or link in this folder, without a warning."""
        run([*shlex.split(self.compiler), *STRICT, *self.flags, *arguments], folder)

    def run(self, folder: Path, program: str, *more: str) -> str:
        """What the program prints; it must end with status 0."""
        return run([self.emulator[0], *more, *self.emulator[1:], program], folder)


def zig() -> str | None:
    """A clang that is newer than Debian's: that of the package ziglang, or of a zig on the path."""
    if importlib.util.find_spec("ziglang") is not None:
        return f"{shlex.quote(sys.executable)} -m ziglang cc"
    return "zig cc" if shutil.which("zig") else None


def run(command: list[str], folder: Path) -> str:
    """Standard output of a command that must succeed within a minute."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
    )
    said = (done.stdout + done.stderr)[:3000]
    assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{said}"
    return done.stdout


def cortex(core: str, board: str, *flags: str) -> Machine:
    """A microcontroller, which talks to us by semihosting."""
    emulator = f"qemu-system-arm -machine {board} -nographic -monitor none -serial null"
    emulator += " -chardev stdio,id=out -semihosting-config enable=on,target=native,chardev=out"
    return Machine(
        f"cortex-{core}",
        "arm-none-eabi-gcc",
        ("-O2", f"-mcpu=cortex-{core}", *PICOLIBC, *flags),
        (*emulator.split(), "-kernel"),
        tuple(LAYOUT),
    )


M4 = cortex("m4", "mps2-an386", *FPU, "-mfpu=fpv4-sp-d16")
CORTEX = [
    cortex("m3", "lm3s6965evb"),
    M4,
    cortex("m7", "mps2-an500", *FPU, "-mfpu=fpv5-d16"),
    cortex("m55", "mps3-an547", *FPU),
]
LINUX = [
    Machine("aarch64", "aarch64-linux-gnu-gcc", ("-O3",), ("qemu-aarch64",)),
    Machine("armhf", "arm-linux-gnueabihf-gcc", ("-O3", "-mfpu=neon"), ("qemu-arm",)),
    Machine("riscv64", "riscv64-linux-gnu-gcc", ("-O3",), ("qemu-riscv64",)),
]

# Processors that have more than the least of their kind; what they change is int8.
MORE = [
    Machine("aarch64 dotprod", "aarch64-linux-gnu-gcc", ("-O3", "-march=armv8.2-a+dotprod"),
            ("qemu-aarch64", "-cpu", "max")),
    Machine("aarch64 i8mm", "aarch64-linux-gnu-gcc", ("-O3", "-march=armv8.6-a"),
            ("qemu-aarch64", "-cpu", "max")),
]  # fmt: skip

# There is no C library: printf is given by Node, and main gets a name that can be exported.
WASM = "-O3 -mbulk-memory -ffreestanding -nostdlib -I. -Dmain=start -Wl,--no-entry"
PRINTF = "int printf(const char *, ...);\n"  # is their stdio.h
NODE = ("node", str(HERE / "run_wasm.mjs"))


def wasm(name: str, *flags: str) -> Machine:
    """WebAssembly by Debian's clang."""
    more = ("--target=wasm32", *WASM.split(), *flags)
    return Machine(name, "clang", more, NODE, ("-Wl,--export=start", "-Wl,--allow-undefined"))


PLAIN_WASM, SIMD = wasm("wasm32"), wasm("wasm32 SIMD", "-msimd128")


def newest() -> list[Machine]:
    """What takes a newer compiler: RISC-V's vectors, of several lengths, and relaxed SIMD.

    Neither may join products and sums, nor, for QEMU 7.2 stumbles over its conversions, make
    vectors of more than was written as such.
    """
    compiler = zig()
    if compiler is None:
        return []
    exact = ("-O3", "-ffp-contract=off")
    vectors = (*exact, "-target", "riscv64-linux-musl", "-mcpu=generic_rv64+m+a+f+d+c+v",
               "-fno-vectorize", "-fno-slp-vectorize")  # fmt: skip
    relaxed = (*exact, "-target", "wasm32-freestanding",
               "-mcpu=generic+simd128+relaxed_simd", *WASM.split()[2:])  # fmt: skip
    # Node 20 has these instructions behind a flag, and its first compiler gets them wrong.
    node = (NODE[0], "--no-liftoff", "--experimental-wasm-relaxed-simd", *NODE[1:])
    link = ("-Wl,--export=start", "-Wl,--import-symbols")
    return [
        *(
            Machine(f"riscv64 V {bits}", compiler, vectors,
                    ("qemu-riscv64", "-cpu", f"rv64,v=true,vlen={bits},vext_spec=v1.0"))
            for bits in (128, 512)
        ),
        Machine("wasm32 relaxed SIMD", compiler, relaxed, node, link),
    ]  # fmt: skip
