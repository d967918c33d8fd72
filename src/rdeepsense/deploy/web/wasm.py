"""Exported C compiled to WebAssembly, by clang where it can, else by the compiler of ziglang."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from rdeepsense.deploy.c.assemble import Assembly
from rdeepsense.errors import InputError

HERE = Path(__file__).parent / "c"
SOURCES = ("page.c", "model.c", "weights.c", "selftest.c")
# No contraction: every browser then has the numbers that the same C has elsewhere.
FLAGS = (
    "-std=c99",
    "-O2",
    "-mbulk-memory",
    "-ffp-contract=off",
    "-ffreestanding",
    "-nostdlib",
    "-Dmain=page_selftest",
    "-I.",
    "-Wl,--no-entry",
    "-Wl,--strip-all",
)
ALWAYS = ("page_selftest", "page_inputs", "page_outputs", "page_predict")
EXPORTS = {
    "GUARD": ("page_flagged",),
    "LIVE": ("page_begin", "page_live", "page_truth", "page_observe", "page_state",
             "page_state_bytes", "page_seal", "page_check"),
    "PERSONAL": ("page_personal",),
    "SENSES": ("page_begin_stream", "page_sample", "page_push", "page_times", "page_decide"),
}  # fmt: skip
OF_CLASSES = ("page_label", "page_probability")  # of a stream


def build_wasm(folder: Path, switches: Mapping[str, bool]) -> bytes:
    """Compile the C of a folder with what a page calls; its name there is `model`."""
    names = [*ALWAYS, *(name for key, own in EXPORTS.items() if switches[key] for name in own)]
    names += OF_CLASSES if switches["SENSES"] and switches["CLASSES"] else ()
    (folder / "page.c").write_text(Assembly("model", switches).text(HERE / "page.c"))
    (folder / "stdio.h").write_text((HERE / "stdio.h").read_text())
    exported = [f"-Wl,--export={name}" for name in names]
    command = [*wasm_compiler(), *FLAGS, *exported, *SOURCES, "-o", "model.wasm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{command[0]} could not compile the page: {done.stderr.strip()[:300]}")
    return (folder / "model.wasm").read_bytes()


@cache
def wasm_compiler() -> tuple[str, ...]:
    """Return the command that compiles C to WebAssembly, or say how to get one."""
    clang = shutil.which("clang")
    if clang and shutil.which("wasm-ld") and "wasm32" in _targets(clang):
        return (clang, "--target=wasm32")
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-freestanding")
    raise InputError(
        "to='web' needs a compiler for WebAssembly: install rdeepsense[web], which brings one, or "
        "clang with lld"
    )


def _targets(clang: str) -> str:
    done = subprocess.run([clang, "--print-targets"], capture_output=True, text=True)
    return done.stdout
