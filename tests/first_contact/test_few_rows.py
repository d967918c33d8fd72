"""Fits of 12 to 100 rows state intervals and probabilities that are right on average."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense import metrics

LAWS = ("linear", "smooth", "interaction", "none")
pytestmark = pytest.mark.filterwarnings("ignore::rdeepsense.DataWarning")


@pytest.fixture
def few_rows_benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import few_rows

    return few_rows


def drawn(rng: np.random.Generator, law: str, rows: int, inputs: int, heavy: bool) -> Any:
    X = rng.normal(size=(rows, inputs))
    a, b = X[:, 0], X[:, -1]
    mean = {"linear": a, "smooth": np.sin(1.5 * a) + 0.3 * b, "interaction": a * b, "none": 0 * a}
    noise = rng.standard_t(3, rows) / 2 if heavy else rng.normal(size=rows)
    return X, mean[law] + 0.6 * noise


def coverage(
    rng: np.random.Generator, law: str, rows: int, inputs: int, effort: str, heavy: bool
) -> float:
    model = rds.RDeepSenseRegressor(effort=effort, random_state=0)
    model.fit(*drawn(rng, law, rows, inputs, heavy))
    fresh, actual = drawn(rng, law, 1_000, inputs, heavy)
    return metrics.coverage(model.predict_dist(fresh), actual, 0.9)


@pytest.mark.parametrize(("rows", "least"), [(12, 0.6), (30, 0.7)])
def test_a_first_look_at_few_rows(rng: np.random.Generator, rows: int, least: float) -> None:
    # One table's coverage has a standard deviation of 0.1 with 12 rows, and 0.05 with 30; quick
    # fits that hold out a fifth of the rows have 0.3 and 0.6.
    found = [coverage(rng, law, rows, 3, "quick", False) for law in ("linear", "smooth", "none")]
    assert least < np.mean(found) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["quick", "full"])
@pytest.mark.parametrize("rows", [12, 30, 60, 100])
def test_coverage_is_right_on_average(rng: np.random.Generator, rows: int, effort: str) -> None:
    cases = [(law, inputs, heavy) for law in LAWS for inputs in (1, 8) for heavy in (False, True)]
    found = [
        coverage(rng, law, rows, inputs, effort, heavy)
        for _ in range(2)
        for law, inputs, heavy in cases
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert 0.86 - 5 * error < np.mean(found) < 0.94 + 5 * error
    assert error < 0.025


@pytest.mark.slow
@pytest.mark.parametrize("rows", [12, 60])
def test_the_benchmark_finds_the_coverage_right(few_rows_benchmark: ModuleType, rows: int) -> None:
    found = [
        few_rows_benchmark.one(("regression", rows, inputs, noise, "quick", draw))["coverage0.9"]
        for inputs in (1, 20)
        for noise in few_rows_benchmark.NOISES
        for draw in range(10)
    ]
    low, high = few_rows_benchmark.BOUNDS
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert low - 5 * error < np.mean(found) < high + 5 * error
    assert error < 0.025


@pytest.mark.parametrize(("mean", "wrong"), [(0.88, False), (0.855, False), (0.82, True)])
def test_the_benchmark_exits_with_1_outside_of_its_bounds(
    few_rows_benchmark: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mean: float,
    wrong: bool,
) -> None:
    key = {"task": "regression", "rows": 12, "inputs": 1, "noise": "t3", "effort": "quick"}
    figures = {"coverage0.5": 0.5, "coverage0.95": 0.95, "width": 1, "nll": 1, "crps": 1}
    rest = figures | {"seconds": 1, "law": "none"}
    lines = [  # two tables: the standard error of their mean is 0.01
        json.dumps(key | rest | {"draw": draw, "coverage0.9": mean + 0.01 * (-1) ** draw})
        for draw in range(2)
    ]
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n")
    grid = "--tasks regression --draws 2 --rows 12 --inputs 1 --noises t3 --efforts quick --check"
    arguments = ["few_rows.py", "--results", str(tmp_path / "results.jsonl"), *grid.split()]
    monkeypatch.setattr("sys.argv", arguments)
    if not wrong:
        few_rows_benchmark.main()
        assert "all 1 cells are within the bounds" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit) as stop:
        few_rows_benchmark.main()
    assert stop.value.code == (
        "quick, t3, inputs 1, rows 12: coverage 0.820 ± 0.010 is outside 0.86 to 0.94"
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [12, 30, 100])
def test_stated_probabilities_are_right_on_average(rng: np.random.Generator, rows: int) -> None:
    gap = []
    for law in LAWS * 8:
        X, score = drawn(rng, law, rows, 3, False)
        fresh, actual = drawn(rng, law, 1_000, 3, False)
        limit = 0.0 if (score > 0).any() and (score < 0).any() else float(np.median(score))
        model = rds.RDeepSenseClassifier(effort="quick", random_state=0).fit(X, score > limit)
        probs = model.predict_proba(fresh)
        gap.append(probs.max(1).mean() - ((probs[:, 1] > 0.5) == (actual > limit)).mean())
    error = np.std(gap) / np.sqrt(len(gap))
    assert abs(np.mean(gap)) < 0.05 + 5 * error
    assert error < 0.03


def test_the_check_says_so(rng: np.random.Generator) -> None:
    X, y = drawn(rng, "linear", 12, 2, False)
    (found,) = rds.check(X, y)
    assert (found.code, found.severity) == ("few-rows", "warning")
    assert "12 rows are few: metrics are uncertain, and intervals of RDeepSense" in found.message
    assert "cannot be told" not in found.message
    (found,) = rds.check(X[:11], y[:11])
    assert found.message.startswith("11 rows are few")
    assert "their coverage cannot be told" in found.message
