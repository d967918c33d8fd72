"""Distributions against hand-derived values, scipy.stats, brute force and their own laws."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from rdeepsense.distributions import Categorical, Distribution, Gaussian, Mixture, StudentT
from rdeepsense.errors import InputError

quick = settings(max_examples=60, deadline=None, derandomize=True)

centres = st.floats(-1e3, 1e3)
widths = st.floats(1e-3, 1e3)
freedoms = st.floats(2.01, 1e6)
fractions = st.floats(1e-12, 1 - 1e-12)
gaussians = st.builds(Gaussian, centres, widths)
students = st.builds(StudentT, centres, widths, freedoms)
simple = gaussians | students
mixtures = st.builds(Mixture, st.lists(simple, min_size=1, max_size=4))
seeds = st.integers(0, 2**32 - 1)

EXAMPLES = {
    "gaussian": Gaussian([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[1.0, 2.0]]),
    "student": StudentT([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[1.0, 2.0]], 4.0),
    "mixture": Mixture([Gaussian(np.zeros((3, 2)), 1.0), StudentT(np.ones((3, 2)), 2.0, 3.0)]),
    "categorical": Categorical(
        np.arange(24.0).reshape(3, 2, 4) / np.c_[6, 22, 38, 54, 70, 86].reshape(3, 2, 1)
    ),
}
each_example = pytest.mark.parametrize("dist", EXAMPLES.values(), ids=EXAMPLES.keys())
each_continuous = pytest.mark.parametrize(
    "dist", [EXAMPLES[k] for k in ("gaussian", "student", "mixture")], ids=str
)


def crps_by_definition(dist, y: float) -> float:
    """Integral of (F(x) - [x >= y])^2."""
    below = integrate.quad(lambda x: dist.cdf(x) ** 2, -np.inf, y, epsabs=1e-11, limit=500)[0]
    above = integrate.quad(lambda x: (1 - dist.cdf(x)) ** 2, y, np.inf, epsabs=1e-11, limit=500)[0]
    return below + above


class TestGaussian:
    def test_one_point_by_hand(self):
        dist = Gaussian(2.0, 3.0)
        assert dist.log_prob(5.0) == pytest.approx(-0.5 - math.log(3) - 0.5 * math.log(2 * math.pi))
        assert dist.cdf(2.0) == 0.5
        assert dist.entropy() == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 9))
        assert dist.crps(2.0) == pytest.approx(
            3 * (math.sqrt(2 / math.pi) - 1 / math.sqrt(math.pi))
        )
        assert (dist.mean, dist.mode, dist.std, dist.var) == (2, 2, 3, 9)

    def test_95_percent_interval_is_1_96_std(self):
        low, high = Gaussian(1.0, 2.0).interval(0.95)
        assert (high - 1) / 2 == pytest.approx(1.959963984540054, rel=1e-14)
        assert low == pytest.approx(1 - (high - 1))

    @quick
    @given(centres, widths, st.floats(-30, 30), fractions)
    def test_agrees_with_scipy(self, mean, std, z, q):
        ours, oracle = Gaussian(mean, std), stats.norm(mean, std)
        y = mean + z * std
        assert ours.log_prob(y) == pytest.approx(oracle.logpdf(y), rel=1e-12, abs=1e-12)
        assert ours.cdf(y) == pytest.approx(oracle.cdf(y), rel=1e-12, abs=0)
        assert ours.quantile(q) == pytest.approx(oracle.ppf(q), rel=1e-12, abs=1e-12 * std)
        assert ours.entropy() == pytest.approx(oracle.entropy(), rel=1e-12, abs=1e-12)

    def test_far_tails(self):
        dist = Gaussian(0.0, 1.0)
        assert dist.log_prob(1e8) == pytest.approx(-5e15, rel=1e-15)
        assert dist.cdf(-30.0) == pytest.approx(4.906713927148187e-198, rel=1e-12)
        low, high = dist.interval(0.999999999)
        assert high == -low
        assert high == pytest.approx(6.109410204869, rel=1e-8)

    @pytest.mark.parametrize("y", [-4.0, 0.0, 0.7])
    def test_crps_is_its_definition(self, y):
        dist = Gaussian(0.5, 1.5)
        assert dist.crps(y) == pytest.approx(crps_by_definition(dist, y), rel=1e-7)


class TestStudentT:
    def test_one_point_by_hand(self):
        # With df = 3: f(0) = 2 / (pi sqrt(3)), F(sqrt 3) = 1/2 + (1/pi) (1/2 + pi/4).
        dist = StudentT(0.0, 1.0, 3.0)
        assert dist.log_prob(0.0) == pytest.approx(math.log(2 / (math.pi * math.sqrt(3))))
        assert dist.cdf(math.sqrt(3)) == pytest.approx(0.75 + 0.5 / math.pi, rel=1e-14)
        assert dist.std == pytest.approx(math.sqrt(3))
        assert StudentT(1.0, 2.0, 4.0).var == pytest.approx(4 * 4 / 2)

    @quick
    @given(centres, widths, freedoms, st.floats(-1e4, 1e4), fractions)
    def test_agrees_with_scipy(self, loc, scale, df, z, q):
        ours, oracle = StudentT(loc, scale, df), stats.t(df, loc, scale)
        y = loc + z * scale
        assert ours.log_prob(y) == pytest.approx(oracle.logpdf(y), rel=1e-8, abs=1e-8)
        assert ours.cdf(y) == pytest.approx(oracle.cdf(y), rel=1e-9, abs=1e-300)
        assert ours.quantile(q) == pytest.approx(oracle.ppf(q), rel=1e-6, abs=1e-9 * scale)
        assert ours.entropy() == pytest.approx(oracle.entropy(), rel=1e-8, abs=1e-8)

    @pytest.mark.parametrize("df", [2 + 1e-9, 2.5, 3, 4, 6, 30, 1e3, 1e6, 1e12])
    def test_quantile_keeps_relative_accuracy_in_the_tails(self, df):
        dist = StudentT(0.0, 1.0, df)
        q = np.concatenate([10.0 ** -np.arange(1, 300, 7), np.linspace(0.01, 0.5, 50)])
        np.testing.assert_allclose(dist.cdf(dist.quantile(q)), q, rtol=1e-9)
        np.testing.assert_allclose(dist.quantile(1 - q), -dist.quantile(1 - (1 - q)), atol=1e-14)

    def test_power_law_tail(self):
        # With df = 3 the tail is 2 sqrt(3) / (pi x^3) far out.
        assert StudentT(0.0, 1.0, 3.0).cdf(-1e50) == pytest.approx(
            2 * math.sqrt(3) / math.pi * 1e-150, rel=1e-12
        )

    @pytest.mark.parametrize(("df", "tolerance"), [(1e6, 1e-5), (1e12, 1e-11), (1e15, 1e-12)])
    def test_many_degrees_of_freedom_are_a_gaussian(self, df, tolerance):
        student, gaussian = StudentT(1.0, 2.0, df), Gaussian(1.0, 2.0)
        y, q = np.linspace(-5, 7, 25), np.linspace(0.01, 0.99, 25)
        for method, argument in [("log_prob", y), ("cdf", y), ("crps", y), ("quantile", q)]:
            ours, theirs = getattr(student, method)(argument), getattr(gaussian, method)(argument)
            np.testing.assert_allclose(ours, theirs, rtol=10 * tolerance, atol=tolerance)
        assert student.entropy() == pytest.approx(gaussian.entropy(), abs=tolerance)

    def test_closed_forms_join_smoothly_where_series_take_over(self):
        below, above = StudentT(0.0, 1.0, 60 - 1e-9), StudentT(0.0, 1.0, 60 + 1e-9)
        for method in ("log_prob", "crps"):
            assert getattr(below, method)(1.3) == pytest.approx(
                getattr(above, method)(1.3), rel=1e-12
            )
        assert below.entropy() == pytest.approx(above.entropy(), rel=1e-12)

    @pytest.mark.parametrize("df", [2.2, 5.0, 80.0])
    def test_crps_is_its_definition(self, df):
        dist = StudentT(0.5, 1.5, df)
        assert dist.crps(1.1) == pytest.approx(crps_by_definition(dist, 1.1), rel=1e-7)

    def test_crps_of_an_outlier_is_its_distance(self):
        assert StudentT(0.0, 1.0, 3.0).crps(1e12) == pytest.approx(1e12, rel=1e-11)


class TestContinuousLaws:
    @quick
    @given(simple | mixtures, fractions)
    def test_cdf_undoes_quantile(self, dist, q):
        assert dist.cdf(dist.quantile(q)) == pytest.approx(q, rel=1e-6)

    @quick
    @given(simple | mixtures, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
    def test_intervals_are_nested(self, dist, first, second):
        low, high = dist.interval(sorted([first, second]))
        assert low[1] <= low[0] <= high[0] <= high[1]

    @quick
    @given(simple | mixtures, st.floats(0.01, 0.99))
    def test_interval_holds_its_coverage(self, dist, coverage):
        low, high = dist.interval(coverage)
        assert dist.cdf(high) - dist.cdf(low) == pytest.approx(coverage, abs=1e-9)
        assert dist.cdf(low) == pytest.approx((1 - coverage) / 2, abs=1e-9)

    @quick
    @given(simple | mixtures, centres, st.floats(0.1, 10), st.floats(-5, 5), st.booleans())
    def test_affine(self, dist, shift, scale, z, mirrored):
        scale = -scale if mirrored else scale
        moved = dist.affine(shift, scale)
        y = dist.mean + z * dist.std
        image = shift + scale * y
        noise = 1e-9 * (1 + abs(image) + abs(shift))
        assert moved.mean == pytest.approx(shift + scale * dist.mean, abs=noise)
        assert moved.std == pytest.approx(abs(scale) * dist.std)
        assert moved.crps(image) == pytest.approx(abs(scale) * dist.crps(y), rel=1e-5, abs=noise)
        q = dist.cdf(y)
        assert moved.cdf(image) == pytest.approx(1 - q if mirrored else q, abs=1e-6)

    @quick
    @given(simple, st.floats(0.01, 100), fractions)
    def test_widened_keeps_the_centre_and_scales_the_std(self, dist, factor, q):
        wide = dist.widened(factor)
        assert wide.mean == dist.mean
        assert wide.std == pytest.approx(factor * dist.std)
        stretched = dist.mean + factor * (dist.quantile(q) - dist.mean)
        assert wide.quantile(q) == pytest.approx(
            stretched, rel=1e-9, abs=1e-12 * abs(dist.mean) * (1 + factor)
        )

    @each_continuous
    def test_ends_of_the_quantile_function(self, dist):
        assert np.all(dist.quantile(0.0) == -np.inf)
        assert np.all(dist.quantile(1.0) == np.inf)
        low, high = dist.interval(1.0)
        assert np.all(low == -np.inf)
        assert np.all(high == np.inf)
        low, high = dist.interval(0.0)
        np.testing.assert_allclose(low, high, atol=1e-12)

    @each_continuous
    def test_infinite_values(self, dist):
        assert np.all(dist.cdf(-np.inf) == 0)
        assert np.all(dist.cdf(np.inf) == 1)
        assert np.all(dist.log_prob(np.inf) == -np.inf)
        assert np.all(dist.crps(np.inf) == np.inf)

    @each_continuous
    def test_samples_follow_the_distribution(self, dist):
        draws = dist.sample(4000, np.random.default_rng(1))
        assert draws.shape == (4000, 3, 2)
        uniform = dist.cdf(draws)
        assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-3
        entries = uniform.reshape(4000, 6)
        assert abs(np.corrcoef(entries.T) - np.eye(6)).max() < 0.06

    def test_samples_follow_the_seed(self):
        dist = EXAMPLES["student"]
        np.testing.assert_array_equal(dist.sample(3, 7), dist.sample(3, np.random.default_rng(7)))

    def test_quantiles_broadcast_like_numpy(self):
        dist = Gaussian(np.zeros(3), 1.0)
        assert dist.quantile(np.full((5, 1), 0.3)).shape == (5, 3)
        assert dist.log_prob(np.zeros((5, 3))).shape == (5, 3)


class TestMixture:
    @quick
    @given(simple, st.integers(1, 5), st.floats(-8, 8), fractions)
    def test_identical_components_are_the_component(self, part, k, z, q):
        mixture = Mixture([part] * k)
        y = part.mean + z * part.std
        assert mixture.log_prob(y) == pytest.approx(part.log_prob(y), rel=1e-9, abs=1e-9)
        assert mixture.cdf(y) == pytest.approx(part.cdf(y), rel=1e-12)
        assert mixture.quantile(q) == part.quantile(q)
        assert mixture.crps(y) == pytest.approx(part.crps(y), rel=1e-6)
        assert mixture.mean == pytest.approx(part.mean, rel=1e-12)
        assert mixture.std == pytest.approx(part.std, rel=1e-12)
        assert mixture.mode == pytest.approx(part.mode)

    @quick
    @given(seeds, st.integers(1, 8))
    def test_moments_are_those_of_brute_force(self, seed, k):
        rng = np.random.default_rng(seed)
        means, stds = rng.normal(0, 3, (k, 5)), rng.uniform(0.1, 2, (k, 5))
        matched = Mixture(
            [Gaussian(m, s) for m, s in zip(means, stds, strict=True)]
        ).moment_matched()
        assert isinstance(matched, Gaussian)
        np.testing.assert_allclose(matched.mean, means.mean(0), rtol=1e-9, atol=1e-12)
        by_moments = (means**2 + stds**2).mean(0) - means.mean(0) ** 2
        np.testing.assert_allclose(matched.var, by_moments, rtol=1e-9)
        np.testing.assert_allclose(matched.var, (stds**2).mean(0) + means.var(0, ddof=0), rtol=1e-9)

    def test_variance_does_not_cancel(self):
        mixture = Mixture([Gaussian(1e8, 1e-3), Gaussian(1e8 + 1, 1e-3)])
        assert mixture.var == pytest.approx(0.25 + 1e-6, rel=1e-12)

    def test_two_separated_gaussians_by_hand(self):
        mixture = Mixture([Gaussian(-100.0, 1.0), Gaussian(100.0, 1.0)])
        assert mixture.entropy() == pytest.approx(Gaussian(0, 1).entropy() + math.log(2), rel=1e-12)
        assert mixture.log_prob(100.0) == pytest.approx(-0.5 * math.log(2 * math.pi) - math.log(2))
        assert mixture.quantile(0.75) == pytest.approx(100.0, rel=1e-12)
        # E|Y - 0| = 100, and two draws are 200 apart or from one component: 1/2 (200 + 2/sqrt pi).
        assert mixture.crps(0.0) == pytest.approx(100 - 0.25 * (200 + 2 / math.sqrt(math.pi)))

    @pytest.mark.parametrize(
        "parts",
        [
            [Gaussian(0.0, 1.0), Gaussian(1.0, 0.5), Gaussian(3.0, 2.0)],
            [StudentT(0.0, 1.0, 3.0), StudentT(2.0, 0.5, 6.0)],
            [StudentT(0.0, 1.0, 2.5), Gaussian(2.0, 0.2)],
        ],
        ids=["gaussian", "student", "both"],
    )
    def test_against_numerical_integration(self, parts):
        mixture = Mixture(parts)

        def integral(function):
            pieces = itertools.pairwise([-np.inf, -200, -5, 0, 1, 2, 3, 5, 200, np.inf])
            return sum(integrate.quad(function, a, b, epsabs=1e-12)[0] for a, b in pieces)

        def surprise(y):
            return -np.exp(mixture.log_prob(y)) * mixture.log_prob(y)

        assert integral(lambda y: np.exp(mixture.log_prob(y))) == pytest.approx(1, rel=1e-8)
        assert mixture.entropy() == pytest.approx(integral(surprise), rel=1e-7)
        assert mixture.crps(0.7) == pytest.approx(crps_by_definition(mixture, 0.7), rel=1e-6)

    def test_entropy_of_very_different_widths(self):
        # Reference: adaptive quadrature over the narrow and the wide part.
        mixture = Mixture([Gaussian(0.0, 0.05), Gaussian(0.3, 5.0)])

        def surprise(y):
            return -np.exp(mixture.log_prob(y)) * mixture.log_prob(y)

        knots = [-60, -1, -0.3, 0, 0.3, 1, 60]
        reference = sum(
            integrate.quad(surprise, a, b, epsabs=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(knots)
        )
        assert mixture.entropy() == pytest.approx(reference, abs=1e-7)

    def test_quadrature_agrees_with_the_gaussian_closed_form(self):
        # Student-t with very many degrees of freedom take the quadrature's path.
        means, stds, y = np.array([[0.0, 5.0], [1.0, 5.5]]), np.array([1.0, 3.0]), [0.3, 9.0]
        exact = Mixture([Gaussian(m, stds) for m in means]).crps(y)
        quadrature = Mixture([StudentT(m, stds, 1e12) for m in means]).crps(y)
        np.testing.assert_allclose(quadrature, exact, rtol=1e-9)

    def test_far_tails(self):
        mixture = Mixture([Gaussian(0.0, 1.0), Gaussian(1.0, 2.0)])
        assert mixture.log_prob(1e8) == pytest.approx(-0.5 * (1e8 - 1) ** 2 / 4, rel=1e-12)
        low, high = mixture.interval(0.999999999)
        assert mixture.cdf(low) == pytest.approx(5e-10, rel=1e-6)
        assert mixture.affine(0, -1).cdf(-high) == pytest.approx(5e-10, rel=1e-6)

    def test_both_ends_of_an_extreme_interval_are_equally_accurate(self):
        low, high = Mixture([Gaussian(-1.0, 1.0), Gaussian(1.0, 1.0)]).interval(1 - 1e-14)
        assert high == pytest.approx(-low, rel=1e-12)

    def test_mode_is_a_peak_no_lower_than_any_component_mode(self):
        rng = np.random.default_rng(3)
        mixture = Mixture(
            [Gaussian(rng.normal(0, 2, 20), rng.uniform(0.5, 2, 20)) for _ in range(2)]
            + [StudentT(rng.normal(0, 2, 20), rng.uniform(0.5, 2, 20), 3.0)]
        )
        peak = mixture.log_prob(mixture.mode)
        around = mixture.mode + np.linspace(-0.1, 0.1, 2001)[:, None]
        assert np.all(peak >= mixture.log_prob(around) - 1e-12)
        assert all(np.all(peak >= mixture.log_prob(part.mode)) for part in mixture.components)

    def test_mode_of_two_close_gaussians_lies_between_them(self):
        assert Mixture([Gaussian(4.0, 1.0), Gaussian(5.0, 1.0)]).mode == pytest.approx(
            4.5, abs=1e-6
        )

    def test_student_components_of_one_df_stay_student(self):
        mixture = Mixture([StudentT(0.0, 1.0, 5.0), StudentT(2.0, 3.0, 5.0)])
        matched = mixture.moment_matched()
        assert isinstance(matched, StudentT)
        assert matched.df == 5
        assert matched.mean == mixture.mean
        assert matched.var == pytest.approx(1 + 5 / 3 * (1 + 9) / 2)

    @pytest.mark.parametrize("other", [StudentT(2.0, 3.0, 6.0), Gaussian(2.0, 3.0)])
    def test_other_mixtures_are_matched_by_a_gaussian(self, other):
        mixture = Mixture([StudentT(0.0, 1.0, 5.0), other])
        assert mixture.moment_matched() == Gaussian(mixture.mean, mixture.std)

    def test_categoricals_pool_exactly(self):
        mixture = Mixture([Categorical([[0.5, 0.5, 0.0]]), Categorical([[0.1, 0.3, 0.6]])])
        pooled = Categorical([[0.3, 0.4, 0.3]])
        np.testing.assert_allclose(mixture.moment_matched().probs, pooled.probs)
        np.testing.assert_allclose(mixture.log_prob([2]), np.log([0.3]))
        np.testing.assert_allclose(mixture.var, pooled.var)
        np.testing.assert_allclose(mixture.cdf([1]), [0.7])
        np.testing.assert_allclose(mixture.entropy(), pooled.entropy())
        assert mixture.mode == 1
        assert mixture.quantile(0.5) == 1
        assert mixture.interval(0.9) == (0, 2)
        share = (mixture.sample(20_000, 0) == 2).mean()
        assert share == pytest.approx(0.3, abs=0.015)
        with pytest.raises(InputError, match="affine is defined for continuous"):
            mixture.affine(0, 1)
        with pytest.raises(InputError, match="crps is defined for continuous"):
            mixture.crps([1])


class TestCategorical:
    def test_one_point_by_hand(self):
        dist = Categorical([0.2, 0.5, 0.3])
        assert dist.shape == ()
        assert dist.mode == 1
        assert dist.log_prob(2) == pytest.approx(math.log(0.3))
        np.testing.assert_array_equal(dist.mean, [0.2, 0.5, 0.3])
        np.testing.assert_allclose(dist.var, [0.16, 0.25, 0.21])
        np.testing.assert_allclose(dist.std, np.sqrt([0.16, 0.25, 0.21]))
        np.testing.assert_allclose(dist.cdf([-1, 0, 1, 1.5, 2, 9]), [0, 0.2, 0.7, 0.7, 1, 1])
        np.testing.assert_array_equal(
            dist.quantile([0, 0.1, 0.3, 0.69, 0.9, 1]), [0, 0, 1, 1, 2, 2]
        )
        assert dist.interval(0.5) == (1, 2)
        assert dist.entropy() == pytest.approx(-sum(p * math.log(p) for p in (0.2, 0.5, 0.3)))

    def test_impossible_class(self):
        dist = Categorical([1.0, 0.0])
        assert dist.log_prob(1) == -np.inf
        assert dist.entropy() == 0
        assert np.all(dist.sample(100, 0) == 0)

    @quick
    @given(seeds, st.floats(0.05, 20))
    def test_tempering(self, seed, temperature):
        probs = np.random.default_rng(seed).dirichlet(np.ones(4), size=3)
        powers = probs ** (1 / temperature)
        tempered = Categorical(probs).tempered(temperature)
        np.testing.assert_allclose(
            tempered.probs, powers / powers.sum(-1, keepdims=True), rtol=1e-9, atol=1e-15
        )
        np.testing.assert_array_equal(tempered.mode, Categorical(probs).mode)

    def test_tempering_at_the_extremes(self):
        dist = Categorical([[0.6, 0.4, 0.0]])
        np.testing.assert_array_equal(dist.tempered(1e-300).probs, [[1, 0, 0]])
        np.testing.assert_allclose(dist.tempered(1e12).probs, [[0.5, 0.5, 0]])
        np.testing.assert_allclose(dist.tempered(1.0).probs, dist.probs)

    def test_probabilities_are_normalised(self):
        probs = np.array([0.1, 0.2, 0.7], dtype=np.float32)
        assert Categorical(probs).probs.sum() == pytest.approx(1, abs=1e-15)

    def test_samples_follow_the_probabilities(self):
        dist = Categorical([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
        draws = dist.sample(20_000, 0)
        assert draws.shape == (20_000, 2)
        shares = (draws[..., None] == np.arange(3)).mean(axis=0)
        np.testing.assert_allclose(shares, dist.probs, atol=0.015)


class TestValueObject:
    @each_example
    @pytest.mark.parametrize(
        "index",
        [0, -1, slice(1, None), (slice(None), 1), (..., 0), (0, 1), [2, 0], (None, 0)],
        ids=str,
    )
    def test_indexing_follows_the_shape(self, dist, index):
        expected = np.zeros(dist.shape)[index].shape
        assert dist[index].shape == expected
        entries = np.arange(6).reshape(3, 2)[index]
        np.testing.assert_array_equal(
            dist[index].mean, dist.mean.reshape(6, *dist.mean.shape[2:])[entries]
        )

    @each_example
    def test_boolean_masks_and_iteration(self, dist):
        mask = np.array([True, False, True])
        assert dist[mask] == dist[[0, 2]]
        assert [row.shape for row in dist] == [(2,)] * 3
        assert len(dist) == 3
        assert dist[0:0].shape == (0, 2)
        with pytest.raises(IndexError):
            dist[3]

    @each_example
    def test_equal_by_value(self, dist):
        assert dist == copy.deepcopy(dist)
        assert dist == dist[:]
        assert dist != dist[:2]
        assert dist != "something else"
        with pytest.raises(TypeError, match="unhashable"):
            hash(dist)

    def test_kinds_are_never_equal(self):
        assert Gaussian(0, 1) != StudentT(0, 1, 3)
        assert Mixture([Gaussian(0, 1)]) != Gaussian(0, 1)

    @each_example
    def test_cannot_be_changed(self, dist):
        with pytest.raises(AttributeError, match="make a new one"):
            dist.mean = 0
        for again in (dist, dist[:2], pickle.loads(pickle.dumps(dist)), copy.deepcopy(dist)):
            parts = again.components if isinstance(again, Mixture) else [again]
            for part in parts:
                with pytest.raises(ValueError, match="read-only"):
                    part.mean[0] = 0

    def test_does_not_follow_the_callers_array(self):
        mean = np.zeros(3)
        dist = Gaussian(mean, 1.0)
        mean[0] = 9
        assert dist.mean[0] == 0
        assert mean.flags.writeable

    @each_example
    def test_short_repr(self, dist):
        assert "shape=(3, 2)" in repr(dist)
        assert len(repr(dist)) < 60

    def test_single_values_have_no_length(self):
        assert Gaussian(0, 1).shape == ()
        with pytest.raises(TypeError, match="no length"):
            len(Gaussian(0, 1))

    def test_arrays_are_float64_whatever_comes_in(self):
        dist = StudentT(np.zeros(2, np.float32), 1, np.float32(3))
        assert {dist.loc.dtype, dist.scale.dtype, dist.df.dtype} == {np.dtype(np.float64)}
        assert dist.df.shape == (2,)
        assert isinstance(dist, Distribution)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0, 0), "std must be greater than 0; got 0.0"),
        (lambda: Gaussian([0, 1], [1, -2]), "std must be greater than 0; got -2.0"),
        (lambda: Gaussian(np.nan, 1), "mean must be finite; got nan"),
        (lambda: Gaussian(0, np.inf), "std must be finite; got inf"),
        (lambda: Gaussian("low", 1), "mean must be a number or an array of numbers"),
        (lambda: Gaussian([0, 1, 2], [1, 2]), r"mean \(3,\), std \(2,\)"),
        (lambda: StudentT(0, 1, 2), "df must be greater than 2 .*std is not finite.*got 2.0"),
        (lambda: StudentT(0, 0, 3), "scale must be greater than 0"),
        (lambda: Categorical(0.5), "last axis of classes"),
        (lambda: Categorical([-0.1, 1.1]), "probs must be 0 or greater; got -0.1"),
        (lambda: Categorical([[0.5, 0.4]]), "sum of probs must be 1 along the last axis; got 0.9"),
        (lambda: Mixture([]), "one or more distributions"),
        (lambda: Mixture([Gaussian(0, 1), Gaussian([0], 1)]), r"got shapes \[\(\), \(1,\)\]"),
        (
            lambda: Mixture([Gaussian(0, 1), Categorical([0.5, 0.5])]),
            "all Categorical; got Categorical and Gaussian",
        ),
        (lambda: Mixture([Mixture([Gaussian(0, 1)])]), "got Mixture"),
        (
            lambda: Mixture([Categorical([0.5, 0.5]), Categorical([0.2, 0.3, 0.5])]),
            r"got shapes \[\(2,\), \(3,\)\]",
        ),
        (lambda: Gaussian(0, 1).quantile(1.5), "q must be between 0 and 1; got 1.5"),
        (lambda: Gaussian(0, 1).interval(90), r"0 and 1 \(did you mean 0\.9\?\); got 90"),
        (lambda: Gaussian(0, 1).log_prob(np.nan), "y must be a number; got nan"),
        (lambda: Gaussian([0, 1], 1).cdf([1, 2, 3]), r"shape \(2,\); got \(3,\)"),
        (lambda: Gaussian(0, 1).affine(0, 0), "scale must be different from 0"),
        (lambda: Gaussian(0, 1).widened(-1), "factor must be greater than 0; got -1"),
        (lambda: Gaussian(0, 1).sample(0, 0), "n must be 1 or greater; got 0"),
        (lambda: Gaussian(0, 1).sample(1.5, 0), "n must be an integer; got 1.5"),
        (lambda: Gaussian(0, 1).sample(1, None), "rng must be a numpy Generator or a seed"),
        (lambda: Categorical([0.5, 0.5]).log_prob(2), "class index from 0 to 1; got 2"),
        (lambda: Categorical([0.5, 0.5]).log_prob(0.5), "class index from 0 to 1; got 0.5"),
        (lambda: Categorical([0.5, 0.5]).tempered(0), "temperature must be greater than 0"),
        (lambda: Categorical([0.5, 0.5]).crps(0), "crps is defined for continuous"),
    ],
)
def test_refusals_say_what_is_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
