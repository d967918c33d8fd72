"""Where the instructions of one prediction in C go, and which instruction set it uses."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from rdeepsense.deploy.c.build import Target, build, need_compiler, options, single
from rdeepsense.deploy.c.emit import Assembly
from rdeepsense.deploy.c.inputs import table
from rdeepsense.deploy.profile.forms import COUNTED, C, ProfiledModel

# Functions stay what they are, so that their instructions can be told apart.
APART = ("-g", "-fno-inline-functions", "-fno-inline-functions-called-once")
SETS = {  # by the macro that the compiler defines, the best first
    "__AVX512VNNI__": "AVX-512 VNNI",
    "__AVXVNNI__": "AVX-VNNI",
    "__AVX2__": "AVX2",
    "__SSE2__": "SSE2",
    "__ARM_FEATURE_MATMUL_INT8": "NEON i8mm",
    "__ARM_FEATURE_DOTPROD": "NEON dot product",
    "__ARM_NEON": "NEON",
}


def instruction_set() -> str:
    """What a build for this processor, or the level that is forced, multiplies bytes with."""
    cc = need_compiler("this benchmark")
    command = [cc, *options(), "-dM", "-E", "-x", "c", "/dev/null"]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    here = [name for macro, name in SETS.items() if f"#define {macro} " in macros]
    return (here or ["plain C99"])[0]


def instructions(profiled: ProfiledModel, dtype: str) -> Counter[str]:
    """Count those of each function in one prediction, by callgrind; it knows no AVX-512."""
    source = profiled.source(dtype)
    row = {"row.h": f"static {table('float', 'row', np.ascontiguousarray(profiled.row))}"}
    once = Assembly("model", source.switches | {"RUNS": False}, row).text(C / "once.c")
    target = Target("", ("-std=c99", "-O3", *APART, *COUNTED), {"once.c": once}, ("-lm",))
    (program,) = build(need_compiler("this benchmark"), single(source), [target])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts"
        options = ["--tool=callgrind", "--toggle-collect=model_predict"]
        command = ["valgrind", *options, f"--callgrind-out-file={file}", str(program)]
        subprocess.run(command, capture_output=True, check=True)
        listed = subprocess.run(
            ["callgrind_annotate", "--threshold=100", str(file)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    found: Counter[str] = Counter()
    for count, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +\S+:(\w+)", listed, re.MULTILINE):
        found[name] += int(count.replace(",", ""))  # a function has lines of several files
    return found


def tell(profiled: ProfiledModel) -> None:
    """Print the functions of each form, the dearest first."""
    if shutil.which("valgrind") is None:
        print("  --profile needs valgrind")
        return
    for dtype in ("float32", "float16", "int8"):
        found = instructions(profiled, dtype)
        total = sum(found.values())
        parts = [f"{name} {n / total:.1%}" for name, n in found.most_common() if n > total / 500]
        print(f"  c-{dtype}, AVX2, {total:,} instructions: {', '.join(parts)}")
