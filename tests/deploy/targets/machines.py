"""The machines that the generated C is tried on: how to compile for each, and how to run it."""

from __future__ import annotations

import subprocess
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
        run([self.compiler, *STRICT, *self.flags, *arguments], folder)

    def run(self, folder: Path, program: str, *more: str) -> str:
        """What the program prints; it must end with status 0."""
        return run([self.emulator[0], *more, *self.emulator[1:], program], folder)


def run(command: list[str], folder: Path) -> str:
    """Standard output of a command that must succeed within a minute."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
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
