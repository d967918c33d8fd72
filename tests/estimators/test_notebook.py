"""Models in a notebook: scikit-learn's own diagram, and below it what was fitted."""

from __future__ import annotations

import re

import numpy as np
import sklearn

import rdeepsense as rds


def test_a_fitted_model_shows_figures_and_a_curve() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=150)
    model = rds.RDeepSenseRegressor(
        effort="quick", hidden=(4,), epochs=2, random_state=0, verbose=False
    )
    before = model._repr_mimebundle_()["text/html"]
    assert "trained on" not in before
    assert repr(model).startswith("RDeepSenseRegressor(effort='quick'")
    html = model.fit(X, y).describe(["<heat>"])._repr_mimebundle_()["text/html"]
    assert "<th>predicts</th><td>&lt;heat&gt;</td>" in html
    assert f"{model.training_['rows']:,} rows, 2 inputs" in html
    nll = re.search(r"negative log-likelihood</th><td>([^<]*)", html)
    assert nll is not None
    assert float(nll[1]) == float(f"{model.validation_scores_['nll']:.4g}")
    points = re.search(r'<polyline points="([^"]*)"', html)
    assert points is not None
    pairs = np.array([pair.split(",") for pair in points[1].split()], float)
    X_kept, y_kept = model.fitted_.kept_rows
    dist = model.predict_dist(X_kept)
    at = 0.5 * 150, 150 * (1 - rds.metrics.coverage(dist, y_kept, 0.5))
    np.testing.assert_allclose(pairs[9], at, atol=0.06)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_classes_and_models_without_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    labels = np.where(X[:, 0] > 0, "up", "down")
    model = rds.RDeepSenseClassifier(
        effort="quick", hidden=(4,), epochs=2, random_state=0, verbose=False
    )
    assert "accuracy" in model.fit(X, labels)._repr_mimebundle_()["text/html"]
    assert "<polyline" in model._repr_mimebundle_()["text/html"]
    model.set_params(keep_rows=0).fit(X, labels)
    assert "<polyline" not in model._repr_mimebundle_()["text/html"]
