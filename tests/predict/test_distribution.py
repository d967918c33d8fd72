"""Distributions of many rows by C are torch's, and torch's own where C cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from predict.models import classifier, regressor, table

import rdeepsense as rds
from rdeepsense.deploy.c.build import compiler
from rdeepsense.errors import InputError
from rdeepsense.predict import plan, prepare
from rdeepsense.predict.plan import CRunner

KINDS = ["plain", "two", "texts", "conformal", "isotonic", "gaps", "classes"]
needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let C be the faster of any number of rows; counts the rows of each of its runs."""
    found: list[int] = []

    class Counting(CRunner):
        def run(self, X: Any) -> Any:
            found.append(len(X))
            return super().run(X)

    monkeypatch.setattr(plan, "WORTH_IT", 0)
    monkeypatch.setattr(plan, "CRunner", Counting)
    monkeypatch.setattr(prepare, "_seconds", lambda own, rows: len(own.name))  # C: 1, torch: 5
    return found


def rows_of(kind: str) -> Any:
    X = table(500, seed=3)
    if kind == "gaps":
        X = X.with_columns(a=np.where(np.arange(500) % 5 == 0, np.nan, X["a"]))
    # Some rows are beyond what was trained on, which widens them.
    X = X.with_columns(b=np.where(np.arange(500) % 9 == 0, 40.0, X["b"]))
    return X if kind == "texts" else X.drop("site")


@pytest.mark.everyday(2, "compilers")
@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_c_has_the_distributions_of_torch(kind: str, runs: list[int]) -> None:
    model = classifier() if kind == "classes" else regressor(kind)
    X = rows_of(kind)
    found, wanted = prepare.predict_many(model, X), model.predict_dist(X)
    assert runs == [500]
    assert type(found) is type(wanted)
    assert found.shape == wanted.shape
    if kind == "classes":
        np.testing.assert_allclose(found.probs, wanted.probs, atol=1e-5)
        np.testing.assert_array_equal(found.classes, wanted.classes)
        labels = model.predict(X)
        assert rds.metrics.evaluate(found, labels) == pytest.approx(
            rds.metrics.evaluate(wanted, labels), abs=1e-5, nan_ok=True
        )
        return
    for q in (0.05, 0.5, 0.95):
        apart = np.abs(found.quantile(q) - wanted.quantile(q)) / wanted.std
        assert float(apart.max()) < 1e-5
    y = wanted.sample(1, 0)[0]
    np.testing.assert_allclose(found.log_prob(y), wanted.log_prob(y), atol=1e-4)
    np.testing.assert_allclose(found.crps(y) / wanted.std, wanted.crps(y) / wanted.std, atol=1e-5)


@needs_compiler
def test_classes_that_float32_has_no_probability_for(
    runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X = classifier(), rows_of("classes")
    clear = CRunner.run

    def underflow(self: CRunner, rows: Any) -> Any:
        predicted, status = clear(self, rows)
        if len(rows) == 500:
            predicted.mean[7] = (1, 0, 0)
        return predicted, status

    monkeypatch.setattr(CRunner, "run", underflow)
    found = prepare.predict_many(model, X)
    np.testing.assert_allclose(found.probs, model.predict_proba(X), atol=1e-5)
    assert runs == [500]


def test_torch_where_c_cannot(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    X, model = rows_of("plain"), regressor()
    adapted = model.adapt(X[:20], np.zeros(20))
    ensemble = rds.SSPRegressor(hidden=(4,), epochs=1, random_state=0).fit(X, X["a"])
    for own in (adapted, ensemble):
        assert prepare.predict_many(own, X) == own.predict_dist(X)

    def no_compiler(folded: object) -> None:
        raise InputError("no compiler")

    monkeypatch.setattr(prepare, "compiled", no_compiler)
    assert prepare.predict_many(model, X) == model.predict_dist(X)
    assert runs == []


def test_few_rows_call_no_compiler(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "WORTH_IT", 501)
    X = rows_of("plain")
    assert prepare.predict_many(regressor(), X) == regressor().predict_dist(X)
    assert runs == []
