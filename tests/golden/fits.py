"""The record of fits, in fits.json.

For each case: facts, figures, a digest of every learned table, and of every observation a digest
of all rows and the values of the first few. Nothing is rounded.

Files in models/ stay, with what they predicted when they were written, so that they grow old; those
of new cases are added.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import onnxruntime
import scipy
import sklearn
import torch
from golden.cases import CASES
from golden.observe import Observed, Values, digest, export_outputs, observe
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
FITS, MODELS = HERE / "fits.json", HERE / "models"
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
    facts = json.loads(json.dumps(observed.facts))  # tuples become lists
    return {**vars(observed), "facts": facts, "values": entries(observed.values)}


def entries(values: Values) -> dict[str, Any]:
    """Observations as they are recorded."""
    return {name: entry(array) for name, array in sorted(values.items())}


def text(tree: Any, depth: int = 4, indent: str = "") -> str:
    """JSON with one line for each observation."""
    if not depth or not isinstance(tree, dict) or not tree:
        return json.dumps(tree, ensure_ascii=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(k)}: {text(v, depth - 1, inner)}" for k, v in tree.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def write(renew_models: bool) -> None:
    """Record all fits anew; with `renew_models` the files in models/ as well."""
    torch.set_num_threads(1)
    models = {} if renew_models else json.loads(FITS.read_text())["models"]
    if renew_models:
        MODELS.mkdir(exist_ok=True)
        for old in MODELS.glob("*.safetensors"):
            old.unlink()
    cases = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            cases[name] = plain(observe(case, Path(folder)))
            if case.saved and name not in models:
                models[name] = dict(cases[name]["values"])
                saved = (Path(folder) / "model.safetensors").read_bytes()
                (MODELS / f"{name}.safetensors").write_bytes(saved)
            if case.exported:
                cases[name]["values"] |= entries(export_outputs(case, Path(folder)))
    FITS.write_text(text({"machine": machine(), "cases": cases, "models": models}) + "\n")
