"""The replay of a package on emulated machines: it prints what Python expects of the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from deploy.package.sketches import build
from deploy.packages import model, package
from deploy.targets.machines import CORTEX, LINUX, M4, Machine, run

NAMES = ("tank", "level", "gait")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of each model, in int8 where windows go in."""
    folder = tmp_path_factory.mktemp("packages")
    for name in NAMES:
        package(name, folder / name, "int8" if name == "gait" else "float32")
    return folder


def check_lines(name: str, said: str, folder: Path) -> None:
    """Compare what was printed with what the fitted model says of the stored rows."""
    stored = (folder / "examples/replay/stored.h").read_text()
    body = stored.split("_INPUTS] = {", 1)[1].split("}", 1)[0].replace("f", "")
    fitted = model(name)
    shape = fitted.fitted_.inputs.shape
    X = np.array([float(v) for v in body.split(",")]).reshape(-1, *shape)
    *lines, last = said.splitlines()
    assert last == "replay passed"
    assert len(lines) == len(X)
    found = [line.split(": ")[1].split(",")[0] for line in lines]
    if name == "tank":
        pairs = [text.removeprefix("output 0 ").split(" +- ") for text in found]
        wanted = np.stack(fitted.predict(X, return_std=True), 1)
        np.testing.assert_allclose(np.array(pairs, float), wanted, atol=0.006)
        return
    probs = fitted.predict_proba(X)
    assert [text.split()[0] for text in found] == list(fitted.classes_[probs.argmax(1)])
    numbers = [float(text.split()[1]) for text in found]
    # Bytes move a probability, and the fitted model has none; the program's own bound is tighter.
    np.testing.assert_allclose(numbers, probs.max(1), atol=0.05 if name == "gait" else 0.0006)


@pytest.mark.parametrize("machine", [*CORTEX, *LINUX], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_replay_prints_what_is_expected(
    packages: Path, machine: Machine, name: str, tmp_path: Path
) -> None:
    folder = packages / name
    sources = [f"{folder}/src/{name}.c", f"{folder}/src/{name}_weights.c"]
    program = [f"{folder}/examples/replay/replay.c", *machine.link, "-o", "replay"]
    machine.build(tmp_path, f"-I{folder}/include", *sources, *program)
    check_lines(name, machine.run(tmp_path, "./replay"), folder)


@pytest.mark.parametrize("name", NAMES)
def test_the_sketch_runs_on_a_microcontroller(packages: Path, name: str, tmp_path: Path) -> None:
    """As Arduino builds it: C++ of the sketch, C of the library, here on a Cortex-M4."""
    compilers = (M4.compiler, M4.compiler.replace("gcc", "g++"))
    build(compilers, packages / name, "replay", tmp_path / "b", 1, M4.flags, M4.link)
    check_lines(name, M4.run(tmp_path / "b", "./program"), packages / name)


def test_a_motion_sensor_decides_on_a_microcontroller(packages: Path, tmp_path: Path) -> None:
    compilers = (M4.compiler, M4.compiler.replace("gcc", "g++"))
    build(compilers, packages / "gait", "motion", tmp_path / "b", 101, M4.flags, M4.link)
    here = build(("gcc", "g++"), packages / "gait", "motion", tmp_path / "here", 101)
    assert M4.run(tmp_path / "b", "./program") == run([str(here)], tmp_path)
