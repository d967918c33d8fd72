"""The verdict and the figures by group at the end of `fit` and `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense.cli.scores import by_group
from rdeepsense.distributions import Gaussian


def test_figures_of_the_worst_group() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(10), 100)
    y = rng.normal(size=1000) * np.where(groups == 3, 3.0, 1.0)
    worst = by_group(Gaussian(np.zeros(1000), np.ones(1000)), y, ["y"], groups)["y"][0]
    assert (worst.group, worst.rows) == ("3", 100)
    assert worst.figures["coverage_90"] == np.mean(abs(y[groups == 3]) <= 1.6448536269514722)
    assert worst.figures["mae"] == pytest.approx(abs(y[groups == 3]).mean())


def test_fit_and_evaluate_end_with_it(run: Any, csv: Path) -> None:
    quick = ("--epochs", 12, "--hidden", 16, "--ignore", "z")
    fitted = run("fit", csv, "--target", "y", "--groups", "user", *quick, "--json", "-")
    assert fitted.code == 0, fitted.err
    written = json.loads(fitted.out)  # nothing else is on stdout
    found = written["verdict"]["y"]
    assert found["skill"] in ("weak", "fair", "strong")
    assert "MAE of boosted trees" in found["figures"]
    assert len(written["groups"]["y"]) == 4
    words = f"verdict   skill {found['skill']}, calibration {found['calibration']}\n"
    assert words in fitted.err
    assert f"\n          {found['skill_sentence']}\n" in fitted.err
    assert f"\n          {found['calibration_sentence']}\n" in fitted.err
    assert "rift" not in fitted.err  # its rows were drawn at random
    assert "Figures by user, the worst NLL first" in fitted.err
    evaluated = run("evaluate", "model.safetensors", csv, "--groups", "user")  # knows its target
    assert "90 % intervals contain " in evaluated.out
    assert "boosted trees" not in evaluated.out
    assert "Drift not checked: no time was given." in evaluated.out
    assert "Figures by user, the worst NLL first" in evaluated.out
    beside = run("evaluate", "model.safetensors", csv, "--train", csv)
    assert "boosted trees: " in beside.out
    whole = run("fit", csv, "--target", "y", *quick, "--test-fraction", 0, "-o", "m")
    assert "verdict   none: no row was kept for a test (--test-fraction)" in whole.out
