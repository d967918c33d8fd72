"""What a page is told of its model: curves and ranges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense.deploy.web.export import POINTS, REACH, standard_curve


def facts_of(folder: Path) -> dict[str, Any]:
    code = (folder / "model.wasm").read_bytes()
    found: dict[str, Any] = json.loads(code[code.rindex(b'{"face"') :])
    return found


def test_a_gaussian_s_curve_is_the_normal_density(models: dict[str, Any]) -> None:
    curve = standard_curve(models["gaussian"].fitted_)
    assert curve is not None
    z = np.linspace(-REACH, REACH, POINTS)
    np.testing.assert_allclose(curve[0], np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), atol=3e-4)


def test_a_map_s_curve_has_mean_0_and_the_mass_of_its_intervals(
    models: dict[str, Any], page_of: Callable[..., Path]
) -> None:
    curve = standard_curve(models["student"].fitted_)
    facts = facts_of(page_of("student", models["student"]))
    assert curve is not None
    assert curve.shape == (2, POINTS)
    z = np.linspace(-REACH, REACH, POINTS)
    step = z[1] - z[0]
    for k in (0, 1):
        low, high = (facts[name][2][k] for name in ("low", "high"))
        edges = np.clip(np.r_[z - step / 2, z[-1] + step / 2], low, high)
        assert (np.diff(edges) * curve[k]).sum() == pytest.approx(0.9, abs=0.01)
    assert standard_curve(models["classes"].fitted_) is None


def test_ranges_are_those_of_the_rows_and_of_the_guard(
    models: dict[str, Any], page_of: Callable[..., Path]
) -> None:
    model = models["gaussian"]
    facts = facts_of(page_of("gaussian", model))
    X, y = model.fitted_.kept_rows
    one = facts["inputs"][1]
    assert one["least"] == pytest.approx(X[:, 1].min(), rel=1e-5)
    assert one["high"] == pytest.approx(model.fitted_.guard.high[1], rel=1e-5)
    assert facts["range"][0] == pytest.approx([y.min(), y.max()], rel=1e-5)
    assert (facts["face"], facts["targets"], facts["units"]) == ("table", ["heat"], ["W"])
