"""Sketches built as Arduino builds them: the sketch as C++, its library as C."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

STUBS = Path(__file__).parent / "stubs"
WARNED = ["-Wall", "-Wextra", "-Werror"]
COMPILERS = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if shutil.which(pair[1])]


def run(command: list[object], folder: Path | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=120
    )
    said = (done.stdout + done.stderr)[-3000:]
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}\n{said}"
    return done.stdout


def build(
    compilers: tuple[str, str],
    library: Path,
    example: str,
    folder: Path,
    times: int,
    flags: Sequence[str] = (),
    link: Sequence[str] = (),
) -> Path:
    """Compile a sketch and its library, of which it sees `src` alone; returns the program."""
    cc, cpp = compilers
    folder.mkdir(parents=True)
    sketch = library / "examples" / example
    parts = [f'#include "{sketch / example}.ino"', f"#define TIMES {times}", '#include "main.h"']
    (folder / "sketch.cpp").write_text("\n".join([*parts, ""]))
    paths = [f"-I{library / 'src'}", f"-I{STUBS}", f"-I{sketch}", "-DARDUINO=10819"]
    common = [*WARNED, *paths, *flags, "-c"]
    for source in [*(library / "src").glob("*.c"), *sketch.glob("*.c")]:
        run([cc, "-std=gnu11", *common, source], folder)
    run([cpp, "-std=gnu++11", "-fno-exceptions", "-fno-rtti", *common, "sketch.cpp"], folder)
    objects = sorted(path.name for path in folder.glob("*.o"))
    run([cc, *flags, *objects, *link, "-o", "program"], folder)
    return folder / "program"
