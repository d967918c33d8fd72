"""`rdeepsense fit --budget`: what it says, draws and refuses; the export is within it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import rdeepsense as rds

AUTO = ("--hidden", "auto", "--epochs", "1", "--ignore", "z", "--ignore", "label", "--ignore")
AUTO = (*AUTO, "site", "--ignore", "same", "--ignore", "user", "--drop-prob", "0.05")
AUTO = (*AUTO, "--alpha", "0.5", "--likelihood", "gaussian")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_fit_and_export_are_within_it(run: Any, csv: Path) -> None:
    limits = "flash=7kB,ram=2kB,multiply_adds=2000,dtype=int8"
    fitted = run("fit", csv, "--target", "y", *AUTO, "--budget", limits, "--plot", "p")
    assert fitted.code == 0, fitted.err
    (line,) = (line for line in fitted.out.splitlines() if line.startswith("budget"))
    sizes = r"flash \d\.\d of 7 kB, ram \d\.\d of 2 kB"
    assert re.fullmatch(rf"budget    {sizes}, [\d,]+ of 2,000 multiply-adds, int8", line)
    for name in ("p.png", "p.svg", "p-front.png", "p-front.svg"):
        assert f"wrote {name}" in fitted.out
        assert Path(name).stat().st_size > 1_000
    told = rds.load("model.safetensors").training_["budget"]
    assert (told["flash"], told["ram"], told["multiply_adds"]) == (7_168, 2_048, 2_000)
    exported = run("export", "model.safetensors", "--to", "c99", "--dtype", "int8", "-o", "c")
    assert exported.code == 0, exported.err
    report = json.loads(Path("c/report.json").read_text())
    sizes = report["bytes"]
    assert sizes["tables_in_flash"] < told["need"]["flash"] <= 7_168
    assert sizes["ram_scratch"] < told["need"]["ram"] <= 2_048
    assert report["multiply_adds"] == told["need"]["multiply_adds"] <= 2_000


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("64kB", "--budget: budget '64kB': '64kB' is not understood"),
        ("dtype=int8", "--budget: a budget limits something"),
        ("flash=1kB", r"needs flash 3\.9 of 1 kB"),
    ],
)
def test_refusals(run: Any, csv: Path, limits: str, words: str) -> None:
    result = run("fit", csv, "--target", "y", *AUTO, "--budget", limits)
    assert result.code != 0
    assert re.search(words, result.err)
    assert not Path("model.safetensors").exists()
