"""Levels of a processor: a library holds code for each; which runs is chosen when it is loaded.

So one build serves every x86, or every aarch64 Linux: that of a container, of a cluster's nodes, of
a shared folder.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping

from rdeepsense.errors import InputError

Levels = Mapping[str, tuple[str, ...]]  # what the compiler is told, by name

FUNCTION = "model_predict_many"  # another name where its arguments change: libraries are kept
VARIABLE = "RDEEPSENSE_LEVEL"  # forces a level: for tests, and to compare
# From the least to the most, in the order of the bits that `model_levels` in C sets: 1, 2, 4, 8 of
# x86, then 16, 32, 64 of aarch64.
X86: Levels = {
    "sse2": ("-march=x86-64",),
    "avx2": ("-march=x86-64-v3",),
    "avxvnni": ("-march=x86-64-v3", "-mavxvnni"),
    "avx512": ("-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"),
}
AARCH64: Levels = {
    "neon": ("-march=armv8-a",),
    "dotprod": ("-march=armv8.2-a+dotprod",),
    "i8mm": ("-march=armv8.2-a+dotprod+i8mm",),
}
LEVELS: Levels = {**X86, **AARCH64}
BYTES_ALONE = {"avxvnni", "dotprod", "i8mm"}  # instructions for products of bytes
# By the names that Python gives machines. macOS calls its own arm64: it has no hwcaps to ask.
MACHINES = {"x86_64": X86, "AMD64": X86, "aarch64": AARCH64}


def levels_of(dtype: str, machine: str | None = None) -> Levels:
    """Say which levels a library is to hold; none on other processors than those with levels."""
    levels = MACHINES.get(machine or platform.machine(), {})
    left_out = BYTES_ALONE if dtype != "int8" else set()
    return {name: flags for name, flags in levels.items() if name not in left_out}


def renamed(header: str, level: str) -> list[str]:
    """Write the options that give each function of a model a name of its own at a level."""
    names = {*re.findall(r"\b(model_\w+)\(", header), FUNCTION}
    return [f"-D{name}={name}_{level}" for name in sorted(names)]


def options() -> tuple[str, ...]:
    """Write what to compile with for this processor alone, or for the level that is forced."""
    level, levels = os.environ.get(VARIABLE), levels_of("int8")
    if not level or not levels:
        return ("-march=native",)
    if level not in levels:
        raise InputError(f"{VARIABLE}={level!r} is no level; accepted: {', '.join(levels)}")
    return levels[level]


def chosen(found: int, held: set[str]) -> str:
    """Choose among the levels that a library holds the best of those found on this processor."""
    here = [name for k, name in enumerate(LEVELS) if found >> k & 1 and name in held]
    wanted = os.environ.get(VARIABLE) or here[-1]
    if wanted not in here:
        raise InputError(f"{VARIABLE}={wanted!r} cannot run here; accepted: {', '.join(here)}")
    return wanted
