"""Means, paired differences and pooled areas, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import Gaussian, metrics
from rdeepsense.comparison.methods import parse
from rdeepsense.comparison.statistics import (
    CLASSIFICATION,
    MethodScore,
    SplitScore,
    mean_and_error,
    paired,
    pooled_area,
    summarise,
    with_error,
)


def scored(nll: dict[int, float | None]) -> dict[int, SplitScore]:
    """A method whose NLL on each split is this."""
    return {
        split: SplitScore(2.0, MethodScore({"nll": value}, None, 0.5))
        for split, value in nll.items()
    }


def test_mean_and_standard_error() -> None:
    assert mean_and_error([]) == (None, None)
    assert mean_and_error([2.0]) == (2.0, None)
    mean, error = mean_and_error([1.0, 2.0, 6.0])
    assert mean == 3.0
    assert error == pytest.approx(np.sqrt((4 + 1 + 9) / 2 / 3))


def test_paired_differences_use_shared_splits_alone() -> None:
    own = scored({0: 2.5, 1: 10.0, 3: 99.0, 4: None})
    other = scored({0: 2.0, 1: 9.9, 2: -5.0, 4: 1.0})
    mean, error = paired(own, other, "nll")
    assert mean == pytest.approx(0.3)
    # Differences 0.5 and 0.1: std 0.4 / sqrt 2, over sqrt 2 splits.
    assert error == pytest.approx(0.2)


def test_pooled_area_is_the_area_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    by_split, all_y = {}, []
    for split, rows in enumerate((30, 50)):
        y = 0.5 * rng.normal(size=rows)
        observed = metrics.calibration_curve(Gaussian(np.zeros(rows), np.ones(rows)), y)[1]
        inside = np.rint(observed * rows).astype(int).tolist()
        by_split[split] = SplitScore(0.0, MethodScore({"n": rows}, inside, 0.0))
        all_y.append(y)
    dist = Gaussian(np.zeros(80), np.ones(80))
    pooled = pooled_area(by_split)
    truth = np.concatenate(all_y)
    assert pooled.pooled_area == pytest.approx(metrics.deviation_area(dist, truth))
    assert pooled.pooled_area_signed == pytest.approx(metrics.deviation_area(dist, truth, True))
    assert pooled.pooled_area_signed > 0.1  # twice too wide
    assert pooled.pooled_floor == metrics.deviation_floor(80)
    assert pooled.pooled_rows == 80


def test_a_row_and_its_json() -> None:
    figures = [dict.fromkeys(CLASSIFICATION, value) for value in (1.0, 3.0)]
    scores = {n: SplitScore(2.0, MethodScore(own, None, 0.5)) for n, own in enumerate(figures)}
    row = summarise(parse("SSP-2"), scores, scores, "classification")
    assert (row.method, row.passes, row.splits, row.pooled) == ("SSP-2", 2, 2, None)
    assert row.means["f1"] == (2.0, 1.0)
    assert row.differences["f1"] == (0.0, 0.0)
    content = row.to_json()
    assert list(content)[:7] == [
        "method", "passes", "splits", "nll", "nll_se", "nll_difference", "nll_difference_se",
    ]  # fmt: skip
    assert (content["fit_seconds"], content["predict_seconds"]) == (2.0, 0.5)
    alone = summarise(parse("SSP-2"), scores, None, "classification").to_json()
    assert "nll_difference" not in alone


def test_text_has_the_decimals_of_its_error() -> None:
    assert with_error(2.3456, 0.0123) == "2.346 ± 0.012"
    assert with_error(0.5, 0.2, signed=True) == "+0.50 ± 0.20"
    assert with_error(1234.5, 321.0) == "1234 ± 321"
    assert with_error(1.5, None) == "1.500"
    assert with_error(None, None) == "-"
