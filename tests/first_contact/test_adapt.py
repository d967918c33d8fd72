"""Adapting to labels that contradict the model: said, and with bounded harm."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from first_contact.test_live import SETTINGS, rows

import rdeepsense as rds


@pytest.fixture
def model(fitted: Callable[..., Any]) -> Any:
    return fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))


def test_absurd_labels_teach_nothing(model: Any) -> None:
    X, y = rows(500, 1)
    with pytest.warns(rds.LabelWarning, match="500 of 500 labels are set aside, the first in row"):
        same = model.adapt(X, np.full(500, 1e30))
    np.testing.assert_allclose(same.predict(X), model.predict(X), rtol=1e-12)
    spoilt = y + 2
    spoilt[7] = -9999
    with pytest.warns(rds.LabelWarning, match="1 of 500 labels are .* the first in row 7 "):
        mine = model.adapt(X, spoilt)
    others = np.arange(500) != 7
    wanted = model.adapt(X[others], spoilt[others])
    np.testing.assert_allclose(mine.predict(X), wanted.predict(X), rtol=1e-6)


def test_labels_that_contradict_the_model_are_told(model: Any) -> None:
    X, y = rows(20, 1)
    with pytest.warns(rds.LabelWarning, match="20 of 20 labels lie more than 10 standard"):
        model.adapt(X, y + 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.LabelWarning)
        model.adapt(X, y + 3)
        model.adapt(X, y)


def test_classes_that_contradict_the_model_are_told(fitted: Callable[..., Any]) -> None:
    X, y = rows(400)
    label = np.where(y > 20, "high", "low")
    model = fitted(rds.RDeepSenseClassifier(**SETTINGS), X, label)
    far = np.abs(X[:, 0]) > 1
    with pytest.warns(rds.LabelWarning, match="less than 5%; are they of these rows"):
        model.adapt(X[far], np.where(y > 20, "low", "high")[far])
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.LabelWarning)
        model.adapt(X[:20], label[:20])
