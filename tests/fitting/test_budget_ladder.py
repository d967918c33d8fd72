"""The architectures within a budget, for a device of our own that counts weights."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import rdeepsense as rds
from rdeepsense.fitting.ladder import ladder_within
from rdeepsense.fitting.records import DeviceCost, Trial
from rdeepsense.fitting.search import choose_architecture
from rdeepsense.fitting.spec import DeviceBudget, FitSpec
from rdeepsense.fitting.trainer import Judgement
from rdeepsense.networks import Dense, Periodic


@dataclass(frozen=True)
class Weights:
    """A device that holds so many weights and biases."""

    most: int

    def need(
        self, architecture: Any, shape: Any, outputs: int, columns: int, encoding: Any = None
    ) -> DeviceCost:
        with torch.device("meta"):
            network = architecture.build(shape, columns, 0)
        return DeviceCost(sum(value.numel() for value in network.parameters()), 0, 0)

    def allows(self, need: DeviceCost) -> bool:
        return need.flash <= self.most

    def as_exported(self, dist: Any, X: Any, trained: Any) -> Any:
        return dist

    def words(self, need: DeviceCost) -> str:
        return f"{need.flash} weights"

    def to_json(self) -> dict[str, Any]:
        return {"most": self.most}


def spec(most: int, **changes: Any) -> FitSpec:
    model = rds.RDeepSenseRegressor(
        **{"hidden": "auto", "likelihood": "auto", "budget": Weights(most), **changes}
    )
    trained: Any = model._training()  # noqa: SLF001
    found: FitSpec = trained.args[0]
    return found


def test_a_device_of_your_own_is_a_budget() -> None:
    assert isinstance(Weights(1), DeviceBudget)


@pytest.mark.parametrize("inputs", [1, 8, 40, 100])
def test_all_fit_and_the_largest_is_near_the_limit(inputs: int) -> None:
    for most in (3_000, 12_000, 50_000, 150_000):
        found = ladder_within(spec(most), 1_000, (inputs,), 1)
        needs = [Weights(most).need(one, (inputs,), 1, 2).flash for one in found]
        assert max(needs) <= most
        assert max(needs) >= 0.3 * most
        assert len(found) == len(set(found)) <= 14
        assert any(isinstance(one, Periodic) for one in found) == (inputs <= 64)


def test_dense_layers_are_powers_of_two_and_the_widest_that_fits() -> None:
    def widths(most: int) -> list[Any]:
        found = ladder_within(spec(most), 30_000, (8,), 1)
        dense = [one.hidden for one in found if isinstance(one, Dense)]
        assert isinstance(found[0], Dense)  # the widest, which a search without time is left with
        return dense[::-1]

    pairs = [(width, width) for width in (8, 16, 32, 64, 128, 256)]
    assert widths(500) == [*pairs[:2]]
    assert widths(3_000) == [*pairs[:3], (48, 48)]
    assert widths(12_000) == [*pairs[:4], (96, 96)]
    assert widths(70_000) == pairs
    assert widths(10**7) == [*pairs, (256, 256, 256), (500, 500, 500)]


def test_embeddings_shrink_where_wide_layers_have_no_room() -> None:
    def sizes(most: int) -> set[int]:
        found = ladder_within(spec(most), 1_000, (8,), 1)
        return {one.frequencies for one in found if isinstance(one, Periodic)}

    assert sizes(10**6) == {16}
    assert sizes(10_000) == {16, 8, 4}
    assert sizes(1_500) == {8, 4}


def test_few_rows_have_one_network() -> None:
    assert ladder_within(spec(10**6), 100, (8,), 1) == (Dense((64, 64)),)
    assert ladder_within(spec(2_000), 100, (8,), 1) == (Dense((32, 32)),)


def test_what_is_too_small_is_said_before_any_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdeepsense.fitting.network_fit.choose", None)
    X = np.random.default_rng(0).normal(size=(300, 4))
    words = r"too small for Dense\(hidden=\(8, 8\)\), which needs 130 weights; no smaller network"
    with pytest.raises(rds.InputError, match=words):
        rds.RDeepSenseRegressor(hidden="auto", budget=Weights(99)).fit(X, X[:, 0])
    words = r'Dense\(hidden=\(9,\)\), which needs 65 weights; hidden="auto" chooses'
    with pytest.raises(rds.InputError, match=words):
        rds.RDeepSenseRegressor(hidden=(9,), budget=Weights(60)).fit(X, X[:, 0])


def test_what_is_no_budget() -> None:
    with pytest.raises(rds.InputError, match=r"budget = '64 kB' is no budget; accepted: None"):
        rds.RDeepSenseRegressor(budget="64 kB").fit([[1.0]] * 20, range(20))


@pytest.mark.parametrize(
    ("after_all", "chosen"),
    [((0.5, 0.4, 0.3), (16, 16)), ((0.5, 0.4, 0.6), (8, 8)), ((0.2, 0.4, 0.3), (4, 4))],
)
def test_others_may_overtake_the_leader_after_all_steps(
    monkeypatch: pytest.MonkeyPatch, after_all: tuple[float, ...], chosen: tuple[int, ...]
) -> None:
    widths = [(4, 4), (8, 8), (16, 16), (32, 32)]
    short = dict(zip(widths, (0.7, 0.5, 0.55, 0.8), strict=True))
    long = dict(zip(widths[:3], after_all, strict=True))
    asked = []

    def judged(trainer: Any, group: Any, folded: bool, whole: bool = False) -> Any:
        hidden = trainer.spec.architecture.hidden
        asked.append((hidden, whole))
        trial = Trial(group[0], (long if whole else short)[hidden], None, None, 1)
        return [Judgement(trial, None, np.zeros(3))], sum(hidden)

    monkeypatch.setattr("rdeepsense.fitting.search._judged", judged)
    trainer: Any = SimpleNamespace(
        spec=spec(10**6),
        has_time=lambda: True,
        interrupted=False,
        rows=SimpleNamespace(network_shape=(3,), encoding=None),
        target=SimpleNamespace(outputs=1),
    )
    tried = choose_architecture(trainer, [Dense(hidden) for hidden in widths], False)
    assert trainer.spec.architecture == Dense(chosen)
    assert [one.arguments["hidden"] for one in tried if one.chosen] == [list(chosen)]
    assert [one.nll for one in tried] == list(short.values())  # those of the first look
    assert asked[4:] == [((8, 8), True), ((16, 16), True), ((4, 4), True)]
