"""Packages in builds of Zephyr's and of ESP-IDF's kind, with stubs, and of plain CMake."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from deploy.package.conftest import NAMES
from deploy.package.sketches import COMPILERS, STUBS, WARNED, run

needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
SYMBOL = re.compile(r"^[0-9a-f]+ [A-Z] (\w+)$", re.MULTILINE)


def cmake(source: Path, folder: Path, *options: str) -> None:
    run(["cmake", "-S", source, "-B", folder, *options])
    run(["cmake", "--build", folder])


def two(packages: Path) -> str:
    return f"-DPACKAGES={packages / 'gait'};{packages / 'tank'}"


@pytest.mark.everyday(1, "compilers")
@needs_cmake
@pytest.mark.parametrize("kind", ["zephyr", "espressif", "host"])
def test_two_models_in_one_firmware(packages: Path, kind: str, tmp_path: Path) -> None:
    """Each tool takes both, and they link: no name of one is a name of the other."""
    switched = "-DSWITCHED_ON=RDEEPSENSE_GAIT;RDEEPSENSE_TANK"
    more = [switched] if kind == "zephyr" else []
    cmake(STUBS / kind, tmp_path, two(packages), *more)
    assert run([tmp_path / "app"]) == "gait 1, tank 1\n"


@needs_cmake
def test_zephyr_links_what_kconfig_switches_on(packages: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="tank"):
        cmake(STUBS / "zephyr", tmp_path, two(packages), "-DSWITCHED_ON=RDEEPSENSE_GAIT")


@needs_cmake
def test_a_package_on_its_own_tests_itself(packages: Path, tmp_path: Path) -> None:
    own, built = tmp_path / "gait", tmp_path / "build"
    shutil.copytree(packages / "gait", own)
    cmake(own, built, "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror -pedantic")
    assert "100% tests passed, 0 tests failed out of 2" in run(["ctest"], built)
    assert run([built / "gait_selftest"]) == "self-test passed\n"
    weights = own / "src/gait_weights.c"
    first, rest = weights.read_text().split("{", 1)
    weights.write_text(first + "{" + rest.replace(".", ".9", 1))
    run(["cmake", "--build", built])
    with pytest.raises(AssertionError, match="gait_selftest .Failed"):
        run(["ctest"], built)


@pytest.mark.everyday(1, "compilers")
@pytest.mark.skipif(not COMPILERS or shutil.which("nm") is None, reason="needs compilers and nm")
@pytest.mark.parametrize("name", NAMES)
def test_every_symbol_begins_with_the_name(packages: Path, name: str, tmp_path: Path) -> None:
    sources = [*(packages / name / "src").glob("*.c"), packages / name / "examples/replay/replay.c"]
    for source in sources:
        include = f"-I{packages / name / 'include'}"
        run(["gcc", *WARNED, "-DARDUINO", include, "-c", source], tmp_path)
    found = SYMBOL.findall(run(["nm", "-g", *tmp_path.glob("*.o")]))
    assert {f"{name}_predict", f"{name}_replay"} <= set(found)
    assert [symbol for symbol in found if not symbol.startswith(f"{name}_")] == []


def test_there_is_one_header(packages: Path) -> None:
    """That of include/ holds nothing of its own, so the two cannot differ."""
    text = (packages / "gait/include/gait.h").read_text()
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        '#include "../src/gait.h"'
    ]
