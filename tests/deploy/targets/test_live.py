"""C that learns on, on an emulated Cortex-M4: what this machine says, and what a label costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c.live_models import exported, fitted, rows
from deploy.c_models import STRICT, write
from deploy.targets.machines import HERE, M4, run

from rdeepsense.deploy.c.inputs import number

ROWS = 50
MOST = 50_000  # instructions of a label, 64 features


@pytest.fixture(scope="module")
def model() -> Any:
    return fitted("student", 1, (64, 64))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_stream_on_the_device(
    model: Any,
    dtype: str,
    tmp_path: Path,
    plugin: Path,
    record_property: Callable[[str, Any], None],
) -> None:
    source, folder = exported(model, dtype), tmp_path / "model"
    write(source, folder)
    X, y = rows(ROWS, 1, drift=3.0)
    body = ",\n".join("{" + ", ".join(map(number, row)) + "}" for row in X)
    told = ",\n".join("{" + number(label) + "}" for label in y)
    (folder / "stream.h").write_text(
        f"#define ROWS {ROWS}\n"
        f"static const float rows[ROWS][MODEL_INPUTS] = {{\n{body}}};\n"
        f"static const float labels[ROWS][MODEL_OUTPUTS] = {{\n{told}}};\n"
    )
    (folder / "stream.c").write_text((HERE / "stream.c").read_text())
    files = ["stream.c", "model.c", "weights.c"]
    quiet = "-Wno-unused-const-variable"
    run(["gcc", *STRICT, "-O2", "-DTIMES=1", "-DLEARNS=1", *files, "-o", "here"], folder)
    here = numbers(run(["./here"], folder))
    M4.build(folder, "-DTIMES=1", "-DLEARNS=1", *files, *M4.link, "-o", "stream")
    there = numbers(M4.run(folder, "./stream"))

    def counted(learns: int, times: int) -> int:
        flags = [quiet, f"-DTIMES={times}", f"-DLEARNS={learns}"]
        M4.build(folder, *flags, *files, *M4.link, "-o", "stream")
        M4.run(folder, "./stream", "-plugin", str(plugin), "-d", "plugin", "-D", "count.log")
        return int((folder / "count.log").read_text().removeprefix("instructions "))

    # A second time through the stream costs no start and no print.
    counts = [(counted(learns, 2) - counted(learns, 1)) / ROWS for learns in (-1, 0, 1)]
    assert np.abs((there - here) / here[:, 1:2]).max() < 1e-5
    assert np.abs(here[-1, 0] - here[0, 0]) > 0
    M4.build(folder, "-fstack-usage", "-c", "model.c")
    frames = (folder / "model.su").read_text().splitlines()
    live = source.model.live
    assert live is not None
    measured = {
        "machine": M4.name,
        "flags": " ".join(M4.flags),
        "model": "3-64-64-2, a label",
        "dtype": dtype,
        "ram": live.state_bytes(1),
        "stack": sum(int(line.split("\t")[1]) for line in frames),
        "instructions": round(counts[2] - counts[1]),
    }
    record_property("measured", measured)
    beside = {"model": "3-64-64-2, a row more", "instructions": round(counts[1] - counts[0])}
    record_property("measured", {**measured, **beside})
    assert measured["instructions"] <= MOST


def numbers(printed: str) -> Any:
    """Mean, std, low and high of each row."""
    bits = [int(line, 16) for line in printed.split()]
    return np.array(bits, np.uint32).view(np.float32).reshape(ROWS, 4).astype(np.float64)
