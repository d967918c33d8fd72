"""A preset so small that a whole study takes seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rdeepsense.paper.study import PRESETS, Preset


@pytest.fixture
def tiny() -> Preset:
    return replace(
        PRESETS["quick"],
        name="tiny",
        hidden=(4,),
        seeds=2,
        rows={"BPEst": 120, "NYCommute": 1_000, "GasSen": 1_200, "HHAR": 300},
        steps=4,
        gp_rows=40,
        gp_steps=2,
        rounds=1,
        kl_draws=2,
    )
