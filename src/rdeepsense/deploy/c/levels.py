"""Levels of x86: a library holds code for each, and which one runs is chosen when it is loaded.

So one build serves every processor: that of a container, of a cluster's nodes, of a shared folder.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping

from rdeepsense.errors import InputError

FUNCTION = "model_predict_many"  # another name where its arguments change: libraries are kept
VARIABLE = "RDEEPSENSE_LEVEL"  # forces a level: for tests, and to compare
# From the least to the most, in the order of the bits that `model_levels` in C sets.
FLAGS: dict[str, tuple[str, ...]] = {
    "sse2": ("-march=x86-64",),
    "avx2": ("-march=x86-64-v3",),
    "avxvnni": ("-march=x86-64-v3", "-mavxvnni"),
    "avx512": ("-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"),
}


def levels_of(dtype: str) -> Mapping[str, tuple[str, ...]]:
    """Say which levels a library is to hold; none on other processors."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return {}
    bytes_alone = {"avxvnni"} if dtype != "int8" else set()
    return {name: flags for name, flags in FLAGS.items() if name not in bytes_alone}


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
    here = [name for k, name in enumerate(FLAGS) if found >> k & 1 and name in held]
    wanted = os.environ.get(VARIABLE) or here[-1]
    if wanted not in here:
        raise InputError(f"{VARIABLE}={wanted!r} cannot run here; accepted: {', '.join(here)}")
    return wanted
