"""Every rule on hand-made numbers: yes, no, not decidable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rdeepsense.paper import claims
from rdeepsense.paper.claims import CLAIMS, NO, OPEN, RDS, YES, Difference, Evidence, claims_of
from rdeepsense.paper.scores import AlphaPoint, MethodResults, PredictionCost, TaskResults
from rdeepsense.paper.study import ALPHAS, METHODS, TASKS, PartSizes

# A block effect that all methods share: 50 quantiles of a Gaussian, shuffled.
BLOCKS = 0.01 * stats.norm.ppf((np.arange(50) * 7 % 50 + 0.5) / 50)


def point(
    cost: float | None = None, own: float = 0.0, trained: float = 0.0, **figures: float
) -> MethodResults:
    """Figures whose errors are shared by all methods, but for noise of size `own`.

    Three trainings differ by `trained`.
    """
    noise = own * np.random.default_rng(len(str(figures))).normal(size=50)
    dropped = {name: (value + BLOCKS + noise).tolist() for name, value in figures.items()}
    costs = None
    if cost is not None:
        costs = PredictionCost(microseconds=cost, millijoules=cost / 10, energy="estimated",
                               multiply_adds=1, bytes=1)  # fmt: skip
    by_seed = {name: [value - trained, value, value + trained] for name, value in figures.items()}
    return MethodResults(
        about="", fit_seconds=1.0, chosen=None, figures=figures, calibration=None, passes=1,
        risk_coverage=None, group_coverage=None, warnings=(), seeds=3, jackknife=dropped,
        by_seed=by_seed, cost=costs,
    )  # fmt: skip


def task_of(
    methods: dict[str, MethodResults], study: list[AlphaPoint], kind: str, floor: float = 0.01
) -> TaskResults:
    """A task with these methods and this alpha study."""
    return TaskResults(
        title="", kind=kind, simulated=True, source="", unit="", classes=(), split="",
        grouped_by="", rows=PartSizes(1, 1, 1), inputs=1, outputs=1, target=None, floor=floor,
        methods=methods, alpha_study=study, examples=None,
    )  # fmt: skip


def evidence(
    points: dict[str, MethodResults], kind: str = "regression", floor: float = 0.01
) -> Evidence:
    study = [AlphaPoint(float(name[6:]), p.figures, (), p.jackknife, 3, p.by_seed)
             for name, p in points.items() if name.startswith("alpha ")]  # fmt: skip
    methods = {name: p for name, p in points.items() if "alpha" not in name}
    return Evidence(task_of(methods, study, kind, floor))


def verdict(rule: claims.Rule, **options: Any) -> str:
    return rule(evidence(**options)).verdict


def test_signs() -> None:
    assert [Difference(x, 0.1).sign() for x in (0.2, 0.19, -0.19, -0.2)] == [1, 0, 0, -1]
    assert Difference(9.0, None).sign() == 0
    assert [Difference(x, 0.1).within(1.0) for x in (0.7, -0.7, 0.9, 1.3)] == [1, 1, 0, -1]
    assert Difference(0.1, None).within(1.0) == 0


def test_few_degrees_of_freedom_need_more_errors() -> None:
    assert Difference(1.0, 0.1, 2).slack == pytest.approx(0.43027, abs=1e-5)  # Student's t
    assert Difference(0.4, 0.1, 2).sign() == 0
    assert Difference(0.4, 0.1, 20).sign() == 1


def test_a_shared_block_effect_drops_out_of_a_difference() -> None:
    found = evidence({"a": point(nll=1.0), "b": point(nll=1.001)})
    assert found.difference("b", "a", "nll").error == pytest.approx(0, abs=1e-12)
    assert found.value("a", "nll").error == pytest.approx(49 / 50 * BLOCKS.std() * 50**0.5, rel=0.1)
    other = replace(point(nll=1.0), jackknife={})
    assert evidence({"a": point(nll=1.0), "b": other}).difference("a", "b", "nll").error is None


def test_training_noise_can_undo_a_verdict() -> None:
    points = {"a": point(nll=1.0), "b": point(nll=1.5, trained=0.1)}
    rule = claims.beats("nll", "a", ["b"])
    assert verdict(rule, points=points) == YES  # 0.5 against 4.3 * 0.1 / sqrt(3)
    points["b"] = point(nll=1.5, trained=0.3)
    assert verdict(rule, points=points) == OPEN
    found = evidence(points).difference("b", "a", "nll")
    assert found.error == pytest.approx(0.3 / 3**0.5)
    assert found.freedom == pytest.approx(2)
    # what both methods owe to the training of one model drops out
    points["a"] = point(nll=1.0, trained=0.3)
    assert verdict(rule, points=points) == YES
    points["a"] = replace(points["a"], by_seed={"nll": [1.0]})
    assert verdict(rule, points=points) == OPEN


@pytest.mark.parametrize(
    ("rivals", "expected"),
    [((2.0, 1.5), YES), ((2.0, 0.5), NO), ((2.0, 1.01), OPEN), ((0.5, 1.01), NO)],
)
def test_beats(rivals: tuple[float, ...], expected: str) -> None:
    noisy = {f"r{i}": point(own=0.005, nll=value) for i, value in enumerate(rivals)}
    rule = claims.beats("nll", "a", list(noisy))
    assert verdict(rule, points={"a": point(nll=1.0), **noisy}) == expected
    # where more is better, all is the other way round
    flipped = {f"r{i}": point(own=0.005, f1=2 - value) for i, value in enumerate(rivals)}
    rule = claims.beats("f1", "a", list(flipped))
    assert verdict(rule, points={"a": point(f1=1.0), **flipped}) == expected


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [(0.5, 1.5, YES), (0.5, 0.6, NO), (1.5, 2.0, NO), (0.5, 1.001, OPEN)],
)
def test_second_best(x: float, y: float, expected: str) -> None:
    points = {"a": point(mae=1.0), "x1": point(own=0.01, mae=3.0), "x2": point(own=0.01, mae=x),
              "y": point(own=0.01, mae=y)}  # fmt: skip
    rule = claims.second_best("mae", "a", {"X": ("x1", "x2"), "Y": ("y",)})
    assert verdict(rule, points=points) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [((3.0, 2.0, 1.0), YES), ((3.0, 1.0, 2.0), NO), ((1.0, 1.0, 1.0), OPEN), ((1.0, 2.0, 3.0), NO)],
)
def test_trend(values: tuple[float, ...], expected: str) -> None:
    points = {f"k{i}": point(own=1e-3, nll=value) for i, value in enumerate(values)}
    assert verdict(claims.trend("nll", list(points)), points=points) == expected
    turned = {f"k{i}": point(own=1e-3, nll=-value) for i, value in enumerate(values)}
    assert verdict(claims.trend("nll", list(turned), better=False), points=turned) == expected


@pytest.mark.parametrize(("last", "expected"), [(-0.1, YES), (0.3, NO), (0.1, OPEN)])
def test_falls_and_some_beats(last: float, expected: str) -> None:
    points = {
        "alpha 0": point(deviation_area_signed=0.1, deviation_area=0.1),
        "alpha 0.9": point(own=1e-3, deviation_area_signed=last, deviation_area=last),
    }
    rule = claims.falls("deviation_area_signed", "alpha 0", "alpha 0.9")
    assert verdict(rule, points=points) == expected
    rule = claims.some_beats("deviation_area", "alpha 0", ["alpha 0.9"])
    assert verdict(rule, points=points) == expected  # fmt: skip


@pytest.mark.parametrize(("other", "expected"), [(1.01, YES), (1.2, NO), (1.05, OPEN)])
def test_similar(other: float, expected: str) -> None:
    points = {"a": point(nll=1.0), "b": point(own=1e-3, nll=other)}
    assert verdict(claims.similar("nll", "a", ["b"], 0.05), points=points) == expected


@pytest.mark.parametrize(
    ("area", "narrow", "wide"),
    [(-0.2, YES, NO), (0.2, NO, YES), (0.0, OPEN, OPEN), (-0.13, OPEN, NO)],
)
def test_off_diagonal_beyond_the_floor(area: float, narrow: str, wide: str) -> None:
    points = {"a": point(deviation_area_signed=area)}
    assert verdict(claims.off_diagonal(["a"], too_wide=False), points=points) == narrow
    assert verdict(claims.off_diagonal(["a"], too_wide=True), points=points) == wide


def test_costs() -> None:
    points = {"a": point(cost=10.0), "b": point(cost=190.0), "c": point(cost=8.0)}
    assert verdict(claims.costs_times("a", "b", 20), points=points) == YES
    assert verdict(claims.costs_times("a", "b", 10), points=points) == NO
    assert verdict(claims.saves("a", ["b"], 0.9), points=points) == YES
    assert verdict(claims.saves("a", ["b", "c"], 0.9), points=points) == NO
    points["d"] = point(cost=90.0)  # saves 89 %: its time could be noise, its energy is counted
    assert verdict(claims.saves("a", ["d"], 0.9), points=points) == NO
    cost = points["d"].cost
    assert cost is not None
    points["d"] = replace(points["d"], cost=replace(cost, millijoules=10.0))
    assert verdict(claims.saves("a", ["d"], 0.9), points=points) == OPEN
    assert verdict(claims.cheapest("a", ["b"]), points=points) == YES
    assert verdict(claims.cheapest("a", ["b", "c"]), points=points) == NO
    finding = claims.saves("a", ["b"], 0.9)(evidence(points))
    assert finding.measured == "time saved: 95% of b; energy saved: 95% of b"
    assert "energy is estimated" in finding.why


def test_the_same_numbers_are_said_once() -> None:
    points = {"a": point(nll=1.0), "b": point(nll=2.0)}
    rule = claims.all_of(claims.beats("nll", "a", ["b"]), claims.similar("nll", "b", ["a"], 3.0))
    assert rule(evidence(points)).measured.count("NLL:") == 1


def test_all_parts_must_hold() -> None:
    yes, no, open_ = (claims.decided(verdict, verdict, verdict) for verdict in (YES, NO, OPEN))
    assert verdict(claims.all_of(yes, yes), points={}) == YES
    assert verdict(claims.all_of(yes, open_), points={}) == OPEN
    assert verdict(claims.all_of(open_, no), points={}) == NO


def whole(kind: str) -> TaskResults:
    """All methods and alphas alike but for RDeepSense-paper, which is better in everything."""
    good = 1 if kind == "regression" else -1
    names = (("nll", "mae", "deviation_area", "deviation_area_signed") if good == 1
             else ("nll", "accuracy", "f1", "mefp"))  # fmt: skip
    methods = {}
    for name in METHODS:
        better = name == RDS
        values = {n: 1.0 + (-0.5 if n in ("nll", "mae", "deviation_area") else 0.5) * better
                  for n in names}  # fmt: skip
        methods[name] = point(cost=10.0 if better else 100.0, own=1e-3, **values)
    study = [AlphaPoint(alpha, dict.fromkeys(names, 1.0)) for alpha in ALPHAS]
    return task_of(methods, study, kind)


def test_every_claim_gets_a_row_of_the_schema() -> None:
    tasks = {name: whole("classification" if name == "HHAR" else "regression") for name in TASKS}
    rows = claims_of(tasks)
    assert len(rows) == sum(len(claim.tasks) for claim in CLAIMS)
    assert {row.section for row in rows} == {"4.4", "4.5", "4.6"}
    assert {row.verdict for row in rows} == {YES, NO, OPEN}
    for row in rows:
        assert list(row.to_json()) == ["section", "claim", "task", "verdict", "measured", "why"]
        assert row.why
        assert not row.why.startswith("not measured"), row
    found = {(row.task, row.claim): row.verdict for row in rows}
    assert found["BPEst", "RDeepSense has the best NLL, but for RDeepSense-MC20"] == YES
    assert found["HHAR", "RDeepSense has the best accuracy, but for RDeepSense-MC20"] == YES
    assert found["HHAR", "RDeepSense's NLL is 0.161"] == OPEN
    assert found["GasSen", "MCDrop-k underestimates the uncertainty"] == NO
    assert found["BPEst", "Increasing alpha slightly increases the NLL"] == OPEN  # no errors


def test_what_was_not_run_is_not_decidable() -> None:
    task = whole("regression")
    left = {name: replace(own, cost=None) for name, own in task.methods.items() if name != "GP"}
    rows = claims_of({"BPEst": replace(task, methods=left)})
    found = {row.claim: (row.verdict, row.why) for row in rows}
    assert found["RDeepSense is better calibrated than GP"] == (OPEN, "not measured here: GP")
    costs = "RDeepSense-MC20 takes about 20 times the time and energy of RDeepSense"
    assert found[costs] == (OPEN, f"not measured here: time of {RDS}-MC20")
