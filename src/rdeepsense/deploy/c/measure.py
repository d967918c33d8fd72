"""Code and stack of generated C, measured with the compiler at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


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
