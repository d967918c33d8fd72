"""A core with its newer instructions hidden, as benchmarks make it, on a small library."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "older_core.py"
AVX2, NEWER = 1 << 5, 0xDC230000  # of EBX of leaf 7
ASKS = """
#include <cpuid.h>
const unsigned char bytes[] = {0x0f, 0xa2}; /* as cpuid has them, but data */
unsigned asks(void)
{
    unsigned a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    return b;
}
"""
SAYS = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import older_core
asks = ctypes.CDLL(sys.argv[2]).asks
asks.restype = ctypes.c_uint
print(asks(), *older_core.counted(lambda: None))
"""
pytestmark = pytest.mark.skipif(
    sys.platform != "linux"
    or platform.machine() != "x86_64"
    or not (shutil.which("gcc") and shutil.which("objdump")),
    reason="needs Linux on x86, gcc and objdump",
)


def older_core() -> Any:
    spec = importlib.util.spec_from_file_location("older_core", BENCHMARK)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cpuid_hides_what_is_newer_and_a_call_is_counted(tmp_path: Path) -> None:
    core, library = older_core(), tmp_path / "asks.so"
    (tmp_path / "asks.c").write_text(ASKS)
    command = ["gcc", "-O1", "-shared", "-fPIC", str(tmp_path / "asks.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    before = library.read_bytes()
    assert core.replace_cpuid(library) == 1
    after = library.read_bytes()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 2  # not the data
    said = {}
    for like in ("here", "avx2"):
        done = subprocess.run(
            [sys.executable, "-c", SAYS, str(BENCHMARK.parent), str(library)],
            env=core.environment(tmp_path, like),
            capture_output=True,
            text=True,
            check=True,
        )
        said[like], every, newer = map(int, done.stdout.split())
        assert every > 20  # a call of Python
    assert newer == 0
    assert said["here"] & AVX2 == said["avx2"] & AVX2
    assert said["avx2"] == said["here"] & ~NEWER
