"""The record of fits, in fits.json.

For each case: facts, figures, a digest of every learned table, and of every observation a digest
of all rows and the values of the first few. Nothing is rounded. `machine` is the number of the
machine that it was recorded on. Recording changes only the cases that are not as recorded.

Files in models/ stay, with what they predicted when they were written, so that they grow old; those
of new cases are added.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from golden.cases import CASES, Case
from golden.compare import changed
from golden.machine import Machine, machine
from golden.observe import Observed, Values, digest, export_outputs, observe
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
FITS, MODELS = HERE / "fits.json", HERE / "models"
EXPORTS = ("onnx-", "c-")  # forms that are not made of a loaded model
SHOWN = 6  # rows whose values are kept


def entry(array: NDArray[Any]) -> dict[str, Any]:
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


def write(renew_models: bool) -> str:
    """Record the fits that changed; with `renew_models` the files in models/ as well."""
    torch.set_num_threads(1)
    record = json.loads(FITS.read_text())
    before, machines = record["cases"], record["machines"]
    models = {} if renew_models else record["models"]
    if renew_models:
        MODELS.mkdir(exist_ok=True)
        for old in MODELS.glob("*.safetensors"):
            old.unlink()
    cases = {name: before[name] for name in CASES if name in before}
    other = []
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            found = _found(case, Path(folder))
            if case.saved and name not in models:
                models[name] = {
                    n: v for n, v in found["values"].items() if not n.startswith(EXPORTS)
                }
                saved = (Path(folder) / "model.safetensors").read_bytes()
                (MODELS / f"{name}.safetensors").write_bytes(saved)
        if name not in cases or changed(found, cases[name], case.bound, made_on(record, name)):
            other.append(name)
            if machine() not in machines:
                machines.append(machine())
            found["machine"] = machines.index(machine())
            cases[name] = found
    ordered = {name: cases[name] for name in CASES}
    FITS.write_text(text({"machines": machines, "cases": ordered, "models": models}) + "\n")
    return ", ".join(other) or "no fit has changed"


def _found(case: Case, folder: Path) -> dict[str, Any]:
    """Return all that is recorded of a case."""
    found = plain(observe(case, folder))
    if case.exported:
        found["values"] |= entries(export_outputs(case, folder))
    return found


def made_on(record: dict[str, Any], name: str) -> Machine:
    """Return the machine that a case was recorded on."""
    found: Machine = record["machines"][record["cases"][name]["machine"]]
    return found
