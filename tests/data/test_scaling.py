"""Scaling: numpy as the second opinion, weights, constants, gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.stream import Moments

ONES = np.ones(300)


def table(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 500 rows of three columns and the numbers of 300 of them."""
    values = rng.standard_normal((500, 3)) * [1.0, 100.0, 1e-3] + [0.0, 1e4, 5.0]
    return values, rng.permutation(500)[:300]


def test_standard_is_numpys_mean_and_std_of_those_rows(rng: np.random.Generator) -> None:
    values, index = table(rng)
    scaler = Scaler.standard(values, index, ONES, chunk=64)
    np.testing.assert_allclose(scaler.shift, values[index].mean(0))
    np.testing.assert_allclose(scaler.scale, values[index].std(0))
    scaled = scaler.gather(values, index, chunk=64).numpy()
    assert np.array_equal(scaled, scaler.gather(values, index).numpy())
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(0), 1, rtol=1e-5)


def test_weights_are_repetitions(rng: np.random.Generator) -> None:
    values, index = table(rng)
    weight = rng.integers(1, 5, 300)
    repeated = np.repeat(index, weight)
    for kind in (Scaler.standard, Scaler.robust):
        a = kind(values, index, weight.astype(float))
        b = kind(values, repeated, np.ones(len(repeated)))
        np.testing.assert_allclose(a.shift, b.shift)
        np.testing.assert_allclose(a.scale, b.scale)


def test_robust_is_median_and_quartiles_and_falls_back_to_std() -> None:
    values = np.column_stack([np.arange(101.0), np.r_[np.zeros(100), 1000.0]])
    scaler = Scaler.robust(values, np.arange(101), np.ones(101))
    assert scaler.shift.tolist() == [50.0, 0.0]
    assert scaler.scale[0] == pytest.approx(50.0, abs=1.0)
    assert scaler.scale[1] == pytest.approx(values[:, 1].std())


def test_constant_columns_and_gaps() -> None:
    values = np.column_stack([np.full(10, 1e9 / 3), np.arange(10.0)])
    values[4, 1] = np.nan
    scaler = Scaler.standard(values, np.arange(10), np.ones(10))
    assert scaler.flat == (0,)
    assert scaler.scale[0] == pytest.approx(1e5 * np.finfo(np.float32).eps * 1e9 / 3)
    assert scaler.shift[1] == pytest.approx(np.nanmean(values[:, 1]))
    assert scaler.scale[1] == pytest.approx(np.nanstd(values[:, 1]))
    scaled = scaler.transform(values)
    assert scaled[4, 1].item() == 0.0
    assert scaled[:, 0].abs().max().item() < 1e-6


@pytest.mark.parametrize("rows", [1_000, 20_000])
def test_a_constant_is_one_whatever_the_rounding_of_its_mean(
    rng: np.random.Generator, rows: int
) -> None:
    constants = np.round(rng.normal(size=200) * 10.0 ** rng.integers(0, 4, 200), 2)
    values = np.broadcast_to(constants, (rows, 200))
    weight = rng.random(rows)
    weight[0] = 0.0
    values = np.where(np.arange(rows)[:, None] > 0, values, 1e6)  # a row that does not count
    for scaler in (
        Scaler.standard(values, np.arange(rows), weight),
        Scaler.standard(values, np.arange(1, rows), np.ones(rows - 1)),
        Moments.of(values[1:]).scaler(),
    ):
        np.testing.assert_array_equal(scaler.scale >= 1.0, True)
        assert scaler.flat == tuple(range(200))
        np.testing.assert_array_equal(scaler.shift, constants)
        assert scaler.transform(constants[None].astype(np.float32)).abs().max() < 1e-5


@given(st.floats(-1e9, 1e9), st.floats(1e-18, 1e-3), st.integers(2, 400))
@example(1e9, 1e-8, 300)  # varies in float64 and is constant in float32
@example(1.0, 1e-7, 2)  # two values next to each other
@example(0.0, 1e-3, 2)
def test_passing_through_float32_moves_no_input_by_more_than_its_scale(
    centre: float, spread: float, rows: int
) -> None:
    assume(centre == 0 or abs(centre) > 1e-30)  # float32 ends before float64 does
    noise = np.random.default_rng(rows).normal(size=(rows, 1))
    values = centre + abs(centre) * spread * noise
    single = values.astype(np.float32)
    both = (
        Scaler.standard(single, np.arange(rows), np.ones(rows)),
        Moments.of(single).scaler(),
    )
    for scaler in both:
        apart = np.abs(values.astype(np.float32) - values) / scaler.scale
        assert apart.max() <= (1.0 if np.ptp(single) else abs(centre))


def test_a_target_keeps_what_float64_resolves(rng: np.random.Generator) -> None:
    values = 1e9 + rng.normal(size=(300, 1))
    index = np.arange(300)
    for kind in (Scaler.standard, Scaler.robust):
        assert kind(values, index, ONES, TARGETS).scale[0] < 2
    assert Moments.of(values).scaler(TARGETS).scale[0] < 2
    single = values.astype(np.float32)
    assert Scaler.standard(single, index, ONES).flat == (0,)
    assert Moments.of(single).scaler().flat == (0,)


@given(st.integers(-990, 990), st.integers(2, 60))
@example(-990, 2)
@example(990, 60)
def test_the_size_of_a_column_changes_nothing_but_its_scale(power: int, rows: int) -> None:
    """Powers of two multiply without rounding, so every bit of what is learnt is the same."""
    values = np.random.default_rng(rows).normal(2.0, 1.0, size=(rows, 2))
    values[0, 1] = np.nan
    index, ones = np.arange(rows), np.ones(rows)
    sized = np.ldexp(values, power)
    plain, other = (Scaler.standard(table, index, ones) for table in (values, sized))
    assert other.flat == plain.flat
    if not plain.flat:
        assert np.array_equal(other.scale, np.ldexp(plain.scale, power))
        assert np.array_equal(other.shift, np.ldexp(plain.shift, power))
        assert np.array_equal(other.transform(sized), plain.transform(values))
