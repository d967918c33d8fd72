"""Calibration, risk, bands and residuals: what is drawn is what the formulas say."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import rdeepsense as rds
from rdeepsense import InputError
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.plot.curves import binomial_band


@pytest.fixture
def axes() -> Any:
    return Figure().subplots()


def made(rows: int = 500) -> tuple[Gaussian, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    std = 0.2 + np.abs(x)
    return Gaussian(x, std), x + std * rng.normal(size=rows)


def line(axes: Any, label: str) -> Any:
    return next(one for one in axes.get_lines() if str(one.get_label()).startswith(label))


def test_calibration_of_numbers_and_its_band(axes: Any) -> None:
    dist, y = made()
    assert rds.plot.calibration(dist, y, ax=axes) is axes
    levels, shares = line(axes, "this model, 500 rows").get_data()
    expected = rds.metrics.calibration_curve(dist, y, levels / 100)[1]
    np.testing.assert_allclose(shares, 100 * expected)
    corners = axes.collections[0].get_paths()[0].vertices
    at = corners[np.isclose(corners[:, 0], 90)][:, 1]
    ends = stats.binom.ppf([0.025, 0.975], 500, 0.9) / 5
    np.testing.assert_allclose([at.min(), at.max()], ends)


def test_calibration_of_classes_by_hand(axes: Any) -> None:
    probs = np.repeat([[0.5, 0.5], [0.8, 0.2]], 50, axis=0)
    y = np.array(["a"] * 20 + ["b"] * 30 + ["a"] * 45 + ["b"] * 5)
    rds.plot.calibration(Categorical(probs, ["a", "b"]), y, axes)
    stated, right = line(axes, "this model").get_data()
    assert len(stated) == 10
    np.testing.assert_allclose([stated[0], stated[-1]], [50, 80])
    np.testing.assert_allclose(right[:5].mean(), 40)
    np.testing.assert_allclose(right[5:].mean(), 90)


def test_risk_falls_to_the_surest_rows(axes: Any) -> None:
    dist, y = made()
    rds.plot.risk(dist, y, axes, unit="m")
    refused, remains = line(axes, "by stated").get_data()
    error = np.abs(dist.mean - y)
    assert remains[refused == 0] == pytest.approx(error.mean())
    half = error[np.argsort(dist.std)[:250]].mean()
    assert remains[np.isclose(refused, 50)] == pytest.approx(half)
    assert axes.get_ylabel() == "mean absolute error (m)"
    best = line(axes, "by the error")
    assert (np.interp(refused[::-1], *np.flip(best.get_data(), 1)) <= remains[::-1] + 1e-9).all()


def test_bands_mark_what_is_outside(axes: Any) -> None:
    dist, y = made(100)
    rds.plot.bands(dist, y, ax=axes)
    low, high = dist.interval(0.9)
    outside = int(((y < low) | (y > high)).sum())
    assert len(line(axes, "truth, outside").get_xdata()) == outside
    along = Figure().subplots()
    rds.plot.bands(dist, y, x=np.arange(100.0), ax=along)
    assert line(along, "mean").get_ydata().tolist() == dist.mean.tolist()


def test_residuals_show_a_bias(axes: Any) -> None:
    dist, y = made()
    rds.plot.residuals(dist, y + 3, axes)
    means = line(axes, "mean").get_ydata()
    assert len(means) == 10
    assert means.mean() == pytest.approx((y + 3 - dist.mean).mean())


def test_new_axes_of_pyplot_where_none_are_given() -> None:
    mpl.use("agg")
    from matplotlib import pyplot

    dist, y = made(50)
    before = len(pyplot.get_fignums())
    axes = rds.plot.calibration(dist, y)
    assert len(pyplot.get_fignums()) == before + 1
    pyplot.close(axes.figure)


def test_refusals(axes: Any) -> None:
    dist, y = made(20)
    two = Gaussian(np.zeros((20, 2)), np.ones((20, 2)))
    with pytest.raises(InputError, match=r"calibration draws one target; .* dist\[:, k\]"):
        rds.plot.calibration(two, np.zeros((20, 2)), axes)
    classes = Categorical(np.full((20, 2), 0.5))
    for draw in (rds.plot.bands, rds.plot.residuals):
        with pytest.raises(InputError, match="is for regression"):
            draw(classes, np.zeros(20, int), ax=axes)
    with pytest.raises(InputError, match="x must have one number for each of 20 rows"):
        rds.plot.bands(dist, y, x=np.zeros(3), ax=axes)


@pytest.mark.parametrize("rows", [1, 7, 20, 500, 100_000])
def test_the_band_is_that_of_scipy(rows: int) -> None:
    levels = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    low, high = binomial_band(levels, rows)
    np.testing.assert_array_equal(np.rint(low * rows), stats.binom.ppf(0.025, rows, levels))
    np.testing.assert_array_equal(np.rint(high * rows), stats.binom.ppf(0.975, rows, levels))


def test_a_curve_of_many_rows_stays_light(axes: Any) -> None:
    dist, y = made(20_000)
    rds.plot.risk(dist, y, axes)
    assert len(line(axes, "by stated").get_xdata()) == 1_000
