"""Labelled rows: whose they are, and that what calibrates int8 does not judge it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from deploy.random_models import draw

from rdeepsense.deploy.options import LabelledRows
from rdeepsense.estimators.base import fitted_model
from rdeepsense.fitting.target import ClassTarget


def test_int8_is_not_judged_by_rows_that_calibrated_it() -> None:
    X, y = np.arange(14.0).reshape(7, 2), np.arange(7.0)
    rows = LabelledRows(X, y, "here")
    assert rows.calibrating("int8")[:, 0].tolist() == [0, 4, 8, 12]
    judging = rows.judging("int8")
    assert (judging[0][:, 0].tolist(), judging[1].tolist()) == ([2, 6, 10], [1, 3, 5])
    for dtype in ("float32", "float16"):
        assert rows.calibrating(dtype) is X
        assert rows.judging(dtype) == (X, y)


def test_kept_rows_are_the_default() -> None:
    fitted = fitted_model(draw(0, widest=5, most=3).estimator)
    rows = LabelledRows.of(fitted)
    assert (rows.X is fitted.kept_rows[0], rows.origin) == (True, "model file")


def test_labels_become_the_numbers_of_their_classes() -> None:
    estimator = draw(2, widest=5, most=3).estimator
    labels = np.array(["run", "sit", "walk"])[: len(estimator.classes_)]
    fitted = replace(fitted_model(estimator), target=ClassTarget(labels))
    X = fitted.kept_rows[0][:3]
    rows = LabelledRows.of(fitted, (X.tolist(), ["sit", "run", "sit"]))
    assert rows.y.tolist() == [1, 0, 1]
    assert (rows.X.dtype, rows.origin) == (np.float64, "rows given")
