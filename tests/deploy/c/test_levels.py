"""Levels of processors and many rows: whatever runs, a row has the same bits."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.random_models import draw, give_laplace
from deploy.targets.machines import HERE, run
from deploy.targets.shapes import Shape
from numpy.typing import NDArray

from rdeepsense.calibration import Scale
from rdeepsense.deploy.c import build
from rdeepsense.deploy.c.build import (
    LEVELS,
    VARIABLE,
    X86,
    CompiledRunner,
    available,
    compiled_source,
    level_of,
    levels_of,
    renamed,
)
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Probabilities
from rdeepsense.deploy.quantise import prepare
from rdeepsense.errors import InputError

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
X86_HERE = platform.machine() in ("x86_64", "AMD64")
MANY_ROWS = (HERE / "many_rows.c").read_text()
# Frames that gcc 13 moves off the stack are not where it takes wide registers to be (PR 110027).
ON_STACK = ["env", "ASAN_OPTIONS=detect_stack_use_after_return=0"]
SANITISED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NATIVE = ("-O3", "-march=native", "-ffp-contract=off")
PATHS = [
    ("-O1",), ("-O1", "-mavx2"), (*NATIVE, "-DONLY_256_BITS"), (*NATIVE, "-mno-avx512f"), NATIVE,
]  # fmt: skip


@pytest.mark.everyday(2, "compilers")
@pytest.mark.skipif(not X86_HERE, reason="paths of x86")
@pytest.mark.parametrize("seed", range(200 if LONG else 20))
def test_random_models_have_the_same_bits_on_every_path(seed: int, tmp_path: Path) -> None:
    """Against plain C99; the paths take turns, the long run does all with all compilers."""
    drawn = draw(seed, *((700, 300) if LONG else (150, 12)))
    folded, X = fold(drawn.estimator), drawn.X[:16].astype(np.float32)
    source = Source(folded, prepare(folded, "int8", drawn.X.astype(np.float32)))
    folder = write(source, tmp_path / "m", X)
    wanted = predict(library(folder, COMPILERS[0], "-O1", "-U__SSE2__"), source, X)
    one = [(COMPILERS[seed % len(COMPILERS)], PATHS[seed % len(PATHS)])]
    for cc, flags in [(c, p) for c in COMPILERS for p in PATHS] if LONG else one:
        found = predict(library(folder, cc, *flags), source, X)
        assert found[0] == wanted[0]
        assert np.array_equal(found[1], wanted[1]), f"{drawn.name} {cc} {flags}"


def numbers(runner: CompiledRunner, X: NDArray[Any]) -> NDArray[np.float32]:
    """All that comes out of each row, side by side."""
    found = runner.run(X)
    assert found.status is not None
    parts = [found.probs] if isinstance(found, Probabilities) else [found.mean, found.std]
    parts += [] if found.epistemic is None else [found.epistemic]
    return np.concatenate([*parts, found.status[:, None]], 1).astype(np.float32)


def same(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("dtype", ["float32", "float16", "mixed", "int8", "laplace"])
def test_many_rows_and_levels(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, together, in threads: the same bits, at every level that runs here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    laplace = dtype == "laplace"
    drawn = draw(2 if dtype == "float16" else 0, widest=300 if dtype == "mixed" else 150, most=9)
    mixed = dtype == "mixed"
    if mixed:  # a std so small that half floats are too coarse for some layers
        estimator, dtype = drawn.estimator, "float16"
        estimator.fitted_ = replace(estimator.fitted_, calibration=Scale(0.01))
    drawn = give_laplace(drawn) if laplace else drawn
    folded = fold(drawn.estimator, "laplace" if laplace else None)
    X = np.tile(drawn.X.astype(np.float32), (2, 1))[:75]
    X[3, 0], X[40, 0] = np.nan, 1e30
    # As a sensor gives them, hardly any different from the one before: with the same zeros.
    X[44:] = X[44] + np.linspace(0, 1e-3, 31)[:, None] * drawn.X.std(0)
    network = prepare(folded, "float32" if laplace else dtype, drawn.X.astype(np.float32))
    assert not mixed or {layer.dtype for layer in network.layers} == {"float16", "float32"}
    X[9, 0] = X[17, 0] = network.centre[0]  # which is zero, and not listed
    made = compiled_source(Source(folded, network, many=True))
    assert made.library is not None
    plain = compiled_source(Source(folded, network, many=True))
    assert plain.library == made.library  # found again
    at: dict[str, NDArray[np.float32]] = {}
    for level in levels_of(network.dtype) or ("",):
        monkeypatch.setenv(VARIABLE, level)
        try:
            runner = CompiledRunner.of(made.library, folded.facts, laplace)
        except InputError:  # not on this processor
            continue
        at[level] = numbers(runner, X)
        for end in (1, 2, 33):
            assert same(numbers(runner, X[:end]), at[level][:end])
        for one in (48, 53, 58, 63):
            assert same(numbers(runner, X[one : one + 1]), at[level][one : one + 1])
        monkeypatch.setattr(build, "ROWS_OF_A_THREAD", 9)
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        assert same(numbers(runner, X), at[level])
        monkeypatch.undo()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if dtype == "int8":
        first, *others = at.values()
        assert all(same(found, first) for found in others)
    elif {"avx2", "avx512"} <= at.keys() and dtype != "laplace":
        assert same(at["avx2"], at["avx512"])


@pytest.mark.compilers
@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("cc", COMPILERS)
def test_many_rows_stay_within_their_tables(cc: str, dtype: str, tmp_path: Path) -> None:
    """Widths that fill no register, and the bits of rows alone; gcc's sanitisers find nothing."""
    paths = [((5, 70, 131, 4), "native"), ((9, 37, 130, 36), "x86-64-v3")]
    for widths, march in paths[dtype == "float16" :]:  # of which one path takes as long as both
        flags = [*STRICT, f"-march={march if X86_HERE else 'native'}", "-O1"]
        flags += SANITISED if cc == "gcc" else []
        folder = tmp_path / march
        source = Shape(widths, seed=len(march)).write(folder, dtype)
        wide = Source(source.folded, source.network, many=True)
        (folder / "many.c").write_text(wide.code())
        (folder / "many_weights.c").write_text(wide.weights())
        (folder / "many_rows.c").write_text(MANY_ROWS)
        run_cc(folder, cc, *flags, "-DTIMES=1", "rows.c", "model.c", "weights.c", "-o", "alone")
        run_cc(folder, cc, *flags, "many_rows.c", "many.c", "many_weights.c", "-o", "many")
        assert run([*ON_STACK, "./many"], folder) == run([*ON_STACK, "./alone"], folder), widths


def test_levels_are_chosen() -> None:
    held = {"sse2", "avx2", "avx512"}
    assert level_of(0b0001, held) == "sse2"
    assert level_of(0b0111, held) == "avx2"  # the library has nothing for AVX-VNNI
    assert level_of(0b1011, held) == "avx512"
    assert level_of(0b0111, set(X86)) == "avxvnni"
    assert level_of(0b0010000, {"neon", "dotprod", "i8mm"}) == "neon"
    assert level_of(0b0110000, {"neon", "dotprod", "i8mm"}) == "dotprod"
    assert level_of(0b1110000, {"neon", "dotprod", "i8mm"}) == "i8mm"
    assert level_of(0b1110000, {"neon"}) == "neon"


def test_a_machine_has_its_levels_and_floats_only_what_helps_them() -> None:
    assert [*levels_of("int8", "x86_64")] == ["sse2", "avx2", "avxvnni", "avx512"]
    assert [*levels_of("float32", "AMD64")] == ["sse2", "avx2", "avx512"]
    assert [*levels_of("int8", "aarch64")] == ["neon", "dotprod", "i8mm"]
    assert [*levels_of("float16", "aarch64")] == ["neon"]
    assert not levels_of("int8", "arm64")  # macOS
    assert levels_of("int8") == levels_of("int8", platform.machine())


def test_a_level_that_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "avx512")
    with pytest.raises(
        InputError, match="RDEEPSENSE_LEVEL='avx512' cannot run here; accepted: sse"
    ):
        level_of(0b0001, set(LEVELS))


def test_every_function_gets_a_name_of_its_own() -> None:
    header = "int model_predict(const float *x);\n#define MODEL_OK 0\nunsigned model_flagged(int);"
    assert renamed(header, "avx2") == [
        "-Dmodel_flagged=model_flagged_avx2",
        "-Dmodel_predict=model_predict_avx2",
        "-Dmodel_predict_many=model_predict_many_avx2",
    ]


def test_threads_are_as_many_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert available() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert available() >= 1
