"""Runtime files made into one: switched-off code is gone, and all else stands as it was."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import pytest
from deploy.c.runtime.configured import example
from deploy.c_models import COMPILERS

from rdeepsense.deploy.c.emit import RUNTIME, Assembly, renamed, select_lines
from rdeepsense.deploy.profile.forms import C as PROFILE

TEXT = """a
#if ONE && !TWO
b
#if defined(__arm__)
c
#if TWO
d
#else
e
#endif
#else
f
#endif
#elif TWO || THREE
g
#else
h
#endif
#ifdef X
i
#elif ONE
j
#endif
"""


NAMES = ("ONE", "TWO", "THREE")


def left(*switches: bool) -> str:
    named = dict(zip(NAMES, switches, strict=True))
    return "".join(select_lines(TEXT.splitlines(keepends=True), named))


def texts(*switches: bool) -> str:
    return " ".join(left(*switches).split())


def test_switches_are_worked_out_and_other_conditions_stay() -> None:
    rest = "#ifdef X i #elif ONE j #endif"
    assert texts(True, False, False) == f"a b #if defined(__arm__) c e #else f #endif {rest}"
    assert texts(True, True, False) == f"a g {rest}"
    assert texts(False, False, True) == f"a g {rest}"
    assert texts(False, False, False) == f"a h {rest}"


@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
@pytest.mark.parametrize("switches", list(product([False, True], repeat=3)))
def test_the_preprocessor_agrees(switches: tuple[bool, ...], tmp_path: Path) -> None:
    """What is left, preprocessed, is what the preprocessor makes of the whole."""
    macros = [f"-D{n}={int(on)}" for n, on in zip(NAMES, switches, strict=True)]

    def preprocessed(text: str, *more: str) -> str:
        (tmp_path / "text.c").write_text(text)
        command = [COMPILERS[0], "-E", "-P", *macros, *more, "text.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return " ".join(done.stdout.split())

    for more in ([], ["-D__arm__"], ["-DX"]):
        assert preprocessed(left(*switches), *more) == preprocessed(TEXT, *more)


def test_a_chain_is_of_switches_or_not() -> None:
    lines = ["#if ONE\n", "#elif defined(__arm__)\n", "#endif\n"]
    with pytest.raises(ValueError, match="#elif defined.*: part of an #if on switches, but not"):
        list(select_lines(lines, {"ONE": False}))


def test_names_get_the_models_prefix() -> None:
    text = '#include "model.h"\nint model_predict(float x[MODEL_INPUTS]); remodel_x models MODEL_H'
    assert renamed(text, "gait") == (
        '#include "model.h"\nint gait_predict(float x[GAIT_INPUTS]); remodel_x models GAIT_H'
    )


def test_includes_are_put_in_and_sections_keep_their_words(tmp_path: Path) -> None:
    path = tmp_path / "all.c"
    path.write_text(
        '#include "model.h"\n#include <stdint.h>\n#include "config.h"\n#include "numbers.h"\n'
    )
    switches = dict.fromkeys(("USES_SOFTPLUS", "USES_EXP", "USES_SQRT", "USES_SQUARE"), False)
    text = Assembly("gait", {**switches, "CLASSES": False}, {"config.h": "model_x\n"}).text(path)
    assert text.startswith('#include "model.h"\n#include <stdint.h>\nmodel_x\n/* Functions of one')
    assert text.count("#include <stdint.h>") == 1
    assert "static uint32_t size_of(float x)" in text
    assert "softplus" not in text


def test_every_switch_of_the_runtime_is_known() -> None:
    """A line that begins with #if is about the processor, a guard, or switches that exist."""
    known = example()[0].switches
    for path in (*RUNTIME.iterdir(), *PROFILE.iterdir()):
        for line in path.read_text().splitlines():
            if line.startswith(("#if ", "#elif ")) and "__" not in line:
                words = line.split(maxsplit=1)[1].replace("!", "").replace("||", "&&").split("&&")
                assert {word.strip() for word in words} <= known.keys(), (path.name, line)
