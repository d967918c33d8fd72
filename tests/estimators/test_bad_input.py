"""Bad input: refused where it enters, by name, with what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rdeepsense import InputError, RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.datasets import simulate

TASK = simulate(50, seed=0)
X, Y = TASK.X, TASK.y
LABELS = np.where(np.median(Y) < Y, "up", "down")


def regressor(**options: Any) -> RDeepSenseRegressor:
    return RDeepSenseRegressor(
        hidden=(4,), epochs=2, random_state=0, device="cpu", **options, effort="quick"
    )


def classifier(**options: Any) -> RDeepSenseClassifier:
    return RDeepSenseClassifier(
        hidden=(4,), epochs=2, random_state=0, device="cpu", **options, effort="quick"
    )


def spoilt(array: np.ndarray, value: float, *places: tuple[int, ...]) -> np.ndarray:
    array = array.copy()
    for place in places:
        array[place] = value
    return array


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_in_x(value: float) -> None:
    bad = spoilt(X, value, (17, 2), (30, 0))
    name = "NaN" if np.isnan(value) else "infinity"
    match = rf"X contains NaN or infinity in 2 of 50 rows, first {name} in row 17, column 2"
    with pytest.raises(InputError, match=match):
        regressor(missing="refuse").fit(bad, Y)
    with pytest.raises(InputError, match=match):
        regressor().fit(X, Y).predict(bad)
    if name == "NaN":
        with pytest.raises(InputError, match="missing='mean' fills NaN"):
            regressor(missing="refuse").fit(bad, Y)
    else:
        with pytest.raises(InputError, match="in row 17"):
            regressor(missing="mean").fit(bad, Y)


def test_nan_and_infinity_in_y() -> None:
    with pytest.raises(InputError, match="y contains NaN or infinity in 1 of 50 rows.*row 3"):
        regressor().fit(X, spoilt(Y, np.nan, (3,)))
    with pytest.raises(InputError, match="first infinity in row 4, column 1"):
        regressor().fit(X, spoilt(np.column_stack([Y, Y]), np.inf, (4, 1)))


def test_wrong_feature_count_or_form(fitted: Any) -> None:
    model = fitted(regressor(), X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        regressor().fit(X[:, 0], Y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(X[0])


def test_empty_and_short_tables() -> None:
    with pytest.raises(ValueError, match="0 sample"):
        regressor().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match=r"9 sample.* minimum of 10 is required"):
        regressor().fit(X[:9], Y[:9])
    with pytest.raises(ValueError, match="0 feature"):
        regressor().fit(X[:, :0], Y)


def test_constant_target() -> None:
    with pytest.raises(InputError, match=r"y is constant \(3\): nothing to learn"):
        regressor().fit(X, np.full(50, 3.0))
    with pytest.raises(InputError, match="column 1 of y is constant"):
        regressor().fit(X, np.column_stack([Y, np.ones(50)]))


def test_one_class_and_unknown_class() -> None:
    with pytest.raises(InputError, match="one class only.*two classes or more"):
        classifier().fit(X, np.full(50, "up"))
    with pytest.raises(InputError, match="class 'sideways', which the model was not fitted on"):
        classifier().fit(X, LABELS, validation=(X, np.full(50, "sideways")))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier().fit(X, Y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"alpha": 1.0}, "leaves the variance untrained"),
        ({"alpha": "best"}, r"alpha = 'best' is unknown; accepted: a number in \[0, 1\), auto"),
        ({"drop_prob": "best"}, "drop_prob = 'best' is unknown; accepted: numbers"),
        ({"drop_prob": 1.0}, r"drop_prob = 1.0 is not in \[0, 1\)"),
        ({"drop_prob": -0.1}, "probability to DROP"),
        ({"input_drop_prob": 2}, "input_drop_prob = 2"),
        ({"likelihood": "poisson"}, "likelihood = 'poisson' is unknown; accepted: student, gauss"),
        ({"calibrate": "maybe"}, "calibrate = 'maybe' is unknown here; accepted: True, False"),
        ({"missing": "median"}, "missing = 'median' is unknown; accepted: auto, refuse, mean"),
        ({"categorical": "colour"}, "categorical = 'colour'; accepted: 'auto', None, or a list"),
        ({"categorical": [True]}, "categorical = .True."),
        ({"categorical": ["colour"]}, "categorical names 'colour', which X does not have"),
        ({"categorical": [4]}, "categorical names 4, which X does not have; it has 0, 1, 2, 3"),
        ({"epochs": 0}, "epochs = 0 is not a whole number of at least 1"),
        ({"batch_size": 1.5}, "batch_size = 1.5"),
        ({"learning_rate": -1}, "learning_rate = -1 is not a number > 0"),
        ({"weight_decay": -1}, "weight_decay = -1 is not a number >= 0"),
        ({"keep_rows": -1}, "keep_rows = -1"),
        ({"hidden": (4, 0)}, "a width in hidden = 0"),
        ({"hidden": 6.4}, "hidden = 6.4"),
        ({"device": "toaster"}, "device = 'toaster' is unknown"),
        ({"beta": 2}, "beta = 2"),
    ],
)
def test_arguments(options: dict[str, Any], match: str) -> None:
    settings = {"hidden": (4,), "epochs": 2, "device": "cpu", **options}
    with pytest.raises(InputError, match=match):
        RDeepSenseRegressor(**settings, effort="quick").fit(X, Y)


def test_what_goes_with_x_must_have_its_length() -> None:
    with pytest.raises(InputError, match="y has 49 rows, X has 50"):
        regressor().fit(X, Y[:-1])
    with pytest.raises(InputError, match="sample_weight has 3 rows, X has 50"):
        regressor().fit(X, Y, sample_weight=[1, 2, 3])
    with pytest.raises(InputError, match="groups has 2 rows, X has 50"):
        regressor().fit(X, Y, groups=[1, 2])
    with pytest.raises(InputError, match="not negative and not all zero"):
        regressor().fit(X, Y, sample_weight=-np.ones(50))
    with pytest.raises(InputError, match="equal inputs or one group"):
        regressor().fit(X, Y, groups=np.ones(50))
    with pytest.raises(InputError, match="groups or validation, not both"):
        regressor().fit(X, Y, groups=np.arange(50), validation=(X, Y))
    with pytest.raises(InputError, match="validation must be a pair"):
        regressor().fit(X, Y, validation=X)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="y has 3 axes"):
        regressor().fit(X, np.zeros((50, 2, 2)))


def test_predict_before_fit(tmp_path: Any) -> None:
    for model in (regressor(), classifier()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            model.predict(X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            model.save(tmp_path / "m.safetensors")


def test_samples_and_coverage(fitted: Any) -> None:
    model = fitted(regressor(), X, Y)
    for bad in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="samples = .* whole number of at least 1"):
            model.predict_dist(X, samples=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="coverage"):
        model.predict_interval(X, coverage=1.5)


def test_a_column_without_any_value_has_no_mean() -> None:
    bad = X.copy()
    bad[:, 1] = np.nan
    with pytest.raises(InputError, match="column 1 of X has no value at all"):
        regressor(missing="mean").fit(bad, Y)
