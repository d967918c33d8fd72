"""One prediction of net A (16-500-500-500-4) in WebAssembly: plain, SIMD and relaxed SIMD.

    python benchmarks/wasm.py [--rounds 60] [--page FILE]

Needs clang, lld and node; relaxed SIMD also the package ziglang. All builds take turns in every
round, and of each the round with the smallest time counts. `--page` writes the same as a page, for
any browser: `chromium --headless --dump-dom FILE`. int8 must give the same bits in every build.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import rdeepsense as rds
from rdeepsense.paper.tasks import catalogue

HERE = Path(__file__).parent
ROWS, TIMES = 8, 10
BARE = "-std=c99 -O3 -ffp-contract=off -ffreestanding -nostdlib -Wl,--no-entry -Wl,--export=run"
CLANG = ("clang", "--target=wasm32", *BARE.split(), "-mbulk-memory")
ZIG = (sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-freestanding", *BARE.split())
BUILDS = {
    "plain": CLANG,
    "SIMD": (*CLANG, "-msimd128"),
    "relaxed SIMD": (*ZIG, "-mcpu=generic+bulk_memory+simd128+relaxed_simd"),
}
PAGE = "<!doctype html><title>wasm</title><pre id=o></pre><script>{}\n{}</script>"


def exported(folder: Path, dtype: str) -> None:
    """Net A, hardly trained, as C with a function that predicts eight rows many times."""
    data = catalogue.load("GasSen", rows=4_000)
    model = rds.RDeepSenseRegressor(
        hidden=(500, 500, 500), epochs=8, effort="quick", likelihood="gaussian",
        random_state=0, verbose=False,
    ).fit(data.X, data.y)  # fmt: skip
    rds.export(model, folder, to="c99", dtype=dtype, max_nll_change=1.0)
    rows = ",\n".join(
        "{" + ", ".join(f"{value:.9e}f" for value in row) + "}"
        for row in np.asarray(data.X[:ROWS], np.float32)
    )
    (folder / "run.c").write_text(
        f'#include "model.h"\n#include <stdint.h>\n'
        f"static const float rows[{ROWS}][MODEL_INPUTS] = {{{rows}}};\n"
        "static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];\n"
        "uint32_t run(int times)\n{\n"
        "    union { float value; uint32_t bits; } seen[2][MODEL_OUTPUTS];\n"
        "    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS];\n"
        "    uint32_t sum = 0;\n    int t, r, k;\n"
        f"    for (t = 0; t < times; ++t) {{\n        for (r = 0; r < {ROWS}; ++r) {{\n"
        "            model_predict(rows[r], mean, std, scratch);\n"
        "            for (k = 0; k < MODEL_OUTPUTS; ++k) {\n"
        "                seen[0][k].value = mean[k];\n                seen[1][k].value = std[k];\n"
        "                sum = 31 * (31 * sum + seen[0][k].bits) + seen[1][k].bits;\n"
        "            }\n        }\n    }\n    return sum;\n}\n"
    )


def built(folder: Path, command: tuple[str, ...]) -> bytes:
    target = folder / "model.wasm"
    files = ["run.c", "model.c", "weights.c", "-o", target.name]
    subprocess.run([*command, *files], cwd=folder, check=True)
    return target.read_bytes()


def modules() -> dict[str, str]:
    """Every build by its name, in base64."""
    found = {}
    with tempfile.TemporaryDirectory() as made:
        for dtype in ("float32", "int8"):
            folder = Path(made) / dtype
            exported(folder, dtype)
            for name, command in BUILDS.items():
                if name == "relaxed SIMD" and importlib.util.find_spec("ziglang") is None:
                    print("relaxed SIMD is left out: pip install ziglang")
                elif (name, dtype) != ("relaxed SIMD", "float32"):
                    found[f"{dtype} {name}"] = base64.b64encode(built(folder, command)).decode()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--page", help="write a page that measures, instead of measuring")
    arguments = parser.parse_args()
    if shutil.which("clang") is None or shutil.which("node") is None:
        sys.exit("needs clang, lld and node")
    script = (HERE / "wasm_rounds.js").read_text()
    call = f"measured({json.dumps(modules())}, {arguments.rounds}, {TIMES}, {ROWS})"
    if arguments.page:
        shown = f"document.getElementById('o').textContent = {call};"
        Path(arguments.page).write_text(PAGE.format(script, shown))
        return
    # Before version 22, node's first compiler gets relaxed SIMD wrong.
    flags = ("--experimental-wasm-relaxed-simd", "--no-liftoff")
    with tempfile.NamedTemporaryFile("w", suffix=".cjs") as file:
        file.write(f"{script}\nconsole.log(process.version);\nconsole.log({call});\n")
        file.flush()
        subprocess.run(["node", *flags, file.name], check=True)


if __name__ == "__main__":
    main()
