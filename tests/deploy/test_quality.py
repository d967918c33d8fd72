"""Quality: any runner is judged by what it predicts, beside the fitted model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from deploy.random_models import draw

from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Facts, MeanStd, Outputs, Runner
from rdeepsense.deploy.quality import FineTuning, Quality, check_change, moved, quality
from rdeepsense.distributions import Gaussian, Recalibrated, StudentT
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import fitted_model


@dataclass(frozen=True)
class Blunt:
    """A runner whose stds are those of another, times a factor."""

    inner: Runner
    factor: float

    @property
    def facts(self) -> Facts:
        return self.inner.facts

    def run(self, X: Any) -> Outputs:
        found = self.inner.run(X)
        assert isinstance(found, MeanStd)
        return found._replace(std=self.factor * found.std)


def test_a_runner_that_predicts_the_same_changes_nothing() -> None:
    for seed in range(3):
        drawn = draw(seed, widest=20, most=4)
        fitted = fitted_model(drawn.estimator)
        X, y = fitted.kept_rows
        found = quality(fold(drawn.estimator), fitted, X, y)
        assert abs(found.nll_change) < 1e-9
        assert found.rows == len(y)
        keys = {"nll", "accuracy", "ece"} if seed == 2 else set(found.before)
        assert set(found.after) == keys


def test_a_std_of_double_size_is_seen() -> None:
    drawn = draw(0, widest=20, most=4)
    fitted = fitted_model(drawn.estimator)
    X = fitted.kept_rows[0]
    y = fitted.distribution(X).mean
    found = quality(Blunt(fold(drawn.estimator), 2.0), fitted, X, y)
    assert found.nll_change == pytest.approx(np.log(2), rel=1e-6)  # of rows with no error at all
    assert found.after["mae"] == pytest.approx(found.before["mae"], abs=1e-9)


@pytest.mark.parametrize("shape", ["gaussian", "student", "recalibrated"])
def test_moved_has_the_mean_and_std_it_was_given(shape: str) -> None:
    base: Any = Gaussian(np.array([1.0, 2.0]), np.array([0.5, 3.0]))
    if shape == "student":
        base = StudentT(base.mean, base.std, 3.0)
    if shape == "recalibrated":
        base = Recalibrated(base, np.array([0, 0.3, 1.0]), np.array([0, 0.6, 1.0]))
    mean, std = np.array([-1.0, 7.0]), np.array([2.0, 0.1])
    found = moved(base, mean, std)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.std, std, rtol=1e-9)
    assert type(found) is type(base)


def test_too_large_a_change_is_refused_in_the_library_s_words() -> None:
    found = Quality(8, {"nll": 1.0}, {"nll": 1.5})
    check_change(found, 0.5, "int8")
    said = (
        "int8 moves the NLL from 1.0000 to 1.5000 on 8 rows, by more than max_nll_change=0.02; .*"
        "try fine_tune=True, accept a larger change or take a wider dtype="
    )
    with pytest.raises(InputError, match=said):
        check_change(found, 0.02, "int8")
    with pytest.raises(InputError, match="You can give rows= with more rows to fine-tune on, acc"):
        check_change(found, 0.02, "int8", fine_tuned=True)
    with pytest.raises(InputError, match="You can accept a larger change or take a wider dtype="):
        check_change(found, 0.02, "float16")
    with pytest.raises(InputError, match="nothing was written"):
        check_change(Quality(8, {"nll": 1.0}, {"nll": float("nan")}), 9.0, "float16")


def test_json() -> None:
    found = Quality(8, {"nll": 1.0}, {"nll": 1.5}, "model file")
    plain = {"rows_from": "model file", "rows": 8, "before": {"nll": 1.0}, "after": {"nll": 1.5}}
    assert found.to_json() == {**plain, "nll_change": 0.5}
    tuned = replace(found, fine_tuned=FineTuning(4, 100, 0.7)).to_json()
    assert tuned["fine_tuned"] == {"rows": 4, "steps": 100, "nll_change_without": 0.7}
