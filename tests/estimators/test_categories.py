"""Tables with categories and holes, through every estimator and its file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import rdeepsense as rds
from rdeepsense import InputError, Status

SMALL: dict[str, Any] = {"random_state": 0, "device": "cpu", "verbose": False}
NETWORK: dict[str, Any] = {**SMALL, "hidden": (16, 16), "epochs": 8}


def table(rows: int = 400, seed: int = 0, holes: bool = True) -> tuple[pd.DataFrame, Any]:
    """Numbers with holes, a category of three levels, one of thirty, and yes or no."""
    rng = np.random.default_rng(seed)
    colour, site = rng.choice(["red", "green", "blue"], rows), rng.integers(30, size=rows)
    a, b = rng.normal(size=(2, rows))
    effect = np.random.default_rng(1).normal(size=30)
    y = a + 2.0 * (colour == "red") + effect[site] + 0.2 * rng.normal(size=rows)
    frame = pd.DataFrame(
        {"a": a, "colour": colour, "b": b, "on": rng.random(rows) < 0.5, "site": site.astype(str)}
    )
    frame["site"] = "s" + frame["site"]
    if holes:
        frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
        frame.loc[rng.random(rows) < 0.1, "colour"] = None
    return frame, y


FRAME, Y = table()
LABELS = np.where(np.median(Y) < Y, "up", "down")
ESTIMATORS = [
    rds.RDeepSenseRegressor(**NETWORK, effort="quick"),
    rds.RDeepSenseClassifier(**NETWORK, effort="quick"),
    rds.MCDropRegressor(samples=3, **NETWORK),
    rds.MCDropClassifier(samples=3, **NETWORK),
    rds.SSPRegressor(members=2, **NETWORK),
    rds.SSPClassifier(members=2, **NETWORK),
    rds.GPRegressor(steps=5, **SMALL),
    rds.GPClassifier(steps=5, inducing=20, **SMALL),
]


def target_of(model: Any) -> Any:
    return LABELS if hasattr(model, "predict_proba") else Y


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)
def test_every_estimator_takes_the_table_and_keeps_it_in_its_file(
    model: Any, tmp_path: Path
) -> None:
    model = clone(model).fit(FRAME, target_of(model))
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    encoding = model.fitted_.inputs.encoding
    assert encoding.flagged == (0,)
    assert [c.column for c in encoding.categories] == [1, 3, 4]
    assert [c.is_one_hot for c in encoding.categories] == [True, True, False]
    assert not model.status(FRAME).any()
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.fitted_.inputs.missing == "indicator"
    assert loaded.fitted_.inputs.encoding.to_json() == encoding.to_json()
    for X in (FRAME, pl.from_pandas(FRAME), FRAME.to_numpy(), FRAME.to_numpy().tolist()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of names that an array has not
            np.testing.assert_array_equal(loaded.predict(X), model.predict(FRAME))


@pytest.fixture(scope="module")
def model() -> rds.RDeepSenseRegressor:
    return rds.RDeepSenseRegressor(**{**NETWORK, "epochs": 60}, effort="quick").fit(FRAME, Y)


def changed(row: int, column: str, value: Any) -> pd.DataFrame:
    frame = FRAME.iloc[:20].copy()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


def test_the_categories_are_learnt(model: rds.RDeepSenseRegressor) -> None:
    X, y = table(2_000, seed=5)
    assert model.evaluate(X, y)["mae"] < 0.45
    without = rds.RDeepSenseRegressor(**{**NETWORK, "epochs": 60}, effort="quick")
    assert without.fit(FRAME[["a", "b"]], Y).evaluate(X[["a", "b"]], y)["mae"] > 0.9


@pytest.mark.parametrize(
    ("column", "value", "status"),
    [
        ("colour", "violet", Status.UNKNOWN_LEVEL),
        ("site", "s99", Status.UNKNOWN_LEVEL),
        ("site", 3, Status.UNKNOWN_LEVEL),
        ("on", "maybe", Status.UNKNOWN_LEVEL),
        ("colour", None, Status.OK),
        ("a", np.nan, Status.OK),
        ("a", 1e5, Status.OUT_OF_RANGE),
        ("b", np.nan, Status.MISSING),
        ("site", None, Status.MISSING),
    ],
)
def test_status_of_a_row(
    model: rds.RDeepSenseRegressor, column: str, value: Any, status: Status
) -> None:
    X = changed(4, column, value)
    assert model.status(X).tolist() == [0] * 4 + [int(status)] + [0] * 15
    flagged = model.flagged_inputs(X)
    assert flagged.sum() == (status != Status.OK)
    assert flagged[4, list(FRAME.columns).index(column)] == (status != Status.OK)
    if status == Status.MISSING:
        with pytest.raises(InputError, match=f"NaN in row 4, column '{column}'.*no training row"):
            model.predict(X)
        return
    std = model.predict(X, return_std=True)[1]
    assert (std[4] >= Y.std() * 0.9) == (status != Status.OK)


def test_status_of_two_things_at_once(model: rds.RDeepSenseRegressor) -> None:
    X = changed(2, "site", "s99")
    X.loc[2, "b"] = np.nan
    assert rds.Status(int(model.status(X)[2])) == Status.UNKNOWN_LEVEL | Status.MISSING
    assert Status(5).words == "missing, unknown level"


def test_rare_levels_are_together_and_known() -> None:
    frame, y = table(holes=False)
    frame.loc[[3, 4], "colour"] = ["teal", "pink"]
    model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(frame, y)
    encoding = model.fitted_.inputs.encoding
    assert encoding is not None
    assert encoding.categories[0].width == 4
    teal, pink = (frame.iloc[[3]].assign(colour=name) for name in ("teal", "pink"))
    unseen = frame.iloc[[3]].assign(colour="unseen")
    assert model.predict(teal) == model.predict(pink) == model.predict(unseen)
    assert [int(model.status(X)[0]) for X in (teal, pink, unseen)] == [0, 0, 4]


def test_what_else_a_model_does(model: rds.RDeepSenseRegressor) -> None:
    for method in ("laplace", "delta"):
        total = model.predict_dist(FRAME, epistemic=method)
        assert np.isfinite(total.std).all()
    model.fit_novelty(FRAME)
    assert np.median(model.novelty(FRAME)) < 0.9
    model.describe(feature_units={"a": "m"})
    assert model.fitted_.inputs.units == ("m", "", "", "", "")
    conformal = rds.RDeepSenseRegressor(**NETWORK, calibrate="conformal", effort="quick").fit(
        FRAME, Y
    )
    low, high = conformal.predict_interval(FRAME, method="conformal")
    assert ((low < Y) & (high > Y)).mean() > 0.85


def test_validation_rows_and_groups_and_weights() -> None:
    X, y = table(80, seed=7)
    model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(FRAME, Y, validation=(X, y))
    assert model.training_["validation_rows"] == 80
    assert np.isnan(model.fitted_.kept_rows[0]).any()
    kept = model.fitted_.kept_rows[0]
    assert kept[:, 4].max() < 30
    X.loc[0, "b"] = np.nan
    with pytest.raises(InputError, match="NaN in row 0, column 'b'"):
        rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(FRAME, Y, validation=(X, y))
    rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(FRAME, Y, groups=FRAME["site"])
    rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(
        FRAME, Y, sample_weight=np.linspace(0, 1, len(Y))
    )


def test_a_teacher_of_categories_is_distilled() -> None:
    teacher = rds.SSPRegressor(members=2, **NETWORK).fit(FRAME, Y)
    student = rds.RDeepSenseRegressor(**{**NETWORK, "epochs": 2}, effort="quick").distil(
        teacher, FRAME
    )
    assert student.feature_names_in_.tolist() == list(FRAME.columns)
    assert len(student.fitted_.inputs.encoding.categories) == 3
    assert np.corrcoef(student.predict(FRAME), teacher.predict(FRAME))[0, 1] > 0.8


def test_numbers_are_categories_only_where_named() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(1, 4, 300)])
    y = X[:, 0] + np.array([5.0, -5, 3])[X[:, 1].astype(int) - 1] + 0.1 * rng.normal(size=300)
    plain = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(X, y)
    assert plain.fitted_.inputs.encoding is None
    named = rds.RDeepSenseRegressor(**NETWORK, categorical=[1], effort="quick").fit(X, y)
    (category,) = named.fitted_.inputs.encoding.categories
    assert category.levels == ("1", "2", "3")
    assert named.status([[0.0, 2], [0.0, 4], [0.0, 2.5]]).tolist() == [0, 4, 4]
    frame = pd.DataFrame(X, columns=["x", "kind"])
    again = rds.RDeepSenseRegressor(**NETWORK, categorical=["kind"], effort="quick").fit(frame, y)
    np.testing.assert_array_equal(again.predict(frame), named.predict(X))
    with pytest.raises(ValueError, match="could not convert string to float"):
        rds.RDeepSenseRegressor(**NETWORK, categorical=None, effort="quick").fit(FRAME, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        named.predict(np.ones((2, 3)))


def test_a_rare_level_is_no_column_to_warn_of() -> None:
    frame, y = table(1_500, holes=False)
    frame["colour"] = np.where(np.arange(1_500) % 125 == 7, "rare", "common")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.errors.ColumnWarning)
        model = rds.RDeepSenseRegressor(**{**NETWORK, "epochs": 2}, effort="quick").fit(frame, y)
    scaler = model.fitted_.inputs.scaler
    assert np.abs((1 - scaler.shift[2:4]) / scaler.scale[2:4]).max() < 4
    assert set(model.status(frame)) <= {rds.Status.OK, rds.Status.UNLIKE}


def test_a_category_that_names_rows_is_told() -> None:
    frame, y = table(holes=False)
    ids = frame.assign(id=[f"row {k}" for k in range(len(frame))])
    with pytest.warns(rds.errors.ColumnWarning, match="'id': 400 levels in 400 rows.*leave it out"):
        model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(ids, y)
    assert not model.fitted_.inputs.encoding.categories[-1].is_one_hot


def test_levels_of_a_few_rows_are_learnt() -> None:
    rng = np.random.default_rng(0)
    level, effect = np.repeat(np.arange(200), 5), rng.normal(size=200)
    frame = pd.DataFrame({"x": rng.normal(size=1_000), "site": [f"s{k}" for k in level]})
    y = effect[level] + frame["x"] + 0.3 * rng.normal(size=1_000)
    model = rds.RDeepSenseRegressor(**{**NETWORK, "epochs": 30}, effort="quick").fit(frame, y)
    fresh = frame.assign(x=rng.normal(size=1_000))
    assert np.abs(model.predict(fresh) - effect[level] - fresh["x"]).mean() < 0.3


def test_a_category_of_one_level_is_constant() -> None:
    frame, y = table(holes=False)
    model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(frame.assign(colour="red"), y)
    assert model.training_["constant_inputs"] == ["colour"]


# -- holes ----------------------------------------------------------------------------------------


def holed() -> Any:
    return FRAME[["a", "b"]].to_numpy().copy()


def test_auto_is_an_indicator_where_training_rows_had_holes() -> None:
    X = holed()
    model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(X, Y)
    assert model.missing == "auto"
    assert model.fitted_.inputs.missing == "indicator"
    encoding = model.fitted_.inputs.encoding
    assert encoding is not None
    assert (encoding.flagged, encoding.width) == ((0,), 3)
    same = rds.RDeepSenseRegressor(**NETWORK, missing="indicator", effort="quick").fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    mean = rds.RDeepSenseRegressor(**NETWORK, missing="mean", effort="quick").fit(X, Y)
    assert mean.fitted_.inputs.encoding is None
    shift = mean.fitted_.inputs.scaler.shift
    filled = np.where(np.isnan(X), shift, X)
    np.testing.assert_allclose(mean.predict(X), mean.predict(filled))
    hole = np.isnan(X[:, 0])
    assert (model.predict(X) != model.predict(filled)).tolist() == hole.tolist()


def test_without_holes_auto_refuses_as_scikit_learn_does() -> None:
    X = np.nan_to_num(holed())
    model = rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(X, Y)
    assert model.fitted_.inputs.missing == "refuse"
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="X contains NaN or infinity in 1 of 400 rows.*column 1"):
        model.predict(X)
    assert model.status(X)[3] == Status.MISSING
    quiet = rds.RDeepSenseRegressor(**NETWORK, missing="indicator", effort="quick").fit(
        np.nan_to_num(holed()), Y
    )
    with pytest.raises(InputError, match="no training row lacked a value there"):
        quiet.predict(X)


def test_the_tag_follows() -> None:
    def allows(model: Any) -> bool:
        return bool(model.__sklearn_tags__().input_tags.allow_nan)

    full, quick = np.nan_to_num(holed()), {**NETWORK, "epochs": 1}
    assert allows(rds.RDeepSenseRegressor(effort="quick"))
    assert not allows(rds.RDeepSenseRegressor(missing="refuse", effort="quick"))
    assert not allows(rds.RDeepSenseRegressor(**quick, effort="quick").fit(full, Y))
    assert allows(rds.RDeepSenseRegressor(**quick, effort="quick").fit(holed(), Y))
    assert allows(rds.SSPClassifier(members=1, **quick).fit(holed(), LABELS))


def test_holes_that_cannot_be() -> None:
    X = holed()
    with pytest.raises(InputError, match="column 0 of X has no value at all"):
        rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(
            np.where([True, False], np.nan, X), Y
        )
    X[0, 1] = np.inf
    with pytest.raises(InputError, match="first infinity in row 0, column 1"):
        rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(X, Y)
    windows = np.random.default_rng(0).normal(size=(40, 5, 3))
    with pytest.raises(InputError, match="'indicator' is for tables; accepted for windows"):
        rds.RDeepSenseRegressor(**NETWORK, missing="indicator", effort="quick").fit(
            windows, windows[:, 0, 0]
        )


def test_same_seed_same_bits() -> None:
    first, second = (
        rds.RDeepSenseRegressor(**NETWORK, effort="quick").fit(FRAME, Y) for _ in range(2)
    )
    np.testing.assert_array_equal(first.predict(FRAME), second.predict(FRAME))
