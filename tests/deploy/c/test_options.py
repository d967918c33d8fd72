"""What a build for one processor is compiled with."""

from __future__ import annotations

import platform

import pytest

from rdeepsense.deploy.c.build import VARIABLE, options
from rdeepsense.errors import InputError


def test_one_level_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert options() == ("-march=native",)
    monkeypatch.setenv(VARIABLE, "avx2")
    assert options() == ("-march=x86-64-v3",)
    monkeypatch.setenv(VARIABLE, "avx3")
    with pytest.raises(InputError, match="RDEEPSENSE_LEVEL='avx3' is no level; accepted: sse2, a"):
        options()


def test_processors_without_levels_are_compiled_for_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setenv(VARIABLE, "avx2")
    assert options() == ("-march=native",)
