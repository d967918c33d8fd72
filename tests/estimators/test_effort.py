"""What a fit chooses when nothing is said, and what a quick one takes instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.fitting import search
from rdeepsense.networks import Dense


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=120)


X, Y = table()
FEW: dict[str, Any] = {"epochs": 2, "random_state": 0, "device": "cpu", "verbose": False}
QUICK = {"hidden": (64, 64), "drop_prob": 0.05, "alpha": 0.5}


def test_nothing_said_is_everything_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FEW_ROWS", 100)
    monkeypatch.setattr(search, "ladder", lambda rows, shape, *_: (Dense((8,)), Dense((9,))))
    model = rds.RDeepSenseRegressor(**FEW).fit(X, Y)
    tried = model.selection_["trials"]
    assert {trial["likelihood"] for trial in tried} == {"student", "gaussian"}
    assert {trial["alpha"] for trial in tried} == {0.0, 0.5}
    assert len({trial["drop_prob"] for trial in tried}) > 1
    assert len(model.selection_["architectures"]) == 2


def test_of_few_rows_the_search_is_one_small_bank() -> None:
    model = rds.RDeepSenseRegressor(**{**FEW, "epochs": None}).fit(X, Y)
    assert [trial["drop_prob"] for trial in model.selection_["trials"]] == [0.01, 0.05, 0.2]
    assert [length["steps"] for length in model.selection_["lengths"]] == [834]  # a third
    (only,) = model.selection_["architectures"]
    assert (only["arguments"], only["chosen"]) == ({"hidden": [64, 64]}, True)
    classes = rds.RDeepSenseClassifier(**FEW).fit(X, Y > 0)
    assert len(classes.selection_["trials"]) == 3


@pytest.mark.parametrize("classes", [False, True])
def test_a_quick_fit_is_its_recipe_to_the_bit(classes: bool) -> None:
    kind = rds.RDeepSenseClassifier if classes else rds.RDeepSenseRegressor
    y = Y > 0 if classes else Y
    head = {} if classes else {"likelihood": "student"}
    quick = kind(effort="quick", **FEW).fit(X, y)
    by_hand = kind(**QUICK, **head, **FEW).fit(X, y)
    assert quick.selection_ is None
    np.testing.assert_array_equal(quick.predict(X), by_hand.predict(X))
    assert (quick.hidden, quick.alpha, quick.drop_prob) == ("auto", "auto", "auto")


def test_effort_decides_only_what_is_open() -> None:
    fixed = {"hidden": (8,), "drop_prob": 0.1, "alpha": 0.2, "likelihood": "gaussian"}
    quick = rds.RDeepSenseRegressor(effort="quick", **fixed, **FEW).fit(X, Y)
    full = rds.RDeepSenseRegressor(**fixed, **FEW).fit(X, Y)
    np.testing.assert_array_equal(quick.predict(X), full.predict(X))
    assert quick.candidate_.likelihood == "gaussian"
    paper = rds.RDeepSenseRegressor(effort="quick", alpha="paper", **FEW).fit(X, Y)
    assert paper.selection_["by"] == "deviation_area"  # which is no "auto"


def test_another_effort_is_refused() -> None:
    with pytest.raises(rds.InputError, match="effort = 'half' is unknown; accepted: full, quick"):
        rds.RDeepSenseRegressor(effort="half").fit(X, Y)


def test_the_effort_is_kept(tmp_path: Any) -> None:
    rds.RDeepSenseRegressor(effort="quick", **FEW).fit(X, Y).save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert (loaded.effort, loaded.hidden, loaded.network) == ("quick", "auto", None)


@pytest.mark.everyday(1, "slow")
@pytest.mark.parametrize(
    "options", [{"effort": "quick"}, {"hidden": (32, 32), "epochs": 60}], ids=["quick", "full"]
)
def test_one_row_far_out_does_not_spoil_the_fit(options: dict[str, Any]) -> None:
    """Inputs with heavy tails, and one training row 35 standard deviations out."""
    rng = np.random.default_rng(0)

    def drawn(rows: int) -> tuple[Any, Any]:
        X = rng.standard_t(3, (rows, 3)) / np.sqrt(3)
        return X, truth(X) + 0.2 * rng.normal(size=rows)

    def truth(X: Any) -> Any:
        return np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]

    (X, y), (X_test, y_test) = drawn(400), drawn(2_000)
    far = np.array([[0.0, 35.0, 0.0]])
    arguments = {"random_state": 0, "device": "cpu", "verbose": False, **options}
    clean = rds.RDeepSenseRegressor(**arguments).fit(X, y)
    spoilt = rds.RDeepSenseRegressor(**arguments).fit(np.r_[X, far], np.r_[y, truth(far)])

    def nll(model: Any, X: Any, y: Any) -> float:
        return float(-model.predict_dist(X).log_prob(y).mean())

    assert nll(spoilt, X_test, y_test) < nll(clean, X_test, y_test) + 0.1
    assert nll(spoilt, far, truth(far)) < 10
