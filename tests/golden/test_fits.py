"""The record of fits: every fit again, and model files of earlier versions loaded now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from golden.cases import CASES
from golden.compare import changed, changed_values
from golden.fits import EXPORTS, FITS, MODELS, entries, made_on, plain
from golden.machine import Machine, machine
from golden.observe import CC, export_outputs, folded_outputs, observe, predictions
from golden.tables import drawn

import rdeepsense as rds

RECORD = json.loads(FITS.read_text())
LOADED = 1e-9


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def told(name: str, lines: list[str], then: Machine) -> str:
    here = machine()
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
    then = made_on(RECORD, name)
    lines = changed(found, {**recorded, "values": values}, CASES[name].bound, then)
    assert not lines, told(name, lines, then)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.exported])
def test_exports_of_a_fit_predict_as_recorded(name: str, tmp_path: Path) -> None:
    found, recorded = entries(export_outputs(CASES[name], tmp_path)), RECORD["cases"][name]
    # The C is missing where there is no compiler; the predicted std is a unit.
    forms = EXPORTS if shutil.which(CC[0]) else ("onnx-",)
    wanted = {n: v for n, v in recorded["values"].items() if n.startswith((*forms, "predict/"))}
    found |= {n: v for n, v in wanted.items() if n.startswith("predict/")}
    then = made_on(RECORD, name)
    lines = changed_values(found, wanted, CASES[name].bound, then)
    assert not lines, told(name, lines, then)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.saved])
def test_a_file_of_then_predicts_as_recorded(name: str) -> None:
    """A file holds float32 networks that run in float64, so any machine is as good."""
    case = CASES[name]
    own = {} if case.network is None else {"network": drawn(case.network)}
    model = rds.load(MODELS / f"{name}.safetensors", **own).set_params(device="cpu")
    values = predictions(model, case.X, case.groups) | folded_outputs(model, case.X)
    lines = changed_values(entries(values), RECORD["models"][name], LOADED, None)
    assert not lines, told(name, lines, made_on(RECORD, name))
