"""One library for every aarch64: the level that is chosen where it is loaded, and its bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.c_models import STRICT
from deploy.targets.machines import HERE, run
from deploy.targets.shapes import Shape

from rdeepsense.deploy.c.build import VARIABLE, level_of, library_of
from rdeepsense.deploy.c.emit import Source

CROSS = "aarch64-linux-gnu-gcc"
# A processor of each kind, and the best level of bytes on it.
BEST = {"cortex-a53": "neon", "neoverse-n1": "dotprod", "max": "i8mm"}
HELD = {"int8": ["neon", "dotprod", "i8mm"], "float16": ["neon"], "float32": ["neon"]}
SHAPES = [Shape((16, 64, 64, 2)), Shape((5, 67, 130, 6)), Shape((13, 9, 3), head="categorical")]


def built(shape: Shape, dtype: str, folder: Path) -> tuple[str, str]:
    """Write a model; returns what plain C99 says on this machine, and the library for aarch64."""
    source = shape.write(folder, dtype)
    files = ["-DTIMES=1", "rows.c", "model.c", "weights.c", "-o", "rows"]
    run(["gcc", *STRICT, "-O2", "-U__SSE2__", *files], folder)
    run([CROSS, *STRICT, "-I.", str(HERE / "loaded.c"), "-o", "loaded"], folder)
    many = Source(source.folded, source.network, many=True)
    return run(["./rows"], folder), str(library_of(many, CROSS, "aarch64"))


def loaded(folder: Path, cpu: str, *words: str) -> str:
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", cpu]
    return run([*emulator, "./loaded", *words], folder)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", HELD)
def test_each_processor_gets_its_best_level_and_the_same_bits(
    dtype: str, shape: Shape, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    plain, library = built(shape, dtype, folder)
    said = set()
    for cpu, best in BEST.items():
        found, *held = loaded(folder, cpu, library).split()
        assert held == HELD[dtype]
        level = level_of(int(found), set(held))
        assert level == (best if dtype == "int8" else "neon")
        said |= {loaded(folder, cpu, library, one) for one in held[: held.index(level) + 1]}
    assert len(said) == 1
    if dtype == "int8":
        assert said == {plain}
    assert len(said.pop().splitlines()) == len(plain.splitlines())


@pytest.mark.parametrize(("cpu", "level"), [("cortex-a53", "dotprod"), ("neoverse-n1", "i8mm")])
def test_a_level_has_the_instructions_of_its_name(cpu: str, level: str, tmp_path: Path) -> None:
    """A processor without them stops at the first one."""
    _, library = built(SHAPES[0], "int8", tmp_path / "model")
    with pytest.raises(AssertionError, match="status -4"):
        loaded(tmp_path / "model", cpu, library, level)
