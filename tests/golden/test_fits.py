"""The record of fits: every fit again, and model files of earlier versions loaded now.

On a processor and libraries like those of the record, every bit must be the same. Elsewhere other
kernels round differently and training carries that on, so values may differ by a part of the
standard deviation (of a probability, by as much of 1).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from golden.cases import CASES
from golden.fits import EXPORTS, FITS, MODELS, entries, machine, plain
from golden.observe import CC, export_outputs, folded_outputs, observe, predictions
from golden.tables import drawn
from numpy.typing import NDArray

import rdeepsense as rds

RECORD = json.loads(FITS.read_text())
SAME_BITS = ("cpu", "vectors", "kernels", "torch", "numpy")  # that equal bits take
# Weights that differ in the last bit may be rounded to another of the few numbers there are.
COARSE = {"float16": 2e-3, "int8": 0.1}
FIGURES = 1e-4  # of themselves
LOADED = 1e-9


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same_bits(observation: str = "") -> bool:
    here, then = machine(), RECORD["machine"]
    wanted = (*SAME_BITS, "onnxruntime") if observation.startswith("onnx") else SAME_BITS
    return all(here[name] == then[name] for name in wanted)


def differences(found: Any, wanted: Any) -> NDArray[np.float64]:
    """0 where both are the same, infinities and NaN included; infinite where only one is."""
    a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def apart(observation: str, found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """The largest difference, in predicted standard deviations; of classes, as it is.

    Doubt about logits has no unit but itself.
    """
    then = wanted[observation]["rows"]
    unit: Any = 1.0
    if "predict/std" in wanted:
        unit = 1.0 if observation.startswith("novelty") else wanted["predict/std"]["rows"]
    elif observation.endswith("/epistemic"):
        unit = np.max(np.abs(then)) or 1.0
    return float(np.max(differences(found[observation]["rows"], then) / unit))


def changed_values(
    found: dict[str, Any], wanted: dict[str, Any], bound: float, bits: bool
) -> list[str]:
    """A line for each observation that is not as recorded."""
    lines = [f"{name} is gone" for name in wanted if name not in found]
    lines += [f"{name} is new" for name in found if name not in wanted]
    for name in (n for n in wanted if n in found):
        now, then = found[name], wanted[name]
        if now["shape"] != then["shape"]:
            lines.append(f"{name} has the shape {now['shape']}, recorded {then['shape']}")
            continue
        most = next((b for kind, b in COARSE.items() if kind in name), bound)
        difference, exact = apart(name, found, wanted), bits and same_bits(name)
        if now["sha256"] != then["sha256"] if exact else difference > most:
            allowed = "every bit is to be the same" if exact else f"allowed: {most:g}"
            lines.append(f"{name} differs by {difference:.2g} std at most ({allowed})")
    return lines


def changed(found: dict[str, Any], wanted: dict[str, Any], bound: float) -> list[str]:
    """A line for each thing that is not as recorded."""
    facts, then = found["facts"], wanted["facts"]
    lines = [
        f"the fact {name} is {facts.get(name)!r}, recorded {then.get(name)!r}"
        for name in {**then, **facts}
        if facts.get(name) != then.get(name)
    ]
    if found["figures"].keys() != wanted["figures"].keys():
        lines.append(f"the figures are {[*found['figures']]}, recorded {[*wanted['figures']]}")
    else:
        for name, value in wanted["figures"].items():
            difference = differences(found["figures"][name], value)
            allowed = 0.0 if same_bits() else FIGURES * (abs(value) + 0.01)
            if difference > allowed:
                lines.append(f"the figure {name} is {found['figures'][name]!r}, recorded {value!r}")
    if same_bits():
        names = found["weights"].keys() | wanted["weights"].keys()
        other = sorted(n for n in names if found["weights"].get(n) != wanted["weights"].get(n))
        lines += [f"the weights {', '.join(other)} have other bits"] if other else []
    return lines + changed_values(found["values"], wanted["values"], bound, bits=True)


def told(name: str, lines: list[str]) -> str:
    here, then = machine(), RECORD["machine"]
    other = [
        f"{key} is {here[key]}, recorded {then[key]}" for key in then if here[key] != then[key]
    ]
    advice = "if this is intended, record it anew: python tests/golden/record.py fits"
    return "\n".join([f"{name} is not as recorded", *lines, *other, advice])


def test_the_record_is_of_these_cases() -> None:
    assert list(RECORD["cases"]) == list(CASES)
    saved = {name for name, case in CASES.items() if case.saved}
    assert {path.stem for path in MODELS.glob("*.safetensors")} == saved == {*RECORD["models"]}


@pytest.mark.filterwarnings("ignore:.*variances of the passes are below")
@pytest.mark.parametrize("name", CASES)
def test_a_fit_is_as_recorded(name: str, tmp_path: Path) -> None:
    found, recorded = plain(observe(CASES[name], tmp_path)), RECORD["cases"][name]
    values = {n: v for n, v in recorded["values"].items() if not n.startswith(EXPORTS)}
    lines = changed(found, {**recorded, "values": values}, CASES[name].bound)
    assert not lines, told(name, lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.exported])
def test_exports_of_a_fit_predict_as_recorded(name: str, tmp_path: Path) -> None:
    found, recorded = entries(export_outputs(CASES[name], tmp_path)), RECORD["cases"][name]
    # The C is missing where there is no compiler; the predicted std is a unit.
    forms = EXPORTS if shutil.which(CC[0]) else ("onnx-",)
    wanted = {n: v for n, v in recorded["values"].items() if n.startswith((*forms, "predict/"))}
    found |= {n: v for n, v in wanted.items() if n.startswith("predict/")}
    lines = changed_values(found, wanted, CASES[name].bound, bits=True)
    assert not lines, told(name, lines)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.saved])
def test_a_file_of_then_predicts_as_recorded(name: str) -> None:
    """A file holds float32 networks that run in float64, so any machine is as good."""
    case = CASES[name]
    own = {} if case.network is None else {"network": drawn(case.network)}
    model = rds.load(MODELS / f"{name}.safetensors", **own).set_params(device="cpu")
    values = predictions(model, case.X, case.groups) | folded_outputs(model, case.X)
    lines = changed_values(entries(values), RECORD["models"][name], LOADED, bits=False)
    assert not lines, told(name, lines)
