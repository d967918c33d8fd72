"""The package as a whole: what importing costs, what names it promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rdeepsense
from rdeepsense.errors import MissingExtraError, RDeepSenseError, require

HEAVY = ("torch", "sklearn", "scipy", "numpy", "polars", "matplotlib", "rich")


def test_import_is_light() -> None:
    program = f"import rdeepsense, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_promised_name_is_there() -> None:
    for name in rdeepsense.__all__:
        assert getattr(rdeepsense, name) is not None
    assert dir(rdeepsense) == sorted(rdeepsense.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        rdeepsense.nonsense  # noqa: B018


def test_own_errors_have_one_base_and_the_one_that_callers_expect() -> None:
    for name in ("InputError", "ConversionError", "ModelFileError", "CheckpointError"):
        error = getattr(rdeepsense, name)
        assert issubclass(error, RDeepSenseError)
        assert issubclass(error, ValueError)


def test_a_missing_library_names_its_extra() -> None:
    assert require("json", "cli").dumps([1]) == "[1]"
    with pytest.raises(MissingExtraError, match=r"no_such_thing .*pip install 'rdeepsense\[gp\]'"):
        require("no_such_thing", "gp")
