"""Reactions to faults of hand-made models that notice everything, nothing, or the wrong thing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense import Categorical, Gaussian
from rdeepsense.paper.fits import reactions
from rdeepsense.paper.study import Parts
from rdeepsense.paper.tasks.faults import FAULTS
from rdeepsense.paper.tasks.task import Split, Task


def parts_of(classes: tuple[str, ...] = ()) -> Parts:
    """Readings from 1 to 2 on four channels, of which the target is the sum."""
    X = np.random.default_rng(0).uniform(1, 2, (1_000, 4)).astype(np.float32)
    y = (X.sum(axis=1) > 6).astype(int) if classes else X.sum(axis=1)
    task = Task(
        name="GasSen", X=X, y=y, features=tuple("abcd"), targets=("sum",), unit="ppm",
        source="made up", simulated=True, classes=classes,
    )  # fmt: skip
    rows = np.arange(1_000)
    return Parts(task, Split(rows[:400], rows[400:800], rows[800:], "rows"), "rows")


def test_a_model_that_notices_zeros() -> None:
    def predict(X: Any) -> Gaussian:
        seen = (X == 0).any(axis=1)
        # A little that differs by row, so that 5 % of healthy rows are above a threshold.
        return Gaussian(X.sum(axis=1), np.where(seen, 5.0, 0.1 + 0.01 * X[:, 0]))

    found = reactions(parts_of(), predict)
    assert list(found) == ["healthy", *FAULTS]
    assert set(found["healthy"]) == {"error", "coverage_90", "flagged"}
    assert found["healthy"]["flagged"] == pytest.approx(0.05, abs=0.04)
    assert (found["healthy"]["error"], found["healthy"]["coverage_90"]) == (0, 1)
    dropped = found["dropped"]
    assert (dropped["flagged"], dropped["auroc"], dropped["coverage_90"]) == (1, 1, 1)
    assert dropped["error"] == pytest.approx(1.5, abs=0.1)  # the lost reading
    assert found["jitter"]["coverage_90"] < 0.7  # it goes on being sure
    # The sum does not change, and which channel is which does not matter to it.
    assert found["swapped"]["error"] == pytest.approx(0, abs=1e-6)


def test_an_epistemic_score_is_judged_beside() -> None:
    class Model:
        def mutual_information(self, X: Any, method: str) -> Any:
            assert method == "laplace"
            return (X.max(axis=1) > 2.0).astype(float)

        def fit_novelty(self, X: Any, held_out: Any) -> Any:
            self.least = min(X.min(), held_out.min())
            return self

        def novelty(self, X: Any) -> Any:
            return np.where(X.min(axis=1) < self.least, 1.0, 0.5)

        def predict_dist(self, X: Any) -> Categorical:
            p = 1 / (1 + np.exp(-5 * (X.sum(axis=1) - 6)))
            return Categorical(np.column_stack([1 - p, p]))

    model = Model()
    found = reactions(parts_of(("low", "high")), model.predict_dist, model)
    assert set(found["stuck"]) == {
        "error", "flagged", "flagged_epistemic", "flagged_novelty",
        "auroc", "auroc_epistemic", "auroc_novelty"
    }  # fmt: skip
    assert found["healthy"]["error"] == 0
    assert found["dropped"]["error"] > 0.3
    assert found["dropped"]["flagged_epistemic"] == 0
    assert found["dropped"]["flagged_novelty"] == 1
    assert found["dropped"]["auroc_epistemic"] == 0.5  # all tied
