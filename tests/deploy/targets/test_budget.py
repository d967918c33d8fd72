"""Models that were fitted within a budget, on emulated microcontrollers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.targets.machines import CORTEX, HERE, M4, Machine
from deploy.targets.shapes import ROWS
from deploy.targets.test_machines import sizes

import rdeepsense as rds
from rdeepsense.deploy.c.inputs import number
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.options import LabelledRows
from rdeepsense.deploy.quantise import NetworkRunner, prepare
from rdeepsense.networks import Periodic

DTYPES = ("float32", "int8")


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    """For each dtype a model of sines of one input, within 16 kB."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    y = np.sin(9 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=300)
    return {
        dtype: rds.RDeepSenseRegressor(
            network=Periodic((24, 24), 8, 4),
            budget=rds.Budget("16 kB", "2 kB", dtype=dtype),
            effort="quick",
            likelihood="gaussian",
            epochs=100,
            random_state=0,
            verbose=False,
        ).fit(X, y)
        for dtype in DTYPES
    }


def write(model: Any, dtype: str, folder: Path) -> Any:
    """Export a model beside rows.c; returns the rows that it predicts."""
    rds.export(model, folder, to="c99", dtype=dtype, max_nll_change=1)
    X = model.fitted_.kept_rows[0][:ROWS].astype(np.float32)
    body = ",\n".join("{" + ", ".join(map(number, row)) + "}" for row in X)
    table = f"static const float rows[ROWS][MODEL_INPUTS] = {{\n{body}}};\n"
    (folder / "rows.h").write_text(f"#define ROWS {ROWS}\n{table}")
    (folder / "rows.c").write_text((HERE / "rows.c").read_text())
    return X


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sine_path_equals_python(models: dict[str, Any], dtype: str, tmp_path: Path) -> None:
    model, folder = models[dtype], tmp_path / "model"
    X = write(model, dtype, folder)
    M4.build(folder, "-DTIMES=1", "rows.c", "model.c", "weights.c", *M4.link, "-o", "rows")
    bits = [int(line, 16) for line in M4.run(folder, "./rows").split()]
    found = np.array(bits, np.uint32).view(np.float32).reshape(ROWS, 2)
    folded, rows = fold(model), LabelledRows.of(model.fitted_).calibrating(dtype)
    wanted: Any = NetworkRunner(folded, prepare(folded, dtype, rows)).run(X)
    if dtype == "float32":
        wanted = folded.run(X.astype(np.float64))
    assert np.abs(found[:, :1] - wanted.mean).max() < 1e-5
    assert np.abs(found[:, 1:] - wanted.std).max() < 1e-5


@pytest.mark.parametrize("machine", CORTEX, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_device_needs_no_more_than_was_counted(
    models: dict[str, Any], machine: Machine, dtype: str, tmp_path: Path
) -> None:
    write(models[dtype], dtype, tmp_path / "model")
    folder, need = tmp_path / "model", models[dtype].training_["budget"]["need"]
    machine.build(folder, "-fstack-usage", "-c", "model.c", "weights.c")
    parts = [*sizes(machine, folder, "model.o"), *sizes(machine, folder, "weights.o")]
    assert sum(size for _, size in parts) <= need["flash"] <= 16 * 1024
    frames = (folder / "model.su").read_text().splitlines()
    stack = sum(int(line.split("\t")[1]) for line in frames)
    header = (folder / "model.h").read_text()
    scratch = int(header.split("MODEL_SCRATCH_BYTES ", 1)[1].split()[0])
    assert stack + scratch <= need["ram"] <= 2 * 1024
