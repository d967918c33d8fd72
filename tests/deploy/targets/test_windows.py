"""DeepSense in C on emulated processors: its self-test everywhere, its cost on a Cortex-M4."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.targets.machines import CORTEX, HERE, LINUX, M4, Machine
from deploy.targets.test_machines import sizes

import rdeepsense as rds
from rdeepsense.networks import DeepSense

WAYS = ("window", "exact", "running")


def fitted(spec: DeepSense, length: int) -> Any:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, length, sum(spec.sensors))), np.arange(60) // 7 % 3
    return rds.RDeepSenseClassifier(
        network=spec, epochs=1, random_state=0, verbose=False, effort="quick", device="cpu"
    ).fit(X, y)


@pytest.fixture(scope="module")
def small() -> Any:
    return fitted(DeepSense((2, 3), interval=5, filters=6, hidden=9), 20)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("machine", [*CORTEX, *LINUX], ids=str)
def test_the_self_test_passes(machine: Machine, dtype: str, small: Any, tmp_path: Path) -> None:
    """Intervals one after the other give the bits of their window on every machine."""
    rds.export(small, tmp_path / "m", to="c99", dtype=dtype, max_nll_change=1.0)
    files = ("selftest.c", "model.c", "weights.c")
    machine.build(tmp_path / "m", *files, *machine.link, "-o", "selftest")
    assert machine.run(tmp_path / "m", "./selftest") == "self-test passed\n"


@pytest.fixture(scope="module")
def learning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """C that learns on, and tells rows that are unsure or unlike others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20, 5)), rng.normal(size=60)
    model = rds.RDeepSenseRegressor(
        network=DeepSense((2, 3), interval=5, filters=6, hidden=9),
        likelihood="student",
        epochs=1,
        random_state=0,
        verbose=False,
        effort="quick",
        device="cpu",
    ).fit(X, y)
    folder = tmp_path_factory.mktemp("learning") / "m"
    rds.export(model, folder, to="c99", rows=(X, y), live=True, novelty=True, reject=0.9)
    return folder


@pytest.mark.parametrize("machine", [*CORTEX, *LINUX], ids=str)
def test_flags_and_labels_pass_it_too(machine: Machine, learning: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(learning, folder)
    files = ("selftest.c", "model.c", "weights.c")
    machine.build(folder, *files, *machine.link, "-o", "selftest")
    assert machine.run(folder, "./selftest") == "self-test passed\n"


def test_streams_are_cheap_on_a_microcontroller(
    tmp_path: Path, plugin: Path, record_property: Callable[[str, Any], None]
) -> None:
    """The default network on 4.8 s of two sensors at 50 Hz, in int8: a third, and a fifteenth."""
    folder = tmp_path / "m"
    report = rds.export(fitted(DeepSense(), 240), folder, to="c99", dtype="int8", max_nll_change=1)
    (folder / "intervals.c").write_text((HERE / "intervals.c").read_text())
    M4.build(folder, "-c", "model.c", "weights.c")
    sections = sizes(M4, folder, "model.o")
    own = len(sections)
    sections += sizes(M4, folder, "weights.o")
    found = {}
    for way, name in enumerate(WAYS):
        once, twice = (_executed(folder, plugin, way, times) for times in (2, 4))
        found[name] = (twice - once) // 2
        measured = {
            "machine": M4.name,
            "flags": " ".join(M4.flags),
            "model": f"DeepSense {name}",
            "dtype": "int8",
            "flash": sum(size for _, size in sections),
            "code": sum(size for n, size in sections[:own] if n.startswith(".text")),
            "ram": report.bytes.ram_scratch + report.stream.state_bytes[name],
            "stack": 0,
            "instructions": found[name],
        }
        record_property("measured", measured)
    assert found["exact"] < found["window"] / 3
    assert found["running"] < found["window"] / 15


def _executed(folder: Path, plugin: Path, way: int, times: int) -> int:
    program = ("intervals.c", "model.o", "weights.o", *M4.link, "-o", "intervals")
    M4.build(folder, f"-DTIMES={times}", f"-DWAY={way}", *program)
    M4.run(folder, "./intervals", "-plugin", str(plugin), "-d", "plugin", "-D", "count.log")
    return int((folder / "count.log").read_text().removeprefix("instructions "))
