"""Compilation of generated C on this machine, its cache, and calls through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import operator
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense._files import hidden_beside, sweep
from rdeepsense.deploy.c.emit import Source, header
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.folded.file import check_folded
from rdeepsense.deploy.folded.graph import FoldedGraph
from rdeepsense.deploy.folded.model import Facts, Folded, MeanStd, Outputs, Probabilities
from rdeepsense.deploy.quantise import as_float32, check_single
from rdeepsense.errors import InputError
from rdeepsense.status import Statuses

# --------------------------------------------------------------------------------------------------
# Code size and stack of generated C, measured with a local compiler
# --------------------------------------------------------------------------------------------------


def compiler() -> str | None:
    """The C compiler that CC names, or cc, gcc, clang."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    return None


def code_and_stack(files: dict[str, str]) -> dict[str, object] | None:
    """Bytes of machine code and of stack of model.c, or None where that cannot be measured."""
    cc, size = compiler(), shutil.which("size")
    if cc is None or size is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("model.h", "model.c"):
            (folder / file).write_text(files[file])
        flags = ["-std=c99", "-O2", "-fstack-usage", "-DSMALL_STACK"]  # as for firmware
        try:
            subprocess.run(
                [cc, *flags, "-c", "model.c", "-o", "model.o"],
                cwd=folder,
                check=True,
                capture_output=True,
            )
            listed = subprocess.run(
                [size, "-A", "model.o"], cwd=folder, check=True, capture_output=True, text=True
            ).stdout
            usage = (folder / "model.su").read_text()
        except (subprocess.CalledProcessError, OSError):
            return None
    code = sum(int(line.split()[1]) for line in listed.splitlines() if line.startswith(".text"))
    # Every function once: no function calls itself, and none is called from two depths.
    stack = sum(int(line.split("\t")[1]) for line in usage.splitlines())
    return {"compiler": f"{Path(cc).name} -O2, this machine", "code": code, "stack": stack}


# --------------------------------------------------------------------------------------------------
# The cache of compiled models, and the processor they are for
# --------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return where libraries are kept; it is made when the first one is."""
    home = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "darwin" and not home:
        return Path.home() / "Library" / "Caches" / "rdeepsense"
    return (Path(home) if home else Path.home() / ".cache") / "rdeepsense"


def processor() -> str:
    """What -march=native depends on: a cache folder may be shared by several machines."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() + platform.node()
    return "".join(
        sorted(
            {line for line in text.splitlines() if line.startswith(("flags", "Feat", "model name"))}
        )
    )


# --------------------------------------------------------------------------------------------------
# Compilation of generated C, with a cache
# --------------------------------------------------------------------------------------------------

# Without contraction by the compiler every level of a processor rounds alike.
SHARED = ("-std=c99", "-O3", "-ffp-contract=off", "-shared", "-fPIC")
LIBRARY = (*SHARED, "-march=native")


@dataclass(frozen=True)
class Program:
    """C that predicts one row, and the models whose tables it reads.

    Among the files are model.h and model.c with `model_predict`, whatever is behind it.
    """

    files: Mapping[str, str]  # by path; the tables are not among them
    sources: tuple[Source, ...]

    @property
    def bytes(self) -> int:
        """Of all tables."""
        return sum(source.table_bytes for source in self.sources)


@dataclass(frozen=True)
class Target:
    """What to build of a program: how, and with what around it.

    With `levels`, the program's own files are compiled once for each, with the options given.
    """

    suffix: str
    flags: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def need_compiler(what: str) -> str:
    """The system's C compiler, or an error that says what wanted it."""
    cc = compiler()
    if cc is None:
        raise InputError(f"{what} needs a C compiler: none of cc, gcc, clang was found")
    return cc


def build(cc: str, program: Program, targets: Sequence[Target]) -> list[Path]:
    """The targets, built now or found in the cache; the tables are compiled once for all."""
    cache = cache_folder()
    paths = [cache / f"{_digest(cc, program, target)}{target.suffix}" for target in targets]
    if all(path.exists() for path in paths):
        return paths
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    sweep(cache)
    with hidden_beside(cache / "build", os.mkdir) as folder:
        _write(folder, program.files)
        objects = []
        for source in program.sources:
            stem = f"{source.name}_weights"
            (folder / f"{stem}.c").write_text(source.weights())
            _run(folder, [cc, "-std=c99", "-fPIC", "-c", f"{stem}.c"])
            objects.append(f"{stem}.o")
        own = [file for file in program.files if file.endswith(".c")]
        for path, target in zip(paths, targets, strict=True):
            _write(folder, target.files)
            texts = [*(_compiled(folder, cc, own, target) or own), *target.files, *objects]
            _run(folder, [cc, *target.flags, *texts, "-o", path.name, *target.libraries])
            os.replace(folder / path.name, path)
    return paths


def _compiled(folder: Path, cc: str, files: Sequence[str], target: Target) -> list[str]:
    """Compile files once for each level of a target."""
    made = []
    for level, options in target.levels.items():
        for k, file in enumerate(files):
            made.append(f"{level}_{k}.o")
            _run(folder, [cc, *target.flags, *options, "-c", file, "-o", made[-1]])
    return made


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)


def _run(folder: Path, command: list[str]) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{command[0]} could not compile the model: {done.stderr.strip()[:300]}")


def _digest(cc: str, program: Program, target: Target) -> str:
    """Of the text and the numbers, the compiler and, where it matters, this processor."""
    options = [option for level in target.levels.values() for option in level] or [processor()]
    texts = [cc, *options, *target.flags, *target.files.values(), *program.files.values()]
    digest = hashlib.sha256("\0".join(texts).encode())
    for source in program.sources:
        for table in source.tables:
            digest.update(np.ascontiguousarray(table.values).tobytes())
    return digest.hexdigest()[:32]


# --------------------------------------------------------------------------------------------------
# Processor levels: one library with code for each, selected when it is loaded
#
# So one build serves every x86, or every aarch64 Linux: that of a container, of a cluster's nodes,
# of a shared folder.
# --------------------------------------------------------------------------------------------------

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


def level_of(found: int, held: set[str]) -> str:
    """Choose among the levels that a library holds the best of those found on this processor."""
    here = [name for k, name in enumerate(LEVELS) if found >> k & 1 and name in held]
    wanted = os.environ.get(VARIABLE) or here[-1]
    if wanted not in here:
        raise InputError(f"{VARIABLE}={wanted!r} cannot run here; accepted: {', '.join(here)}")
    return wanted


# --------------------------------------------------------------------------------------------------
# Calls of a shared library through ctypes, with numpy alone
# --------------------------------------------------------------------------------------------------

ROWS_OF_A_THREAD = 16_384  # fewer are not worth one
CFunction = Callable[..., int]  # ctypes converts what is given


@dataclass(frozen=True)
class CompiledRunner:
    """The C of a folded model, in float32, called through ctypes."""

    facts: Facts
    rows: CFunction = field(compare=False, repr=False)
    has_epistemic: bool = False
    library: Path | None = None

    @classmethod
    def of(cls, library: Path, facts: Facts, has_epistemic: bool = False) -> CompiledRunner:
        """Take the function of a library that was built for this machine."""
        return cls(facts, _rows_function(library), has_epistemic, library)

    def run(self, X: NDArray[Any]) -> Outputs:
        with np.errstate(over="ignore"):
            rows: NDArray[np.float32] = np.ascontiguousarray(X, dtype=np.float32)
        out = np.empty((self.parts, len(rows), self.facts.outputs), dtype=np.float32)
        status = np.empty(len(rows), dtype=np.uint8)
        all_flags = self._into(rows, out, status)
        if all_flags and (np.isinf(rows) & np.isfinite(X)).any():
            self.facts.refuse(rows)  # says which value float32 cannot hold
        epistemic = out[-1] if self.has_epistemic else None
        if self.facts.is_classifier:
            return Probabilities(out[0], epistemic, status)
        return MeanStd(out[0], out[1], epistemic, status)

    def _into(self, rows: NDArray[np.float32], out: NDArray[np.float32], status: Statuses) -> int:
        """Predict rows where they lie, large batches in several threads; returns all flags."""
        count = len(rows)
        threads = min(available(), count // ROWS_OF_A_THREAD)

        def part(begin: int, end: int) -> int:
            given, made, told = rows[begin:], out[:, begin:], status[begin:]
            apart = count * self.facts.outputs
            return self.rows(_address(given), _address(made), apart, _address(told), end - begin)

        if threads < 2:
            return part(0, count)
        ends = [count * k // threads for k in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            return functools.reduce(operator.or_, pool.map(part, ends, ends[1:]))

    @property
    def parts(self) -> int:
        """How many arrays of `outputs` numbers come out."""
        return (1 if self.facts.is_classifier else 2) + self.has_epistemic

    def caller(self, x: NDArray[np.float32], out: NDArray[np.float32]) -> Callable[[], int]:
        """Return a function that predicts the row in `x` and leaves the result in `out`.

        Both arrays are used where they lie, so a loop that fills x and reads out copies nothing.
        x holds `inputs` float32, out 2 x `outputs` of them (means, then stds) or one for each
        class, with a laplace `outputs` more of them (epistemic). The function returns the C
        status, a number of `rdeepsense.Status`.
        """
        size = self.facts.outputs * self.parts
        inputs = prod((*self.facts.window, self.facts.inputs))
        for name, array, wanted in (("x", x, inputs), ("out", out, size)):
            if array.dtype != np.float32 or array.size != wanted or not array.flags.c_contiguous:
                raise InputError(f"{name} must be {wanted} contiguous float32 numbers")
        status = np.empty(1, dtype=np.uint8)
        given, made, told = (_pointer(array) for array in (x, out, status))
        apart, one = ctypes.c_size_t(self.facts.outputs), ctypes.c_size_t(1)
        # The arrays are bound so that they live as long as the function does.
        return functools.partial(
            _call, self.rows, (given, made, apart, told, one), (x, out, status)
        )


def _call(rows: CFunction, arguments: tuple[object, ...], _: object) -> int:
    return rows(*arguments)


def available() -> int:
    """Count the processors that this process may use; OMP_NUM_THREADS says so for all libraries."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal():
        return max(1, int(told))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _rows_function(path: Path) -> CFunction:
    library = ctypes.CDLL(str(path))
    held = {name for name in LEVELS if hasattr(library, f"{FUNCTION}_{name}")}
    level = f"_{level_of(library.model_levels(), held)}" if held else ""
    rows: CFunction = getattr(library, f"{FUNCTION}{level}")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    rows.argtypes = (pointer, pointer, size, pointer, size)  # type: ignore[attr-defined]
    rows.restype = ctypes.c_int  # type: ignore[attr-defined]
    return rows


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(_address(array))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


# --------------------------------------------------------------------------------------------------
# A folded model that runs its own compiled C
# --------------------------------------------------------------------------------------------------


def compiled(folded: Folded | FoldedGraph) -> CompiledRunner:
    """Build the C of a model, or find it in the cache."""
    source: Source
    if isinstance(folded, FoldedGraph):
        check_single(folded, "C")
        source = GraphSource(folded, as_stored(folded, "float32"), many=True)
    else:
        check_folded(folded)
        check_single(folded, "C")
        source = Source(folded, as_float32(folded), many=True)
    return compiled_source(source)


def compiled_source(source: Source) -> CompiledRunner:
    """Build the C of a source for `many` rows, with weights of any type."""
    folded = source.folded
    path = library_of(source, need_compiler("compile=True"))
    return CompiledRunner.of(path, folded.facts, folded.output.laplace is not None)


def library_of(source: Source, cc: str, machine: str | None = None) -> Path:
    """Build the library of a source, with the levels of this machine or of the one named."""
    levels = levels_of(source.network.dtype, machine)
    named = {level: (*flags, *renamed(header(source), level)) for level, flags in levels.items()}
    program = single(source)
    try:
        every = Target(".so", SHARED, {"levels.c": source.assembled("levels.c")}, (), named)
        (path,) = build(cc, program, [every if levels else Target(".so", LIBRARY)])
    except InputError:  # a compiler that is older than the levels
        (path,) = build(cc, program, [Target(".so", LIBRARY)])
    return path


def single(source: Source) -> Program:
    """Make the program that is a model as exported."""
    return Program({"model.h": header(source), "model.c": source.code()}, (source,))
