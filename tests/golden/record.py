"""Record the present behaviour: `python tests/golden/record.py` writes golden.json.

For each case: facts, figures, a digest of every learnt table, and of every observation a digest
of all rows and the values of the first few. Nothing is rounded.

Files in models/ stay, with what they said when they were written, so that they grow old; those of
new cases are added. `--renew-models` writes all of them again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where `golden` is found

import gpytorch
import numpy as np
import onnxruntime
import scipy
import sklearn
import torch
from golden.cases import CASES
from golden.observe import Observed, digest, observe
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
GOLDEN, MODELS = HERE / "golden.json", HERE / "models"
EXPORTS = ("onnx-", "c-")  # forms that are not made of a loaded model
SHOWN = 6  # rows whose values are kept
VECTORS = ("avx", "fma", "f16c", "amx", "sse")  # what kernels are chosen by


@cache
def machine() -> dict[str, str]:
    """What the last bits of a fit depend on."""
    cpu, flags = platform.processor() or platform.machine(), ""
    try:
        for line in reversed(Path("/proc/cpuinfo").read_text().splitlines()):
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                cpu = value.strip()
            elif key.strip() == "flags":
                flags = " ".join(sorted(f for f in value.split() if f.startswith(VECTORS)))
    except OSError:  # no Linux
        pass
    versions = (torch, np, scipy, sklearn, onnxruntime, gpytorch)
    return {
        "cpu": cpu,
        "vectors": hashlib.sha256(flags.encode()).hexdigest(),
        "kernels": torch.backends.cpu.get_cpu_capability(),
        **{library.__name__: library.__version__ for library in versions},
    }


def entry(array: NDArray[np.float64]) -> dict[str, Any]:
    """One observation as it is recorded."""
    rows = array.reshape(len(array), -1)[:SHOWN]
    return {"shape": list(array.shape), "sha256": digest(array), "rows": rows.tolist()}


def plain(observed: Observed) -> dict[str, Any]:
    """A case as it is recorded."""
    values = {name: entry(array) for name, array in sorted(observed.values.items())}
    facts = json.loads(json.dumps(observed.facts))  # tuples become lists
    return {**vars(observed), "facts": facts, "values": values}


def without(values: dict[str, Any], *forms: str) -> dict[str, Any]:
    """The observations but those of some forms."""
    return {name: value for name, value in values.items() if not name.startswith(forms)}


def text(tree: Any, depth: int = 4, indent: str = "") -> str:
    """JSON with one line for each observation."""
    if not depth or not isinstance(tree, dict) or not tree:
        return json.dumps(tree, ensure_ascii=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(k)}: {text(v, depth - 1, inner)}" for k, v in tree.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def main(renew_models: bool) -> None:
    torch.set_num_threads(1)
    models = {} if renew_models else json.loads(GOLDEN.read_text())["models"]
    if renew_models:
        MODELS.mkdir(exist_ok=True)
        for old in MODELS.glob("*.safetensors"):
            old.unlink()
    cases = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            cases[name] = plain(observe(case, Path(folder)))
            if case.saved and name not in models:
                models[name] = without(cases[name]["values"], *EXPORTS)
                saved = (Path(folder) / "model.safetensors").read_bytes()
                (MODELS / f"{name}.safetensors").write_bytes(saved)
    GOLDEN.write_text(text({"machine": machine(), "cases": cases, "models": models}) + "\n")


if __name__ == "__main__":
    main(renew_models="--renew-models" in sys.argv[1:])
