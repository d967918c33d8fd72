"""Generated C: right, strict, without library, and impossible to inject into."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.folded_models import finished, with_facts
from deploy.random_models import Drawn, draw
from deploy.targets.shapes import Shape

from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.inputs import identifier, number, remark
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import MeanStd
from rdeepsense.deploy.quantise import DTYPES, Int8Network, prepare, to_bytes, together
from rdeepsense.errors import InputError

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))  # 200 models, up to 700 wide, 300 in- and outputs
MODELS = range(200) if LONG else range(20)
BOUND = {"float32": 1e-5, "float16": 2e-3}
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def source_of(drawn: Drawn, dtype: str, **more: Any) -> Source:
    folded = fold(drawn.estimator)
    return Source(folded, prepare(folded, dtype, drawn.X.astype(np.float32)), **more)


@pytest.mark.everyday(3, "compilers")
@pytest.mark.parametrize("seed", MODELS)
def test_random_models_agree_with_torch(seed: int, tmp_path: Path) -> None:
    drawn = draw(seed, *((700, 300) if LONG else (200, 16)))
    X = drawn.X[:16].astype(np.float32)
    # Both compilers, no and full optimisation, take turns; the long run does all.
    cc = COMPILERS[seed % len(COMPILERS)]
    every = [(c, o) for c in COMPILERS for o in ("-O0", "-O3")]
    for dtype in DTYPES if LONG else ("float32", ("float16", "int8")[seed % 2]):
        source = source_of(drawn, dtype)
        folder = write(source, tmp_path / dtype, X)
        for compiler, level in every if LONG else [(cc, "-O0"), (cc, "-O3")]:
            status, found = predict(library(folder, compiler, level), source, X)
            assert set(status) == {0}
            check(source, drawn, X, found, f"{drawn.name} {dtype} {compiler} {level}")


def check(source: Source, drawn: Drawn, X: Any, found: Any, what: str) -> None:
    """Against torch in float64; int8 against its own arithmetic, which is the same to the bit."""
    if source.network.dtype == "int8":
        wanted = finished(source.folded, source.network.raw(X))
    elif source.folded.facts.is_classifier:
        wanted = drawn.estimator.predict_proba(X)
    else:
        pair = drawn.estimator.predict(X, return_std=True)
        wanted = np.stack([part.reshape(len(X), -1) for part in pair])
    bound = BOUND.get(source.network.dtype, 1e-5)
    if source.folded.facts.is_classifier:
        assert np.abs(found - wanted).max() < bound, what
    else:
        assert np.abs((found[0] - wanted[0]) / wanted[1]).max() < bound, what
        assert np.abs(found[1] / wanted[1] - 1).max() < bound, what


def silent_fours(network: Int8Network, X: Any) -> float:
    """The share of fours of the first hidden layer in which no unit fires."""
    q, _ = to_bytes(network.layers[0], network.inputs(X), np.ones((len(X), 1), np.float32))
    return float(np.mean(np.all(q.reshape(len(q), -1, 4) == 0, 2)))


def test_int8_units_that_fire_together_are_skipped_exactly(tmp_path: Path) -> None:
    """Another order of hidden units, and C that skips zeros, give every bit as before."""
    rng = np.random.default_rng(0)
    made = Shape((3, 64, 72, 6)).write(tmp_path / "together", "int8")
    network, folded = made.network, made.folded
    assert isinstance(network, Int8Network)
    X = (folded.layers.centre + rng.normal(size=(200, 3))).astype(np.float32)
    order = rng.permutation(64)
    first, second, *rest = network.layers
    first = dataclasses.replace(
        first, weight=first.weight[order], bias=first.bias[order], factor=first.factor[order]
    )
    second = dataclasses.replace(second, weight=second.weight[:, order])
    shuffled = dataclasses.replace(network, layers=(first, second, *rest))
    again = together(shuffled, X)
    assert np.array_equal(again.raw(X), network.raw(X))
    assert np.array_equal(shuffled.raw(X), network.raw(X))
    assert silent_fours(again, X) > silent_fours(shuffled, X) + 0.1
    write(Source(folded, shuffled), tmp_path / "shuffled", X)
    found = [
        predict(library(tmp_path / name, COMPILERS[0], *flags), made, X)[1]
        for name in ("together", "shuffled")
        for flags in (["-O2"], ["-O2", "-U__SSE2__"], ["-O3", "-march=native", "-ffp-contract=off"])
    ]
    for one in found[1:]:
        assert np.array_equal(one, found[0])


@pytest.mark.compilers
@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("widths", [(1, 1, 2), (1, 3, 1, 2), (3, 5, 2), (5, 7, 9, 2)], ids=str)
def test_tiny_int8_models_compile_without_a_warning(
    widths: tuple[int, ...], tmp_path: Path
) -> None:
    Shape(widths).write(tmp_path / "m", "int8")
    for compiler in COMPILERS:
        for flags in (["-O1"], ["-O3"], ["-O3", "-march=native"]):
            run_cc(tmp_path / "m", compiler, *STRICT, *flags, "-c", "model.c")


STRANGE = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const float strange[] = {0.0f, -0.0f, 1e-40f, -1e-45f, 1e30f, -1e30f, 3.4e38f, -3.4e38f};
int main(void)
{
    float *x = malloc(sizeof(float) * MODEL_INPUTS);
    float *a = malloc(sizeof(float) * MODEL_OUTPUTS), *b = malloc(sizeof(float) * MODEL_OUTPUTS);
    void *scratch = malloc(MODEL_SCRATCH_BYTES);
    unsigned s, i, round;
    int status;
    for (round = 0; round < 40; ++round) {
        for (i = 0; i < MODEL_INPUTS; ++i) {
            s = (unsigned)rand() % 10;
            x[i] = s == 8 ? 1.0f / (a[0] = 0.0f) : s == 9 ? -1.0f / (a[0] = 0.0f) : strange[s];
        }
        if (round % 8 == 7) {
            x[(unsigned)rand() % MODEL_INPUTS] = -(a[0] = 0.0f) / a[0];
        }
#ifdef CLASSES
        status = model_predict(x, a, scratch);
        memcpy(b, a, sizeof(float) * MODEL_OUTPUTS);
#else
        status = model_predict(x, a, b, scratch);
#endif
        for (i = 0; i < MODEL_OUTPUTS; ++i) {
            if (status == MODEL_MISSING ? a[i] == a[i] || b[i] == b[i]
                                    : !(a[i] - a[i] == 0 && b[i] >= 0 && b[i] - b[i] == 0)) {
                printf("status %d gives %g %g\\n", status, a[i], b[i]);
                return 1;
            }
        }
        if ((status == MODEL_MISSING) != (round % 8 == 7)) {
            return 2;
        }
    }
    free(x);
    free(a);
    free(b);
    free(scratch);
    return 0;
}
"""


@pytest.mark.compilers
@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1, 2, 11])
def test_sanitisers_find_nothing(seed: int, dtype: str, tmp_path: Path) -> None:
    drawn = draw(seed, widest=70, most=9)
    source = source_of(drawn, dtype)
    folder = write(source, tmp_path / "m", drawn.X)
    (folder / "strange.c").write_text(STRANGE)
    kind = ["-DCLASSES"] if source.folded.facts.is_classifier else []
    flags = ["-std=c99", *SANITISED, "-fno-sanitize=float-divide-by-zero", *kind]
    native = [["-march=native"]] if seed else [["-march=native"], []]
    for more in native:
        run_cc(folder, "gcc", *flags, *more, "strange.c", "model.c", "weights.c", "-o", "strange")
        run_cc(folder, folder / "strange")
    run_cc(folder, "gcc", *STRICT, *SANITISED, "selftest.c", "model.c", "weights.c", "-o", "test")
    run_cc(folder, folder / "test")


@pytest.mark.parametrize("dtype", DTYPES)
def test_missing_inputs_count_as_their_mean(dtype: str, tmp_path: Path) -> None:
    drawn = draw(0, widest=12, most=6)
    plain = fold(drawn.estimator)
    guard = replace(plain.facts.guard, missing=np.ones(plain.facts.inputs))
    folded = with_facts(plain, missing="mean", guard=guard)
    source = Source(folded, prepare(folded, dtype, drawn.X))
    built = library(write(source, tmp_path / "m", drawn.X), COMPILERS[0], "-O1")
    rows = drawn.X[:4].astype(np.float32)
    mean = np.where(np.arange(4)[:, None] % 2, folded.layers.centre.astype(np.float32), rows)
    gaps = np.where(np.arange(4)[:, None] % 2, np.float32(np.nan), rows)
    assert predict(built, source, gaps)[0] == [0] * 4
    found, wanted = (predict(built, source, x)[1] for x in (gaps, mean))
    assert np.array_equal(found, wanted)
    assert selftest(tmp_path / "m").returncode == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_that_never_were_missing_are_told(dtype: str, tmp_path: Path) -> None:
    drawn = draw(0, widest=12, most=6)
    folded = with_facts(fold(drawn.estimator), missing="mean")
    source = Source(folded, prepare(folded, dtype, drawn.X))
    built = library(write(source, tmp_path / "m", drawn.X), COMPILERS[0], "-O1")
    rows = drawn.X[:4].astype(np.float32)
    gaps = np.where(np.arange(4)[:, None] % 2, np.float32(np.nan), rows)
    status, found = predict(built, source, gaps)
    assert status == [0, 1, 0, 1]
    wanted = folded.finish(source.network.raw(gaps), gaps)
    assert isinstance(wanted, MeanStd)
    np.testing.assert_allclose(found[1], wanted.std, rtol=1e-5)
    assert (found[1][1::2] >= folded.facts.guard.fallback.astype(np.float32)).all()
    assert selftest(tmp_path / "m").returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> tuple[Source, Path, Drawn]:
    drawn = draw(0, widest=12, most=4)
    source = source_of(drawn, "float32")
    return source, write(source, tmp_path / "small", drawn.X), drawn


def selftest(folder: Path) -> subprocess.CompletedProcess[str]:
    run_cc(folder, COMPILERS[0], *STRICT, "selftest.c", "model.c", "weights.c", "-o", "selftest")
    return subprocess.run([folder / "selftest"], capture_output=True, text=True)


def test_one_changed_weight_fails_the_self_test(small: tuple[Source, Path, Drawn]) -> None:
    _, folder, _ = small
    done = selftest(folder)
    assert (done.returncode, done.stdout) == (0, "self-test passed\n")
    text = (folder / "weights.c").read_text()
    numbers = [m for m in re.finditer(r"-?\d\.\d{7,}(?=f)", text) if "e" not in m[0]]
    for at in np.random.default_rng(0).choice(len(numbers), 4, replace=False):
        found = numbers[at]
        value = np.float32(found[0])
        other = number(float(np.nextafter(value, np.float32(9e9))))[:-1]
        (folder / "weights.c").write_text(text[: found.start()] + other + text[found.end() :])
        done = selftest(folder)
        assert done.returncode == 1
        assert "FAILED: the tables hold the exported numbers" in done.stdout


def test_a_changed_line_of_code_fails_the_self_test(small: tuple[Source, Path, Drawn]) -> None:
    _, folder, _ = small
    code = (folder / "model.c").read_text()
    for line, other in (("h > 0.0f", "h < 0.0f"), ("p * u + 2.0f", "p * u + 1.9f")):
        assert line in code
        (folder / "model.c").write_text(code.replace(line, other))
        assert selftest(folder).returncode == 1


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_calls_nothing_and_writes_nothing_global(dtype: str, tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        source = source_of(draw(seed, widest=12, most=4), dtype)
        folder = write(source, tmp_path / str(seed))
        run_cc(folder, COMPILERS[0], *STRICT, "-O2", "-fno-pie", "-c", "model.c", "weights.c")
        tables = {t.name for t in source.tables}
        for file in ("model.o", "weights.o"):
            listed = subprocess.run(["nm", folder / file], capture_output=True, text=True).stdout
            for line in listed.splitlines():
                kind, name = line.split()[-2:]
                # memset and memcpy are what compilers make of loops, and every C has them.
                assert kind in "TtRr" or name in tables | {"memset", "memcpy"}, line


def test_two_models_link_together(tmp_path: Path) -> None:
    drawn = draw(0, widest=12, most=4)
    for name in ("gait", "pulse"):
        write(source_of(drawn, "float32", name=name), tmp_path / name)
    (tmp_path / "main.c").write_text(
        '#include "gait/model.h"\n#include "pulse/model.h"\n'
        "int main(void) { return gait_predict == pulse_predict || GAIT_INPUTS != PULSE_INPUTS; }\n"
    )
    files = [f"{name}/{part}.c" for name in ("gait", "pulse") for part in ("model", "weights")]
    run_cc(tmp_path, COMPILERS[0], *STRICT, "main.c", *files, "-o", "both")
    run_cc(tmp_path, tmp_path / "both")


EVIL = [
    "*/ int evil(void); /*", "a\\", "??/", "x\n#error evil", '"); system("true', "@NAME@", "`<b>|",
    "// evil", "%s%n", "ünï\u2028code",
]  # fmt: skip


def test_no_text_becomes_code(tmp_path: Path) -> None:
    drawn = draw(2, widest=12, most=4)
    plain = fold(drawn.estimator)
    names = [EVIL[k % len(EVIL)] for k in range(max(plain.facts.inputs, plain.facts.outputs))]
    folded = with_facts(
        plain,
        features=tuple(names[: plain.facts.inputs]),
        classes=np.array(names[: plain.facts.outputs]),
        version="1*/ int evil;",
        source="*/ int evil;\n" * 5,
    )
    name = "a b; int evil"
    source = Source(folded, prepare(folded, "float32", drawn.X), name=name)
    folder = write(source, tmp_path / "evil")
    assert source.name == "a_b_int_evil"
    for compiler in COMPILERS:
        flags = ["-Wcomment", "-Wtrigraphs", "-E", "-P"]
        done = subprocess.run(
            [compiler, *STRICT, *flags, "model.h"], cwd=folder, capture_output=True, text=True
        )
        assert done.stderr == ""
        code = re.sub(r"\s+", " ", done.stdout.replace("a_b_int_evil", "m"))
        assert "evil" not in code
        assert code.strip() == (
            "int m_predict(const float *x, float *probs, void *scratch); "
            "unsigned m_flagged_input(const float *x);"
        )
        run_cc(folder, compiler, *STRICT, "selftest.c", "model.c", "weights.c", "-o", "selftest")


def test_names() -> None:
    assert identifier("Gait-2") == "gait_2"
    assert identifier("2nd") == "m2nd"
    assert identifier("__x__") == "x"
    for bad in ("", "***", "é"):
        with pytest.raises(InputError, match="no letter or digit"):
            identifier(bad)
    with pytest.raises(InputError, match="too long; at most 16"):
        identifier("a" * 17)
    assert remark("temp [C] */\n") == "temp [C] _/_"


def test_numbers_read_back_as_they_were() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values = np.concatenate(
        [values[np.isfinite(values)], np.float32([0, -0.0, 1, -3, 1e38, 1e-45])]
    )
    for value in values:
        text = number(float(value))
        assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?f", text)
        assert np.float32(text[:-1]) == value


def test_units_of_float32_that_cannot_hold_them_are_refused() -> None:
    folded = fold(draw(0, widest=5, most=3).estimator)
    layers = dataclasses.replace(folded.layers, scale=folded.layers.scale * 1e-60)
    tiny = dataclasses.replace(folded, layers=layers)
    with pytest.raises(InputError, match="input 0 has mean .* which float32 cannot hold"):
        prepare(tiny, "float32", np.zeros((0, folded.facts.inputs)))


@pytest.mark.compilers
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_valgrind_finds_nothing(small: tuple[Source, Path, Drawn]) -> None:
    _, folder, _ = small
    run_cc(folder, COMPILERS[0], "-g", "selftest.c", "model.c", "weights.c", "-o", "selftest")
    run_cc(folder, "valgrind", "-q", "--error-exitcode=9", folder / "selftest")
