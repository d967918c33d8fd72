"""Generated C, compiled for this machine once and kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rdeepsense._files import hidden_beside, sweep
from rdeepsense.deploy.c.cache import cache_folder, processor
from rdeepsense.deploy.c.measure import compiler
from rdeepsense.deploy.c.source import Source
from rdeepsense.errors import InputError

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
