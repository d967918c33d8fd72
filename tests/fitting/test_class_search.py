"""The choice of network, alpha and dropout for classes: by folds, and on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.data.splits import Part
from rdeepsense.fitting import search
from rdeepsense.fitting.records import TriedArchitecture
from rdeepsense.fitting.trainer import Judgement

AUTO: dict[str, Any] = {
    "hidden": "auto",
    "drop_prob": "auto",
    "alpha": "auto",
    "random_state": 0,
    "verbose": False,
    "device": "cpu",
}
Found = Sequence[tuple[TriedArchitecture, Judgement]]


def flowers(rows: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Three classes, one of them a tenth of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    high = X[:, 0] + 0.3 * rng.normal(size=rows) > 0
    label = np.where(high, "rose", "tulip").astype(object)
    label[np.argsort(X[:, 1] + 0.2 * rng.normal(size=rows))[: rows // 10]] = "lily"
    return X, label


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Found]:
    """What the architectures were chosen among."""
    seen: list[Found] = []
    choose = search.smallest_good

    def noted(found: Found) -> int:
        seen.append(list(found))
        return choose(found)

    monkeypatch.setattr(search, "smallest_good", noted)
    return seen


def one_error(found: Found) -> int:
    """The rule by hand: the fewest parameters, and not worse by more than its standard error."""
    losses = np.array([judgement.losses for _, judgement in found])
    excess = losses - losses[np.argmin(losses.mean(1))]
    error = excess.std(1) / np.sqrt(losses.shape[1])
    sizes = np.array([one.parameters for one, _ in found], dtype=float)
    return int(np.argmin(np.where(excess.mean(1) <= error, sizes, np.inf)))


def test_few_rows_are_folded_by_class(
    compared: list[Found], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[Part, NDArray[Any]]] = []
    folds = Part.folds

    def noted(self: Part, *arguments: Any) -> NDArray[Any]:
        drawn.append((self, folds(self, *arguments)))
        return drawn[-1][1]

    monkeypatch.setattr(Part, "folds", noted)
    X, y = flowers(300)
    fits = [rds.RDeepSenseClassifier(**AUTO, epochs=3).fit(X, y) for _ in range(2)]
    model = fits[0]
    for part, fold in drawn:
        for name in np.unique(y):
            counts = np.bincount(fold[y[part.index] == name], minlength=5)
            assert counts.max() - counts.min() <= 1
    assert model.selection_["how"] == "5-fold cross-validation"
    told = model.selection_["architectures"]
    assert len(told) == 4
    assert all(len(judgement.losses) == 300 for _, judgement in compared[0])
    assert told[one_error(compared[0])]["chosen"]
    # The winner is trained once more, on all rows, up to the step that was best for the folds.
    winner = model.selection_["trials"][model.selection_["chosen"]]
    assert (model.training_["rows"], model.training_["steps"]) == (300, winner["best_step"])
    assert model.validation_scores_["nll"] == pytest.approx(winner["nll"])
    assert fits[1].selection_ == model.selection_
    np.testing.assert_array_equal(fits[1].predict_proba(X), model.predict_proba(X))


def test_many_rows_are_judged_on_validation_rows(compared: list[Found]) -> None:
    X, y = flowers(2_600)
    options = {**AUTO, "epochs": 1, "keep_rows": 520}
    fits = [rds.RDeepSenseClassifier(**options).fit(X, y) for _ in range(2)]
    model = fits[0]
    assert model.selection_["how"] == "validation rows"
    assert model.selection_["architectures"][one_error(compared[0])]["chosen"]
    assert model.training_["validation_rows"] == 520
    _, labels = model.fitted_.kept_rows
    shares = np.bincount(labels) / 520
    np.testing.assert_allclose(shares, [np.mean(y == name) for name in np.unique(y)], atol=0.003)
    assert model.evaluate(*flowers(1_000, 1))["accuracy"] > 0.7
    assert fits[1].selection_ == model.selection_
    np.testing.assert_array_equal(fits[1].predict_proba(X), model.predict_proba(X))
