"""The C runtime read as C: by compilers, by clang-format, and by tests of its own."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from deploy.c.runtime.configured import EXAMPLE, FILES, example, sections
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.random_models import draw, give_laplace

from rdeepsense.deploy.c.emit import RUNTIME, Source
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.profile.forms import C as PROFILE
from rdeepsense.deploy.quantise import prepare

HERE = Path(__file__).parent
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
X86 = platform.machine() in ("x86_64", "AMD64")
needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def test_the_example_is_what_the_generator_writes() -> None:
    """To write it anew: `for n, t in sections(*example()).items(): (EXAMPLE / n).write_text(t)`."""
    for name, text in sections(*example()).items():
        assert (EXAMPLE / name).read_text() == text, name


@pytest.mark.everyday(1, "compilers")
@needs_cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_it_compiles_and_passes_its_self_test_as_it_lies(cc: str, tmp_path: Path) -> None:
    run_cc(tmp_path, cc, *STRICT, f"-I{EXAMPLE}", *FILES, "-o", "selftest")
    run_cc(tmp_path, tmp_path / "selftest")
    flags = [f"-I{EXAMPLE}", f"-I{RUNTIME}", "-D_POSIX_C_SOURCE=199309L", "-O2"]
    for path in (RUNTIME / "levels.c", PROFILE / "times.c"):
        run_cc(tmp_path, cc, *STRICT, *flags, "-c", path)


@pytest.mark.everyday(2, "compilers")
@needs_cc
@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("classes", [0, 1])
def test_the_mixture_compiles_as_it_lies(cc: str, classes: int, tmp_path: Path) -> None:
    """mixture.h is the model.h of a mixture; member0 is the example."""
    results = "float *probs" if classes else "float *mean, float *std"
    (tmp_path / "members.h").write_text(
        f"int member0_predict(const float *x, {results}, void *scratch);\n"
        "#define MEMBER0_INPUTS 3\n#define MEMBER0_OUTPUTS 2\n#define MEMBER0_OK 0\n"
        "#define MEMBER0_SCRATCH_BYTES 64\n"
        "#define PASSES 2\n#define MEMBERS member0_predict, member0_predict\n"
    )
    (tmp_path / "switches.h").write_text(f"#define CLASSES {classes}\n#define LAPLACE 0\n")
    (tmp_path / "model.h").write_text('#include "mixture.h"\n')
    (tmp_path / "row.h").write_text("static const float row[3] = {0.0f};\n")
    flags = [f"-I{PROFILE}", "-I.", f"-I{RUNTIME}", "-Wundef"]
    for name in ("mixture.c", "once.c"):
        # A copy, as a quoted include looks first beside the file that has it.
        shutil.copy(PROFILE / name, tmp_path)
        run_cc(tmp_path, cc, *STRICT, *flags, "-c", name)


@pytest.mark.everyday(1, "compilers")
@needs_cc
@pytest.mark.parametrize("seed", range(8))
def test_every_switch_gives_what_the_assembled_file_gives(seed: int, tmp_path: Path) -> None:
    """With the switches as macros or worked out at export: the same bits."""
    laplace, periodic = 3 <= seed < 7, seed >= 6
    drawn = draw(seed % 3, widest=30, most=6, periodic=periodic)
    folded = fold(
        (give_laplace(drawn) if laplace else drawn).estimator, "laplace" * laplace or None
    )
    X = drawn.X.astype(np.float32)
    for dtype in ("float32", "float16") if laplace else ("float32", "float16", "int8"):
        source = Source(folded, prepare(folded, dtype, X))
        raw, cc = tmp_path / f"{dtype} as it lies", COMPILERS[seed % len(COMPILERS)]
        raw.mkdir()
        for name, text in sections(source, X).items():
            (raw / name).write_text(text)
        # -Wundef: a switch that nothing defines would be off for ever.
        flags = [*STRICT, "-Wundef", "-O2", "-I."]
        run_cc(raw, cc, *flags, *FILES, "-o", "selftest")
        run_cc(raw, raw / "selftest")
        run_cc(raw, cc, *flags, "-fPIC", "-shared", *FILES[:2], "-o", "model.so")
        found = predict(ctypes.CDLL(str(raw / "model.so")), source, X)
        wanted = predict(library(write(source, tmp_path / dtype, X), cc, "-O2"), source, X)
        assert found[0] == wanted[0]
        assert np.array_equal(found[1], wanted[1])


PLAIN = [["-O0"], ["-O3", "-march=native", "-ffp-contract=off"], ["-O2", "-U__SSE2__"]]
# Of what this processor has, less than the most.
FEWER = [["-O3", "-march=native", more] for more in ("-DONLY_256_BITS", "-mno-avx512f")]
NAMES = ["numbers", "embedding", "encoding", "float", "int8", "int8_read", "laplace", "live"]
BUILDS = [(cc, flags) for cc in COMPILERS for flags in PLAIN] + [("gcc", SANITISED)]
LEVELS = [(cc, flags) for cc in COMPILERS for flags in FEWER] + [("gcc", [*SANITISED, "-mavx2"])]


@pytest.mark.everyday(8, "compilers")
@needs_cc
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("cc", "flags"), BUILDS, ids=str)
def test_the_tests_in_c_pass(name: str, cc: str, flags: list[str], tmp_path: Path) -> None:
    files = [HERE / f"{name}_test.c", f"-I{RUNTIME}", "-lm", "-o", name]
    run_cc(tmp_path, cc, *STRICT, *stated(), *flags, *files)
    run_cc(tmp_path, tmp_path / name)


@pytest.mark.everyday(1, "compilers")
@pytest.mark.skipif(not X86, reason="the processor has no levels")
@pytest.mark.parametrize(("cc", "flags"), LEVELS, ids=str)
def test_every_level_of_x86_has_the_same_sums(cc: str, flags: list[str], tmp_path: Path) -> None:
    for name in ("int8", "float"):
        files = [HERE / f"{name}_test.c", f"-I{RUNTIME}", "-lm", "-o", name]
        run_cc(tmp_path, cc, *STRICT, *flags, "-ffp-contract=off", *files)
        run_cc(tmp_path, tmp_path / name)


def stated() -> list[str]:
    """The error bounds that the comments of the functions promise, as macros."""
    text = "".join((RUNTIME / name).read_text() for name in ("numbers.h", "embedding.h"))
    found = re.findall(r"at\s+most\s+(\de-7)[^}]*?static (?:float|void) (\w+)\(", text)
    known = {"exp_of_minus", "exp_of", "softplus", "root", "sine_cosine"}
    known |= {"log_of", "log_of_one_plus", "sigmoid_of", "tanh_of"}
    assert {name for _, name in found} == known
    return [f"-DBOUND_{name}={bound}" for bound, name in found]


@pytest.mark.skipif(shutil.which("clang-format") is None, reason="needs clang-format")
def test_it_is_formatted() -> None:
    paths = [*RUNTIME.iterdir(), *PROFILE.iterdir(), *HERE.glob("*.[ch]")]
    run_cc(HERE, "clang-format", "--dry-run", "-Werror", *paths)
