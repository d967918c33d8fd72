"""Several trainings: errors against hand-made values, means of everything that is kept."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rdeepsense.paper.scores import (
    AlphaTraining,
    CalibrationCurve,
    MethodTraining,
    alpha_over_seeds,
    combined,
    method_over_seeds,
)


def test_both_sources_add_up() -> None:
    error, freedom = combined(0.3, [1.0, 2.0, 3.0], blocks=50)
    seeds = 1 / 3  # variance 1 over three trainings
    assert error == pytest.approx(math.sqrt(0.09 + seeds))
    assert freedom == pytest.approx((0.09 + seeds) ** 2 / (0.09**2 / 49 + seeds**2 / 2))


def test_one_source_alone() -> None:
    assert combined(0.3, [1.0], blocks=50) == (0.3, 49)  # one training
    assert combined(0.3, [1.0, 1.0, 1.0], blocks=50) == pytest.approx((0.3, 49))
    assert combined(0.0, [1.0, 3.0], blocks=50) == pytest.approx((1.0, 1))
    assert combined(0.0, [1.0, 1.0]) == (0.0, math.inf)


@pytest.mark.parametrize(("rows", "by_seed"), [(None, [1.0, 2.0]), (0.1, [1.0, None]), (0.1, [])])
def test_no_error_where_something_is_missing(rows: float | None, by_seed: list[Any]) -> None:
    assert combined(rows, by_seed)[0] is None


def training(nll: float, kl: float | None = 0.1, **more: Any) -> MethodTraining:
    content = {
        "about": "a method",
        "figures": {"nll": nll, "kl": kl, "crps": 2 * nll, "nll_se": 9.0, "kl_se": 0.03},
        "jackknife": {"nll": [nll - 0.1, nll, nll + 0.1]},
        "warnings": ["both"],
        "calibration": {"levels": [0.5], "observed": [nll / 10]},
        "risk_coverage": {"kept": [1.0, 0.5], "risk": [nll, None], "risk_name": "MAE"},
        "group_coverage": [0.0, nll],
        "faults": {"stuck": {"flagged": nll / 10, "auroc": None}},
        "fit_seconds": nll,
        "chosen": {"likelihood": "student", "alpha": nll},
        "passes": 1,
        **more,
    }
    return MethodTraining.from_json(content)


def test_means() -> None:
    found = method_over_seeds([training(1.0), training(3.0, warnings=["both", "one"])], None)
    figures = found.figures
    assert (figures["nll"], figures["crps"], found.seeds) == (2.0, 4.0, 2)
    assert found.by_seed["nll"] == [1.0, 3.0]
    assert found.jackknife["nll"] == pytest.approx([1.9, 2.0, 2.1])
    rows = 2 / 3 * 0.02  # of the leave-one-out values
    assert figures["nll_se"] == pytest.approx(math.sqrt(rows + 2 / 2))
    assert figures["kl_se"] == pytest.approx(0.03)  # no spread of trainings
    assert "crps_se" not in figures
    assert found.calibration == CalibrationCurve([0.5], [pytest.approx(0.2)])
    assert found.risk_coverage is not None
    assert found.risk_coverage.risk == [2.0, None]
    assert found.group_coverage == [0.0, 2.0]
    assert found.faults == {"stuck": {"flagged": pytest.approx(0.2), "auroc": None}}
    assert found.fit_seconds == 2.0
    assert found.warnings == ["both", "one"]
    assert found.chosen == {"likelihood": "student", "alpha": [1.0, 3.0]}


def test_a_figure_that_one_training_lacks_has_no_mean() -> None:
    figures = method_over_seeds([training(1.0), training(2.0, kl=None)], None).figures
    assert (figures["kl"], figures["kl_se"], figures["nll"]) == (None, None, 1.5)


def test_one_training_is_itself() -> None:
    one = training(1.5)
    found = method_over_seeds([one], None)
    assert found.figures["nll"] == 1.5
    assert found.figures["kl_se"] == 0.03
    assert (found.chosen, found.calibration) == (one.chosen, one.calibration)


def test_one_alpha_from_its_trainings() -> None:
    one, other = (AlphaTraining({"nll": v, "nll_se": 9.0}, [], {"nll": [v, v]}) for v in (1.0, 3.0))
    found = alpha_over_seeds(0.4, [one, other])
    assert (found.alpha, found.seeds, found.figures["nll"]) == (0.4, 2, 2.0)
    assert found.figures["nll_se"] == pytest.approx(1.0)
    assert type(found).from_json(found.to_json()) == found
    assert list(found.to_json()) == [
        "alpha", "nll", "nll_se", "warnings", "jackknife", "seeds", "by_seed",
    ]  # fmt: skip
