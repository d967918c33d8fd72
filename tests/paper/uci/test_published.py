"""Published figures are found by the data set's whole name, and are the NLL, not its opposite."""

from __future__ import annotations

import pytest

from rdeepsense.paper.uci import DEEP_ENSEMBLES, MC_DROPOUT, PUBLISHED


@pytest.mark.parametrize(
    ("name", "ensembles", "dropout"),
    [
        ("bostonHousing", 2.41, 2.46),
        ("concrete", 3.06, 3.04),
        ("energy", 1.38, 1.99),
        ("power-plant", 2.79, 2.80),
        ("wine-quality-red", 0.94, 0.93),
        ("yacht", 1.18, 1.55),
        ("kin8nm", -1.20, -0.95),
        ("wine-quality-white", None, None),
        ("energy-consumption", None, None),
    ],
)
def test_nll(name: str, ensembles: float | None, dropout: float | None) -> None:
    assert DEEP_ENSEMBLES.figure(name, "nll") == ensembles
    assert MC_DROPOUT.figure(name, "nll") == dropout


def test_every_set_has_both_figures_and_a_source() -> None:
    for published in PUBLISHED:
        assert list(published.rmse) == list(published.nll)
        assert "Table 1" in published.source
