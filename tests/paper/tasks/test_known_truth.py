"""The test that catches almost everything: a task whose conditional distribution is known.

Each bound was met by ten correct seeds, and each breakage below is seen by one of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from rdeepsense import RDeepSenseRegressor, dropout, metrics, scoring
from rdeepsense.datasets import KnownTruth, kl_from_truth, simulate
from rdeepsense.distributions import Gaussian
from rdeepsense.errors import InputError
from rdeepsense.heads import Head
from rdeepsense.heads.gaussian import GaussianHead, GaussianParams
from rdeepsense.training import bank
from rdeepsense.training import bank as masks

TRAIN, TEST = simulate(4_000, seed=1), simulate(20_000, seed=2)


def fitted(drop_prob: float, calibrate: bool = False, **options: object) -> Gaussian:
    model = RDeepSenseRegressor(
        drop_prob=drop_prob,
        calibrate=calibrate,
        random_state=0,
        device="cpu",
        **options,
        effort="quick",
        likelihood="gaussian",
    )
    dist = model.fit(TRAIN.X, TRAIN.y).predict_dist(TEST.X)
    assert isinstance(dist, Gaussian)
    return dist


def mean_error(dist: Gaussian, task: KnownTruth) -> float:
    return float(np.sqrt(np.mean((dist.mean - task.truth.mean) ** 2)) / task.y.std())


def test_bounds_at_low_dropout() -> None:
    dist = fitted(0.02)
    log_std_error = np.log(dist.std / TEST.truth.std)
    assert kl_from_truth(TEST.truth, dist) <= 0.06
    assert metrics.deviation_area(dist, TEST.y) <= 0.03
    assert np.sqrt(np.mean(log_std_error**2)) <= 0.18
    assert mean_error(dist, TEST) <= 0.10


@pytest.mark.slow
def test_bounds_at_high_dropout() -> None:
    plain, scaled = fitted(0.2), fitted(0.2, calibrate=True)
    assert kl_from_truth(TEST.truth, plain) <= 0.20
    assert mean_error(plain, TEST) <= 0.16
    assert 0.03 <= metrics.deviation_area(plain, TEST.y, signed=True) <= 0.10
    assert abs(metrics.deviation_area(scaled, TEST.y, signed=True)) <= 0.02


def test_student_head_finds_a_gaussian_truth_too() -> None:
    model = RDeepSenseRegressor(
        drop_prob=0.02, likelihood="student", random_state=0, device="cpu", effort="quick"
    )
    dist = model.fit(TRAIN.X, TRAIN.y).predict_dist(TEST.X)
    assert metrics.nll(dist, TEST.y) - metrics.nll(TEST.truth, TEST.y) <= 0.07
    assert metrics.deviation_area(dist, TEST.y) <= 0.03


def test_the_truth_itself_scores_as_a_perfect_model() -> None:
    assert metrics.deviation_area(TEST.truth, TEST.y) <= 0.008
    assert abs(metrics.nll(TEST.truth, TEST.y) - TEST.truth.entropy().mean()) <= 0.02


def test_kl_of_two_gaussians_by_hand() -> None:
    # KL(N(0,1) || N(1,2)) = log 2 + (1 + 1) / 8 - 1/2
    assert kl_from_truth(Gaussian([0.0], [1.0]), Gaussian([1.0], [2.0])) == pytest.approx(
        np.log(2) + 2 / 8 - 0.5
    )


def test_simulate_is_seeded_and_refuses_no_rows() -> None:
    assert np.array_equal(simulate(5, 3).y, simulate(5, 3).y)
    with pytest.raises(InputError, match="rows = 0"):
        simulate(0, 3)


def variance_taken_for_std(patch: pytest.MonkeyPatch) -> None:
    def numpy(self: GaussianParams) -> Gaussian:
        mean, var = (t.detach().double().numpy() for t in self)
        return Gaussian(mean, var)

    patch.setattr(GaussianParams, "numpy", numpy)


def one_half_missing(patch: pytest.MonkeyPatch) -> None:
    def nll(self: GaussianParams, y: Tensor) -> Tensor:
        return 0.5 * torch.log(self.var) + (y - self.mean) ** 2 / self.var

    patch.setattr(GaussianParams, "nll", nll)
    patch.setattr(GaussianHead, "gradient", Head.gradient)  # so that autograd differentiates it


def alpha_of_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scoring, "check_alpha", lambda _: 1.0)


def dropout_on_at_test(patch: pytest.MonkeyPatch) -> None:
    forward = dropout.StochasticNetwork.forward

    def stochastic(self: dropout.StochasticNetwork, x: Tensor) -> object:
        with self.sampling():
            return forward(self, x)

    patch.setattr(dropout.StochasticNetwork, "forward", stochastic)


def keep_and_drop_swapped(patch: pytest.MonkeyPatch) -> None:
    drop_prob = bank._drop_prob

    def swapped(module: torch.nn.Module) -> float:
        p = drop_prob(module)
        return 1 - p if p else 0.0

    patch.setattr(bank, "_drop_prob", swapped)


def dropout_not_scaled(patch: pytest.MonkeyPatch) -> None:
    draw = masks.Masks._draw

    def zeros_and_ones(self: masks.Masks, block: int) -> None:
        draw(self, block)
        for drawn, _, _ in self._drawn:
            drawn.sign_()

    patch.setattr(masks.Masks, "_draw", zeros_and_ones)


@pytest.mark.everyday(2, "slow")
@pytest.mark.parametrize(
    ("break_it", "drop_prob", "bound"),
    [
        (variance_taken_for_std, 0.02, 0.06),
        (one_half_missing, 0.02, 0.06),
        (alpha_of_one, 0.02, 0.06),
        (dropout_on_at_test, 0.02, 0.06),
        (keep_and_drop_swapped, 0.02, 0.06),
        (dropout_not_scaled, 0.2, 0.20),
    ],
)
def test_each_breakage_is_seen(
    break_it: Callable[[pytest.MonkeyPatch], None],
    drop_prob: float,
    bound: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    dist = fitted(drop_prob)
    assert kl_from_truth(TEST.truth, dist) > bound
