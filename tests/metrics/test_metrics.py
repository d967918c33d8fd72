"""Metrics against hand-derived values, scikit-learn, torchmetrics and a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from sklearn import metrics as sk
from torchmetrics.classification import MulticlassCalibrationError
from torchmetrics.functional.regression import continuous_ranked_probability_score

from rdeepsense import metrics
from rdeepsense.distributions import Categorical, Gaussian, Mixture, StudentT
from rdeepsense.errors import InputError

quick = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 200)

REGRESSION = [
    metrics.nll_paper,
    metrics.crps,
    metrics.mae,
    metrics.rmse,
    metrics.deviation_area,
    metrics.calibration_curve,
    metrics.sharpness,
    lambda dist, y: metrics.coverage(dist, y, 0.9),
    lambda dist, y: metrics.interval_score(dist, y, 0.9),
]
CLASSIFICATION = [metrics.accuracy, metrics.f1, metrics.brier, metrics.ece, metrics.mefp]


def random_regression(seed: int, n: int) -> tuple[Gaussian, np.ndarray]:
    rng = np.random.default_rng(seed)
    return Gaussian(rng.normal(0, 5, (n, 2)), rng.uniform(0.1, 4, (n, 2))), rng.normal(0, 5, (n, 2))


def random_classes(seed: int, n: int, classes: int) -> tuple[Categorical, np.ndarray]:
    rng = np.random.default_rng(seed)
    return Categorical(rng.dirichlet(np.full(classes, 0.5), n)), rng.integers(classes, size=n)


def known_truth(n: int = 20_000) -> tuple[Gaussian, np.ndarray]:
    """Heteroscedastic data and the distribution it came from."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, n)
    truth = Gaussian(50 + 20 * np.sin(1.5 * x), 2 + 10 / (1 + np.exp(-2 * x)))
    return truth, truth.sample(1, rng)[0]


class TestOnePoint:
    """Gaussian(1, 2) and y = 4: z = 1.5."""

    dist, y = Gaussian([1.0], [2.0]), [4.0]

    def test_likelihood(self):
        by_hand = 0.5 * 1.5**2 + math.log(2)
        assert metrics.nll(self.dist, self.y) == pytest.approx(
            by_hand + 0.5 * math.log(2 * math.pi)
        )
        assert metrics.nll_paper(self.dist, self.y) == pytest.approx(by_hand)

    def test_errors(self):
        assert metrics.mae(self.dist, self.y) == 3
        assert metrics.rmse(self.dist, self.y) == 3
        assert metrics.rmse(Gaussian([0.0, 0.0], 1.0), [3.0, 4.0]) == pytest.approx(math.sqrt(12.5))
        assert metrics.sharpness(self.dist) == 2
        assert metrics.sharpness(self.dist, self.y) == 2

    def test_coverage(self):
        # P(|Z| <= 1.5) = 0.8664: outside the 85 % interval, inside the 90 % interval.
        assert metrics.coverage(self.dist, self.y, 0.85) == 0
        assert metrics.coverage(self.dist, self.y, 0.9) == 1
        levels, observed = metrics.calibration_curve(self.dist, self.y)
        assert tuple(levels) == metrics.LEVELS
        np.testing.assert_array_equal(observed, [0] * 9 + [1] * 4)

    def test_interval_score(self):
        # The 50 % interval is 1 +- 2 * 0.67449.
        half = 2 * 0.6744897501960817
        by_hand = 2 * half + 2 / 0.5 * (3 - half)
        assert metrics.interval_score(self.dist, self.y, 0.5) == pytest.approx(by_hand)
        inside = metrics.interval_score(self.dist, [1.0], 0.5)
        assert inside == pytest.approx(2 * half)

    def test_classification(self):
        dist, y = Categorical([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]]), [0, 2]
        assert metrics.accuracy(dist, y) == 0.5
        assert metrics.nll(dist, y) == pytest.approx(-(math.log(0.7) + math.log(0.1)) / 2)
        assert metrics.brier(dist, y) == pytest.approx(
            (0.09 + 0.04 + 0.01 + 0.09 + 0.36 + 0.81) / 2
        )
        assert metrics.f1(dist, y) == pytest.approx(1 / 2)  # class 1, of no row, is not judged
        assert metrics.ece(dist, y) == pytest.approx((0.3 + 0.6) / 2)
        by_hand = -sum(p * math.log(p) for p in (0.3, 0.6, 0.1))
        assert metrics.mefp(dist, y) == pytest.approx(by_hand)

    @pytest.mark.filterwarnings("error")
    def test_mefp_without_false_predictions(self):
        assert math.isnan(metrics.mefp(Categorical([[0.7, 0.3]]), [0]))

    def test_mefp_rewards_uniform_guesses(self):
        assert metrics.mefp(Categorical(np.full((4, 5), 0.2)), [1, 2, 3, 4]) == pytest.approx(
            math.log(5)
        )


class TestDeviationArea:
    def test_never_covered_and_always_covered(self):
        dist = Gaussian(np.zeros(10), 1.0)
        far, centre = np.full(10, 100.0), np.zeros(10)
        # All observed 0 (or 1): a triangle of 1/2, less (or more) what the last (first) level cuts.
        assert metrics.deviation_area(dist, far) == pytest.approx(0.999 / 2)
        assert metrics.deviation_area(dist, far, signed=True) == pytest.approx(-0.999 / 2)
        assert metrics.deviation_area(dist, centre) == pytest.approx(0.9 / 2)
        assert metrics.deviation_area(dist, centre, signed=True) == pytest.approx(0.9 / 2)

    def test_perfect_curve_has_no_area(self):
        # One value in the middle of each thousandth puts the curve on the diagonal.
        levels = (np.arange(1000) + 0.5) / 1000
        dist = Gaussian(np.zeros(1000), 1.0)
        y = dist.quantile((1 + levels) / 2)
        assert metrics.deviation_area(dist, y) == pytest.approx(0, abs=1e-12)

    def test_crossing_between_levels_is_split_exactly(self):
        # One value with level 0.9 jumps from 0 to 1 between 0.85 and 0.95: gaps -0.85, +0.05.
        dist = Gaussian([0.0], 1.0)
        y = dist.quantile(0.95)
        before, across = 0.85**2 / 2, 0.1 * (0.85**2 + 0.05**2) / (2 * 0.9)
        after = 0.05**2 / 2
        assert metrics.deviation_area(dist, y) == pytest.approx(before + across + after)
        signed = -before + 0.1 * (-0.85 + 0.05) / 2 + after
        assert metrics.deviation_area(dist, y, signed=True) == pytest.approx(signed)

    @quick
    @given(seeds, st.integers(1, 60))
    def test_is_the_integral_of_the_straight_curve(self, seed, n):
        dist, y = random_regression(seed, n)
        levels, observed = metrics.calibration_curve(dist, y)
        fine = np.linspace(0, 1, 200_001)
        gap = np.interp(fine, [0, *levels, 1], [0, *observed, 1]) - fine
        area = metrics.deviation_area(dist, y)
        assert area == pytest.approx(trapezoid(abs(gap), fine), abs=1e-5)
        assert metrics.deviation_area(dist, y, signed=True) == pytest.approx(
            trapezoid(gap, fine), abs=1e-5
        )
        assert 0 <= area <= 0.5

    @quick
    @given(seeds, st.floats(0.05, 0.999))
    def test_coverage_is_that_of_the_interval(self, seed, level):
        rng = np.random.default_rng(seed)
        y = rng.normal(0, 2, 50)
        for dist in (
            Gaussian(rng.normal(size=50), 1.0),
            StudentT(rng.normal(size=50), 1.0, 3.0),
            Mixture([Gaussian(rng.normal(size=50), 1.0), StudentT(np.ones(50), 0.5, 4.0)]),
        ):
            low, high = dist.interval(level)
            assert metrics.coverage(dist, y, level) == np.mean((low <= y) & (y <= high))

    def test_intervals_hold_their_ends(self):
        for dist in (Gaussian([1.0], 2.0), StudentT([1.0], 2.0, 3.0)):
            assert metrics.coverage(dist, [1.0], 0.0) == 1
            assert metrics.coverage(dist, [1e300], 1.0) == 1

    def test_both_tails_keep_their_digits(self):
        dist, level = Gaussian([0.0, 0.0], 1.0), 1 - 1e-13
        for z, inside in ((7.43, 1.0), (7.45, 0.0)):
            assert metrics.coverage(dist, [z, -z], level) == inside

    @pytest.mark.parametrize(
        ("n", "floor"), [(31, 0.053), (51, 0.042), (103, 0.030), (160, 0.022), (900, 0.010)]
    )
    def test_floor_is_what_was_measured(self, n, floor):
        assert metrics.deviation_floor(n) == pytest.approx(floor, rel=0.06)

    def test_floor_shrinks_like_one_over_root_n(self):
        assert metrics.deviation_floor(10**12) * 1e6 == pytest.approx(
            metrics.deviation_floor(10**4) * 1e2, rel=0.02
        )

    def test_floor_is_the_mean_of_perfect_models(self):
        rng = np.random.default_rng(5)
        dist = Gaussian(np.zeros(40), 1.0)
        areas = [metrics.deviation_area(dist, rng.standard_normal(40)) for _ in range(2000)]
        assert metrics.deviation_floor(40) == pytest.approx(np.mean(areas), rel=0.04)


class TestKnownTruth:
    def test_oracle_is_calibrated_and_as_likely_as_its_entropy(self):
        truth, y = known_truth()
        assert metrics.deviation_area(truth, y) <= 0.008
        assert abs(metrics.nll(truth, y) - truth.entropy().mean()) <= 0.02
        assert metrics.deviation_floor(y.size) == pytest.approx(0.0021, rel=0.05)

    @pytest.mark.parametrize(("factor", "sign"), [(2.0, 1), (0.5, -1)])
    def test_sign_tells_too_wide_from_too_narrow(self, factor, sign):
        truth, y = known_truth()
        signed = metrics.deviation_area(truth.widened(factor), y, signed=True)
        assert sign * signed > 0.1
        assert metrics.deviation_area(truth.widened(factor), y) == pytest.approx(abs(signed))

    def test_marginal_prediction_games_the_deviation_area_but_not_the_likelihood(self):
        truth, y = known_truth()
        scored, others = slice(0, 2000), y[2000:3500]
        marginal = Mixture([Gaussian(np.full(2000, value), 1.5) for value in others])
        assert metrics.deviation_area(marginal, y[scored]) <= 0.025
        assert metrics.nll(marginal, y[scored]) >= metrics.nll(truth[scored], y[scored]) + 0.5
        assert metrics.sharpness(marginal) > 1.5 * metrics.sharpness(truth)

    def test_heavy_tails_need_a_student(self):
        student = StudentT(np.zeros(20_000), 1.0, 2.5)
        y = student.sample(1, 0)[0]
        gaussian = Gaussian(np.zeros(20_000), np.std(y))
        assert metrics.deviation_area(student, y) <= 0.008
        assert metrics.nll(student, y) < metrics.nll(gaussian, y) - 0.2


class TestAgainstOtherLibraries:
    @quick
    @given(seeds, sizes)
    def test_regression_errors(self, seed, n):
        dist, y = random_regression(seed, n)
        assert metrics.mae(dist, y) == pytest.approx(sk.mean_absolute_error(y, dist.mean), rel=1e-9)
        flat = (y.ravel(), dist.mean.ravel())
        assert metrics.rmse(dist, y) == pytest.approx(sk.root_mean_squared_error(*flat), rel=1e-9)

    @quick
    @given(seeds, sizes)
    def test_likelihood_of_torch(self, seed, n):
        dist, y = random_regression(seed, n)
        reference = torch.distributions.Normal(torch.tensor(dist.mean), torch.tensor(dist.std))
        expected = -reference.log_prob(torch.tensor(y)).mean().item()
        assert metrics.nll(dist, y) == pytest.approx(expected, rel=1e-9)

    @quick
    @given(seeds, sizes, st.integers(2, 12))
    def test_crps_of_an_ensemble(self, seed, n, members):
        # Gaussians of no width are the members themselves, for which torchmetrics has a formula.
        rng = np.random.default_rng(seed)
        ensemble, y = rng.normal(size=(n, members)), rng.normal(size=n)
        expected = continuous_ranked_probability_score(torch.tensor(ensemble), torch.tensor(y))
        ours = metrics.crps(Mixture([Gaussian(x, 1e-10) for x in ensemble.T]), y)
        assert ours == pytest.approx(expected.item(), rel=1e-6, abs=1e-8)

    @quick
    @given(seeds, sizes, st.integers(2, 6))
    def test_classification(self, seed, n, classes):
        dist, y = random_classes(seed, n, classes)
        labels = np.arange(classes)
        assert metrics.accuracy(dist, y) == pytest.approx(sk.accuracy_score(y, dist.mode))
        occur = np.unique(y)
        assert metrics.f1(dist, y) == pytest.approx(
            sk.f1_score(y, dist.mode, average="macro", labels=occur)
        )
        assert metrics.nll(dist, y) == pytest.approx(
            sk.log_loss(y, np.clip(dist.probs, 1e-300, 1), labels=labels), rel=1e-6
        )
        assert metrics.brier(dist, y) == pytest.approx(
            classes * sk.mean_squared_error(np.eye(classes)[y], dist.probs), rel=1e-6
        )

    @quick
    @given(seeds, sizes, st.integers(2, 6))
    def test_expected_calibration_error(self, seed, n, classes):
        dist, y = random_classes(seed, n, classes)
        oracle = MulticlassCalibrationError(num_classes=classes, n_bins=15, norm="l1")
        expected = oracle(torch.tensor(dist.probs), torch.tensor(y)).item()
        assert metrics.ece(dist, y) == pytest.approx(expected, abs=1e-6)

    def test_certain_predictions_have_a_bin_of_their_own(self):
        dist, y = Categorical([[1.0, 0.0], [0.95, 0.05]]), [1, 0]
        oracle = MulticlassCalibrationError(num_classes=2, n_bins=15, norm="l1")
        expected = oracle(torch.tensor(dist.probs), torch.tensor(y)).item()
        assert metrics.ece(dist, y) == pytest.approx(expected, abs=1e-6)
        assert expected == pytest.approx((1 + 0.05) / 2, abs=1e-6)


class TestEvaluate:
    def test_regression(self):
        dist, y = random_regression(0, 100)
        result = metrics.evaluate(dist, y)
        assert list(result) == [
            "n",
            "mae",
            "rmse",
            "nll",
            "crps",
            "deviation_area",
            "deviation_area_signed",
            "deviation_floor",
            "coverage_50",
            "coverage_80",
            "coverage_90",
            "coverage_95",
            "interval_score_90",
            "sharpness",
        ]
        assert result["n"] == 200
        for name in ("mae", "rmse", "nll", "crps", "deviation_area", "sharpness"):
            assert result[name] == getattr(metrics, name)(dist, y)
        assert result["deviation_area_signed"] == metrics.deviation_area(dist, y, signed=True)
        assert result["deviation_floor"] == metrics.deviation_floor(200)
        assert result["coverage_80"] == metrics.coverage(dist, y, 0.8)
        assert result["interval_score_90"] == metrics.interval_score(dist, y, 0.9)

    def test_classification(self):
        dist, y = random_classes(0, 100, 4)
        result = metrics.evaluate(dist, y)
        assert list(result) == ["n", "accuracy", "f1", "nll", "brier", "ece", "mefp"]
        for name in ("accuracy", "f1", "nll", "brier", "ece", "mefp"):
            assert result[name] == getattr(metrics, name)(dist, y)

    def test_mixtures_of_one_component_score_as_the_component(self):
        for dist, y in (random_regression(1, 50), random_classes(1, 50, 3)):
            assert metrics.evaluate(Mixture([dist]), y) == pytest.approx(metrics.evaluate(dist, y))

    def test_pools_outputs(self):
        dist, y = random_regression(2, 30)
        rows = metrics.evaluate(Gaussian(dist.mean.ravel(), dist.std.ravel()), y.ravel())
        assert metrics.evaluate(dist, y) == pytest.approx(rows)

    def test_per_output(self):
        dist, y = random_regression(3, 30)
        by_column = metrics.per_output(metrics.nll, dist, y)
        assert by_column.shape == (2,)
        assert by_column[1] == metrics.nll(dist[:, 1], y[:, 1])
        assert by_column.mean() == pytest.approx(metrics.nll(dist, y))
        assert metrics.per_output(metrics.mae, dist[:, 0], y[:, 0]).shape == (1,)
        cube = Gaussian(np.zeros((5, 2, 3)), 1.0)
        assert metrics.per_output(metrics.sharpness, cube, np.zeros((5, 2, 3))).shape == (2, 3)

    def test_per_output_of_classes(self):
        dist = Categorical([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]])
        np.testing.assert_array_equal(
            metrics.per_output(metrics.accuracy, dist, [[0, 0], [0, 1]]), [1, 0.5]
        )


class TestRefusals:
    @pytest.mark.parametrize(
        "metric", [*REGRESSION[:6], *REGRESSION[7:], metrics.nll, metrics.evaluate]
    )
    def test_unequal_shapes(self, metric):
        with pytest.raises(InputError, match=r"same shape; got \(3, 1\) and \(3,\)"):
            metric(Gaussian(np.zeros(3), 1.0), np.zeros((3, 1)))

    @pytest.mark.parametrize("metric", [*CLASSIFICATION, metrics.nll, metrics.evaluate])
    def test_unequal_shapes_of_classes(self, metric):
        with pytest.raises(InputError, match=r"same shape; got \(3,\) and \(2,\)"):
            metric(Categorical(np.full((2, 2), 0.5)), np.zeros(3))

    @pytest.mark.parametrize("metric", [*REGRESSION, metrics.nll, metrics.evaluate])
    def test_empty(self, metric):
        with pytest.raises(InputError, match=r"at least one entry; got shape \(0,\)"):
            metric(Gaussian(np.zeros(0), 1.0), np.zeros(0))

    @pytest.mark.parametrize("metric", [*CLASSIFICATION, metrics.nll, metrics.evaluate])
    def test_empty_classes(self, metric):
        with pytest.raises(InputError, match=r"at least one entry; got shape \(0,\)"):
            metric(Categorical(np.zeros((0, 2))), np.zeros(0))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_truth_that_is_not_finite(self, bad):
        with pytest.raises(InputError, match=rf"y must be finite; got {bad} \(1 not finite\)"):
            metrics.nll(Gaussian(np.zeros(2), 1.0), [0.0, bad])

    @pytest.mark.parametrize("metric", REGRESSION)
    def test_classes_where_numbers_are_needed(self, metric):
        with pytest.raises(InputError, match="is for regression; got Categorical"):
            metric(Categorical([[0.5, 0.5]]), [0])

    @pytest.mark.parametrize("metric", CLASSIFICATION)
    def test_numbers_where_classes_are_needed(self, metric):
        with pytest.raises(InputError, match="is for classification; got Gaussian"):
            metric(Gaussian([0.0], 1.0), [0])

    @pytest.mark.parametrize("bad", [-1, 2, 0.5])
    def test_unknown_classes(self, bad):
        for metric in CLASSIFICATION:
            with pytest.raises(InputError, match=f"class indices from 0 to 1; got {bad}"):
                metric(Categorical([[0.5, 0.5]]), [bad])

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda d: metrics.coverage(d, [0.0], 90),
                r"levels must lie between 0 and 1; got \[90",
            ),
            (lambda d: metrics.interval_score(d, [0.0], 1.0), "both excluded; got 1.0"),
            (lambda d: metrics.nll(np.zeros(1), [0.0]), "dist must be a distribution"),
            (lambda d: metrics.nll(d, ["a"]), "y must be an array of numbers"),
            (lambda d: metrics.deviation_floor(0), "n must be 1 or greater; got 0"),
            (lambda d: metrics.deviation_floor(2.5), "n must be an integer; got 2.5"),
            (lambda d: metrics.per_output(metrics.nll, d[0], 0.0), "axis of samples"),
        ],
    )
    def test_other_arguments(self, call, message):
        with pytest.raises(InputError, match=message):
            call(Gaussian([0.0], 1.0))


class TestScores:
    """A score per row: refusing by it, and telling two kinds of rows apart."""

    def test_risk_coverage_by_hand(self) -> None:
        coverage, risk = metrics.risk_coverage([3.0, 1.0, 2.0, 2.0], [8.0, 0.0, 1.0, 3.0])
        assert coverage.tolist() == [0.25, 0.75, 1.0]
        assert risk == pytest.approx([0, 4 / 3, 3])

    def test_aurc_by_hand(self) -> None:
        assert metrics.aurc([1.0, 2.0], [0.0, 1.0]) == pytest.approx((0 + 1 / 2) / 2)
        assert metrics.aurc([2.0, 1.0], [0.0, 1.0]) == pytest.approx((1 + 1 / 2) / 2)
        assert metrics.aurc([0.0, 0.0], [0.0, 1.0]) == pytest.approx(1 / 2)  # the mean of both

    @quick
    @given(seed=seeds, n=sizes)
    def test_aurc_is_least_for_the_loss_itself(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        loss, score = rng.uniform(size=n), rng.uniform(size=n)
        best, worst = metrics.aurc(loss, loss), metrics.aurc(-loss, loss)
        assert best - 1e-12 <= metrics.aurc(score, loss) <= worst + 1e-12
        assert metrics.aurc(np.zeros(n), loss) == pytest.approx(loss.mean())

    @quick
    @given(seed=seeds, n=sizes, m=sizes)
    def test_auroc_is_scikit_learns(self, seed: int, n: int, m: int) -> None:
        rng = np.random.default_rng(seed)
        inside, outside = rng.integers(0, 9, n), rng.integers(2, 12, m)  # with ties
        oracle = sk.roc_auc_score(np.r_[np.zeros(n), np.ones(m)], np.r_[inside, outside])
        assert metrics.auroc(inside, outside) == pytest.approx(oracle, abs=1e-12)

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match=r"score and loss .* got \(2,\) and \(1,\)"):
            metrics.risk_coverage([1.0, 2.0], [1.0])
        with pytest.raises(InputError, match=r"score_out must have one number .* got \(0,\)"):
            metrics.auroc([1.0], [])
        with pytest.raises(InputError, match="loss must be finite; got nan"):
            metrics.aurc([1.0], [np.nan])
