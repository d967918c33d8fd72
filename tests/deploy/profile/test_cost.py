"""Costs of a small network, counted by hand; timing that gives every call its turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from rdeepsense.deploy.profile import measure
from rdeepsense.deploy.profile.measure import PassPlan


@pytest.mark.parametrize(
    ("estimator", "passes", "classes", "widths", "adds", "numbers"),
    [
        # 3 inputs, 5 and 4 hidden, 2 outputs: 15 + 20 + 16 weights, 5 + 4 + 4 biases
        ("RDeepSense", 1, False, (3, 5, 4, 4), 51, 64),
        ("RDeepSense", 10, False, (3, 5, 4, 4), 510, 64),
        ("MCDrop", 3, False, (3, 5, 4, 2), 3 * 43, 54),
        ("SSP", 3, False, (3, 5, 4, 4), 3 * 51, 3 * 64),
        ("SSP", 2, True, (3, 5, 4, 2), 2 * 43, 2 * 54),
        ("RDeepSense", 1, True, (3, 5, 4, 2), 43, 54),
    ],
)
def test_counts(
    estimator: str, passes: int, classes: bool, widths: tuple[int, ...], adds: int, numbers: int
) -> None:
    plan = PassPlan.of(estimator, 3, (5, 4), 2, classes, passes)
    assert (plan.widths, plan.multiply_adds, plan.bytes) == (widths, adds, 4 * numbers)


def test_periodic_embeddings_are_counted() -> None:
    plan = PassPlan.of("SSP", 3, (5, 4), 2, False, 2)
    plan = replace(plan, embedding=(6, 2))
    # Of each input 6 products, 12 polynomials of 5 terms, 2 x 12 weights; the layer reads 9.
    assert plan.multiply_adds == 2 * (3 * (6 + 60 + 24) + 45 + 20 + 16)
    held = sum(p.numel() for p in plan.network(0).parameters()) + (4 + 1) * 2  # the head's columns
    assert plan.bytes == 4 * 2 * held


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("estimator", "classes", "parameters"),
    [("RDeepSense", False, 2), ("MCDrop", False, 1), ("RDeepSense", True, 1)],
)
def test_passes_differ_and_end_in_mean_and_variance(
    estimator: str, classes: bool, parameters: int, batched: bool
) -> None:
    before = torch.get_rng_state()
    with measure.one_thread():
        assert torch.get_num_threads() == 1
        made = measure.prediction(PassPlan.of(estimator, 3, (50,), 2, classes, 20), batched)()
    assert len(made) == parameters
    for mean, variance in made:
        assert mean.shape == variance.shape == (2,)
    assert (made[0][1] > 0).all()  # dropout was on
    assert torch.equal(torch.get_rng_state(), before)


def test_one_pass_is_deterministic_and_members_differ() -> None:
    single = measure.prediction(PassPlan.of("RDeepSense", 3, (8,), 2, False, 1))
    assert torch.equal(single().mean, single().mean)
    ensemble = measure.prediction(PassPlan.of("SSP", 3, (8,), 2, False, 4))
    assert (ensemble()[0][1] > 0).all()
    assert torch.equal(ensemble()[0][0], ensemble()[0][0])  # and without dropout


def test_rounds_are_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    now = 0.0

    def call(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            nonlocal now
            now += seconds
            made.append(name)

        return run

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    calls = {"fast": call("fast", 0.001), "slow": call("slow", 0.01)}
    times = measure.microseconds(calls, rounds=3)
    assert times == {"fast": pytest.approx(1_000), "slow": pytest.approx(10_000)}
    # warmed up by 4 calls each, then 5 fast ones and a slow one in each round
    assert made == ["fast"] * 4 + ["slow"] * 4 + (["fast"] * 5 + ["slow"]) * 3


def test_energy_is_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "METER_SECONDS", 1e-4)

    class Meter:
        name = "made up"

        def joules(self, work: Callable[[], None]) -> float:
            before = len(calls)
            work()
            return 0.002 * (len(calls) - before)

    calls: list[int] = []
    assert measure.millijoules({"one": lambda: calls.append(1)}, Meter()) == {
        "one": pytest.approx(2.0)
    }
