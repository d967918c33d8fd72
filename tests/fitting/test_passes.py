"""Passes: chunks change nothing, samples come from the seed, members are mixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from rdeepsense import Gaussian, InputError, Mixture
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.fitting.passes import (
    VARIANCE_FLOOR,
    Forward,
    Members,
    Sampled,
    Single,
    choose_device,
    matched,
    moments_of_values,
    moments_without_noise,
)
from rdeepsense.networks import dense

CPU = torch.device("cpu")
SCALER = Scaler(np.full(3, 5.0), np.full(3, 2.0))
X = 5 + 3 * np.sin(np.arange(300.0)).reshape(100, 3)


def network(seed: int, drop_prob: float = 0.2) -> StochasticNetwork:
    torch.manual_seed(seed)
    return convert(dense(3, (8,), 2), drop_prob=drop_prob)


def forward(chunk: int | None = None, seed: int = 0) -> Forward:
    return Forward(SCALER, CPU, seed, chunk)


def test_the_single_pass_is_the_networks_own_in_chunks_too() -> None:
    net = network(0)
    whole = Single().run([net], X, forward())
    inputs = torch.from_numpy((X - 5.0) / 2.0)
    expected = net.double().eval()(inputs).numpy()
    np.testing.assert_allclose(whole.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(whole.std, expected.std, rtol=1e-12)
    parts = Single().run([net], X, forward(chunk=30))
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)


def test_sampled_passes_are_drawn_from_the_seed_in_chunks_too() -> None:
    net, three = network(0), Sampled(3, matched)
    state = torch.get_rng_state()
    drawn = three.run([net], X, forward())
    assert torch.equal(torch.get_rng_state(), state)
    assert drawn == three.run([net], X, forward())
    assert drawn != three.run([net], X, forward(seed=1))
    still = network(0, drop_prob=0.0)
    whole, parts = (three.run([still], X, forward(chunk)) for chunk in (None, 30))
    np.testing.assert_allclose(parts.std, whole.std, rtol=1e-9)
    np.testing.assert_allclose(whole.mean, Single().run([still], X, forward()).mean, rtol=1e-12)


def test_every_sampled_pass_draws_masks_of_its_own() -> None:
    seen: list[list[AnyDistribution]] = []

    def combine(drawn: Sequence[AnyDistribution]) -> AnyDistribution:
        seen.append(list(drawn))
        return matched(drawn)

    Sampled(3, combine).run([network(0)], X, forward(chunk=150))  # 50 rows at a time
    assert [len(drawn) for drawn in seen] == [3, 3]
    first, second, third = (dist.mean for dist in seen[0])
    assert len(first) == 50
    assert not np.allclose(first, second)
    assert not np.allclose(second, third)


def test_windows_are_taken_fewer_at_a_time() -> None:
    assert forward().rows_at_once(np.zeros((2, 3))) == 8_192
    assert forward().rows_at_once(np.zeros((2, 4, 3))) == 1_024
    assert forward(chunk=7).rows_at_once(np.zeros((2, 4, 3))) == 7


def test_members_are_mixed() -> None:
    nets = [network(seed) for seed in range(3)]
    alone = [Single().run([net], X, forward()) for net in nets]
    assert Members().run(nets, X, forward()) == Mixture(alone)
    assert Members(2).run(nets, X, forward()) == Mixture(alone[:2])
    with pytest.raises(InputError, match="samples = 4, but the ensemble has 3 members"):
        Members(4).run(nets, X, forward())


def test_moments_of_values_have_a_floor() -> None:
    drawn = [Gaussian([1.0, 2.0], 1.0), Gaussian([3.0, 2.0], 1.0)]
    found = moments_of_values(drawn)
    assert found == Gaussian([2.0, 2.0], [1.0, VARIANCE_FLOOR**0.5])
    with pytest.warns(UserWarning, match="1 of 2 variances of the passes are below"):
        assert moments_without_noise(drawn) == found


def test_devices() -> None:
    assert choose_device("cpu") == CPU
    with pytest.raises(InputError, match="device = 'tpu7' is unknown; accepted: auto, cpu"):
        choose_device("tpu7")
