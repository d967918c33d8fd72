"""`rdeepsense fit --unit`: names and units of the command line end up in the model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rdeepsense as rds

QUICK = ("--epochs", 2, "--hidden", "4", "--quiet", "--ignore", "user")


def test_names_and_units_are_kept(run: Any, csv: Path) -> None:
    units = ("--unit", "y=m/s", "--unit", "b [V]=V", "--unit", "a=k=1")
    bad = run("fit", "--quick", csv, "--target", "y", "--target", "z", *QUICK, *units)
    assert bad.code == 1
    assert "--unit 'a=k=1': 'a=k' is no input or numeric target of this fit" in bad.err
    assert (
        run("fit", "--quick", csv, "--target", "y", "--target", "z", *QUICK, *units[:4]).code == 0
    )
    model = rds.load("model.safetensors")
    assert model.fitted_.target.names == ("y", "z")
    assert model.fitted_.target.units == ("m/s", "")
    assert (
        dict(zip(model.feature_names_in_, model.fitted_.inputs.units, strict=True))["b [V]"] == "V"
    )


def test_without_units_there_are_none(run: Any, csv: Path) -> None:
    assert run("fit", "--quick", csv, "--target", "label", *QUICK).code == 0
    model = rds.load("model.safetensors")
    assert model.fitted_.target.names == ("label",)
    assert (model.fitted_.target.units, model.fitted_.inputs.units) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "y", "--unit", "metres"), "--unit 'metres': give NAME=UNIT"),
        (("--target", "label", "--unit", "label=V"), "'label' is no input or numeric target"),
    ],
)
def test_refusals(run: Any, csv: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("fit", "--quick", csv, *arguments, *QUICK)
    assert result.code == 1
    assert message in result.err
    assert not Path("model.safetensors").exists()
