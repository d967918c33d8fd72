"""The same core with its newer instructions hidden: how peers would run on one without them.

ONNX Runtime and LiteRT choose their kernels by the instruction cpuid. Here they run from copies in
which each cpuid is replaced by int3, whose signal `older_core.c` answers: as cpuid does, but
without AVX-512, VNNI in any form, and AMX. So they choose what they would on a core with AVX2. It
is an estimate: clock, caches and how fast AVX2 runs remain those of this core.

Whether it works is not taken on trust: `counted` steps through one call, instruction by
instruction, and counts those of AVX-512 and AVX-VNNI. The environment hides as much from glibc,
numpy and torch, which have switches for it, and makes this library compile for AVX2. It needs
Linux on x86, a C compiler and objdump.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

from rdeepsense.deploy.c.build import VARIABLE, need_compiler

PACKAGES = ("onnxruntime", "ai_edge_litert")
LIBRARY = "older_core.so"
CPUID, INT3 = b"\x0f\xa2", b"\xcc\x90"
FOLDER = "OLDER_CORE_FOLDER"  # set in the process that sees the older core
HIDDEN = {
    "OLDER_CORE": "1",
    VARIABLE: "avx2",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
}


class Instructions(NamedTuple):
    """Of one call."""

    all: int
    newer: int  # of AVX-512 and AVX-VNNI


def restart(folder: Path, like: str) -> NoReturn:
    """Run this program again on the older core; with like="here" on this one, also stepwise."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec and spec.origin:
            shutil.copytree(Path(spec.origin).parent, folder / package)
    for library in folder.rglob("*.so*"):
        replace_cpuid(library)
    sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment(folder, like)).returncode)


def environment(folder: Path, like: str) -> dict[str, str]:
    """Compile what is preloaded, and say what a process needs to take this folder's libraries."""
    preloaded, source = folder / LIBRARY, Path(__file__).with_suffix(".c")
    options = ["-O2", "-mgeneral-regs-only", "-shared", "-fPIC", "-o", str(preloaded)]
    subprocess.run([need_compiler("this benchmark"), *options, str(source)], check=True)
    own = {"LD_PRELOAD": str(preloaded), FOLDER: str(folder)}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return os.environ | own | (HIDDEN if like == "avx2" else {})


def replace_cpuid(library: Path) -> int:
    """Put int3 where a disassembly finds cpuid; the bytes alone are also in data and constants."""
    data = bytearray(library.read_bytes())
    if CPUID not in data:
        return 0
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        found = [re.match(r" *([0-9a-f]+):\s+cpuid\b", line) for line in made.stdout]
    addresses = [int(one[1], 16) for one in found if one]
    for address in addresses:
        at = _in_file(data, address)
        assert data[at : at + 2] == CPUID, f"{library} at {address:x}"
        data[at : at + 2] = INT3
    library.write_bytes(data)
    return len(addresses)


def _in_file(elf: bytes | bytearray, address: int) -> int:
    """Find where in a file lies what is loaded at this address, by its program headers."""
    (begin,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for header in range(begin, begin + size * count, size):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", elf, header)
        if kind == 1 and virtual <= address < virtual + length:
            return int(address - virtual + offset)
    raise ValueError(f"no segment has {address:x}")


def counted(call: Callable[[], object]) -> Instructions:
    """Step through a call; some ten thousand instructions take a tenth of a second."""
    library = ctypes.PyDLL(str(Path(os.environ[FOLDER]) / LIBRARY))
    every = ctypes.c_long()
    begin, end = library.count_begin, library.count_end
    end.restype = ctypes.c_long
    begin()
    try:
        call()
    finally:
        newer = end(ctypes.byref(every))
    return Instructions(every.value, newer)
