"""Half floats: which layers keep float32, that the C of a mixture is right, and that it is said."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.folded_models import finished, forward
from deploy.random_models import Drawn, draw, give_laplace

import rdeepsense as rds
from rdeepsense.calibration import Scale
from rdeepsense.cli import main
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.quantise import HALF_CHANGE, as_float16, as_float32

needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
export = partial(rds.export, to="c99", dtype="float16", max_nll_change=1.0)
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def demanding(laplace: bool = False) -> Drawn:
    """Student-t, 9-36-53-1, whose std is so small that rounding shows beside it."""
    drawn = draw(1, widest=70, most=9)
    estimator, X = drawn.estimator, drawn.X
    kept = (X, estimator.predict(X))  # so that an export chooses by the rows of these tests
    estimator.fitted_ = replace(estimator.fitted_, calibration=Scale(0.01), kept_rows=kept)
    return give_laplace(drawn) if laplace else drawn


def test_layers_keep_float32_where_they_must_and_no_others() -> None:
    folded, X = fold(demanding().estimator), demanding().X
    network = as_float16(folded, X)
    kept = [k for k, layer in enumerate(network.layers) if layer.dtype == "float32"]
    assert (network.dtype, kept) == ("float16", [0, 2])

    def moved(kept: list[int]) -> float:
        """By what the layers in half floats move a prediction, worked out anew."""
        h = (X.astype(np.float32) - network.centre) * network.per_scale
        for k, wide in enumerate(as_float32(folded).layers):
            gain = 2.0 ** (np.ceil(np.log2(np.abs(wide.weight).max())) - 15)
            half = (wide.weight / gain).astype(np.float16).astype(np.float64) * gain
            h = h @ (wide.weight if k in kept else half).T + wide.bias
            h = np.maximum(h, 0) if k < 2 else h
        found, wanted = finished(folded, h), forward(folded, X.astype(np.float32))
        return float(np.abs((found - wanted) / wanted[1]).max())

    assert moved([0, 2]) <= HALF_CHANGE < min(moved([]), moved([0]), moved([2]))


def test_a_model_that_needs_nothing_keeps_all_layers_half(tmp_path: Path) -> None:
    drawn = draw(0, widest=70, most=9)
    report: Any = export(drawn.estimator, tmp_path / "m")
    assert report.kept_float32 == []
    assert {layer.dtype for layer in report.layers} == {"float16"}
    assert "Weights: float16. " in (tmp_path / "m/model.h").read_text()
    assert "kept in float32" not in (tmp_path / "m/README.md").read_text()
    assert "single" not in (tmp_path / "m/model.c").read_text()


def test_the_report_says_which_layers_are_not_half(tmp_path: Path) -> None:
    export(demanding().estimator, tmp_path / "m")
    report = json.loads((tmp_path / "m/report.json").read_text())
    assert report["kept_float32"] == [0, 2]
    assert [layer["dtype"] for layer in report["layers"]] == ["float32", "float16", "float32"]
    assert report["dtype"] == "float16"
    tables = 4 * (9 * 36 + 53 * 2) + 2 * 36 * 53 + 4 * (4 * 9 + 36 + 53 + 2 + 1 + 1)
    assert report["bytes"]["tables_in_flash"] == tables
    assert "Weights: float16 and float32. " in (tmp_path / "m/model.h").read_text()
    said = (tmp_path / "m/README.md").read_text()
    assert "kept in float32: 0, 2. With all in float16 a mean or std would move by more" in said


def test_the_command_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "model", tmp_path / "out"
    demanding().estimator.save(model)
    arguments = ["export", model, "--to", "c99", "--dtype", "float16", "-o", out]
    with pytest.raises(SystemExit):
        main([*map(str, arguments), "--max-nll-change", "9"])
    assert "float32        layer 0, 2: half floats are too coarse\n" in capsys.readouterr().out


@pytest.mark.compilers
@needs_cc
@pytest.mark.parametrize("laplace", [False, True])
def test_the_c_of_a_mixture_agrees(laplace: bool, tmp_path: Path) -> None:
    drawn = demanding(laplace)
    folded = fold(drawn.estimator, "laplace" if laplace else None)
    X = drawn.X.astype(np.float32)
    source = Source(folded, as_float16(folded, X))
    assert source.values["dtype"] == "float16 and float32"
    folder = write(source, tmp_path / "m", X)
    mean, std, epistemic, _ = folded.run(X)
    for compiler in COMPILERS:
        for flags in (["-O0"], ["-O3"], ["-O3", "-march=native"]):
            status, found = predict(library(folder, compiler, *flags), source, X)
            assert set(status) == {0}
            assert np.abs((found[0] - mean) / std).max() < HALF_CHANGE
            assert np.abs(found[1] / std - 1).max() < HALF_CHANGE
            if laplace:
                assert np.abs(found[2] / epistemic - 1).max() < 5e-3
    for flags in (SANITISED, [*SANITISED, "-march=native"]):
        run_cc(folder, "gcc", *STRICT, *flags, "selftest.c", "model.c", "weights.c", "-o", "test")
        run_cc(folder, folder / "test")


@pytest.mark.compilers
@needs_cc
def test_one_layer_with_a_std_too_small_for_half_floats(tmp_path: Path) -> None:
    """Student-t, 7 inputs, 159 outputs, no hidden layer: rounded, a mean moved by 2.9e-3 std."""
    drawn = draw(142, 700, 300)
    folded, X = fold(drawn.estimator), drawn.X.astype(np.float32)
    assert folded.layers.widths == (7, 318)
    source = Source(folded, as_float16(folded, X))
    found = predict(library(write(source, tmp_path / "m", X), COMPILERS[0], "-O2"), source, X)[1]
    mean, std = drawn.estimator.predict(X, return_std=True)
    assert np.abs((found[0] - mean) / std).max() < HALF_CHANGE
    assert source.network.dtype == "float32"


def test_without_rows_some_are_drawn() -> None:
    folded = fold(demanding().estimator)
    network = as_float16(folded, np.empty((0, folded.facts.inputs)))
    assert "float32" in {layer.dtype for layer in network.layers}
