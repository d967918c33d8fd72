"""A fitted model in a notebook: its figures, and a small calibration curve of the rows it keeps."""

from __future__ import annotations

from html import escape

import numpy as np

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.distributions import Categorical
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.plot.curves import binomial_band, reliability

SIDE = 150  # pixels
LEVELS = np.linspace(0.05, 0.95, 19)
FIGURES = {
    "mae": "mean absolute error",
    "nll": "negative log-likelihood",
    "coverage_90": "90 % intervals that hold",
    "accuracy": "accuracy",
    "ece": "calibration error",
}
FEWEST_ROWS = 20


def fitted_html(fitted: Fitted) -> str:
    """Return figures and curve; both are of validation rows, which had a part in the choices."""
    names = ", ".join(fitted.target.names or ()) or "y"
    training = fitted.training
    lines = [
        ("predicts", escape(names)),
        ("trained on", f"{training.rows:,} rows, {fitted.inputs.shape[-1]:,} inputs"),
        *(
            (FIGURES[key], f"{fitted.scores[key]:.4g}")
            for key in FIGURES
            if key in fitted.scores and np.isfinite(fitted.scores[key])
        ),
    ]
    body = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in lines)
    note = "<small>of validation rows; rdeepsense.report(model, X, y) judges it on others</small>"
    return (
        '<div style="display:flex;gap:1em;align-items:center;flex-wrap:wrap">'
        f"<div><table>{body}</table>{note}</div>{_curve(fitted)}</div>"
    )


def _curve(fitted: Fitted) -> str:
    """Draw stated against observed probabilities of the rows that the model keeps, if any."""
    X, y = fitted.kept_rows
    if len(X) < FEWEST_ROWS:
        return ""
    dist = fitted.distribution(X)
    if isinstance(dist, Categorical):
        stated, seen, spread = reliability(dist, np.asarray(y, np.int64))
        low, high = stated - 1.96 * spread, stated + 1.96 * spread
    else:
        stated, seen = metrics.calibration_curve(dist, np.asarray(y).reshape(dist.shape), LEVELS)
        low, high = binomial_band(stated, len(X))
    band = f"{_points(stated, low)} {_points(stated[::-1], high[::-1])}"
    return (
        f'<svg role="img" aria-label="observed against stated probability of {len(X)} validation '
        f'rows" viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" height="{SIDE}">'
        f'<rect width="{SIDE}" height="{SIDE}" fill="none" stroke="currentColor" '
        'stroke-opacity=".3"/>'
        f'<polygon points="{band}" fill="currentColor" fill-opacity=".15"/>'
        f'<path d="M0 {SIDE}L{SIDE} 0" stroke="currentColor" stroke-opacity=".4"/>'
        f'<polyline points="{_points(stated, seen)}" fill="none" stroke="#0072b2" '
        'stroke-width="2"/></svg>'
    )


def _points(x: Floats, y: Floats) -> str:
    across, up = SIDE * np.clip(x, 0, 1), SIDE * (1 - np.clip(y, 0, 1))
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
