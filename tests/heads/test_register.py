"""A head and its distribution, defined here alone, go everywhere a built-in head goes.

The definition, from `Logistic` to `LogisticHead`, is what a user writes: three numbers of the last
layer for each output, a link that no built-in head has, and one call of `register`.
"""

from __future__ import annotations

import copy
import math
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pytest
import torch
from deploy.c_models import STRICT, run_cc
from scipy import special, stats
from torch import Tensor

import rdeepsense as rds
from rdeepsense import heads, link, metrics
from rdeepsense.deploy import load
from rdeepsense.distributions import LocationScale
from rdeepsense.errors import InputError
from rdeepsense.heads import Head
from rdeepsense.link import Column, Link, LocationWidth

UNIT_STD = math.pi / math.sqrt(3)


class Logistic(LocationScale):
    """Logistic distributions, whose std is pi / sqrt(3) times their scale."""

    def __init__(self, loc: Any, scale: Any) -> None:
        centre, width = np.broadcast_arrays(np.array(loc, float), np.array(scale, float))
        self._freeze(centre=centre.copy(), width=width.copy())

    @property
    def std(self) -> Any:
        return UNIT_STD * self.width

    def with_moments(self, mean: Any, std: Any) -> Self:
        return self._with(mean, std / UNIT_STD)

    def _with(self, centre: Any, width: Any) -> Self:
        return type(self)(centre, width)

    def _log_density(self, z: Any) -> Any:
        return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))

    def _cdf(self, z: Any) -> Any:
        return special.expit(z)

    def _quantile(self, q: Any) -> Any:
        return special.logit(q)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return rng.logistic(size=shape)

    def _entropy(self) -> float:
        return 2.0

    def _distance(self, z: Any) -> Any:
        return np.abs(z) + 2 * np.log1p(np.exp(-np.abs(z)))

    def _self_distance(self) -> float:
        return 2.0


class LogisticParams(NamedTuple):
    loc: Tensor
    scale: Tensor

    def nll(self, y: Tensor) -> Tensor:
        z = ((y - self.loc) / self.scale).abs()
        return self.scale.log() + z + 2 * torch.log1p((-z).exp())

    def error(self, y: Tensor) -> Tensor:
        return (y - self.loc).abs()

    def spread(self) -> Tensor:
        return self.scale**2

    def information(self) -> Tensor:
        return 1 / (3 * self.scale**2)

    def numpy(self) -> Logistic:
        return Logistic(*(t.detach().cpu().double().numpy() for t in self))


class LogisticHead(Head):
    """Columns [loc..., a..., b...] -> Logistic(loc, sqrt(e^a + b^2 + floor))."""

    link: ClassVar[Link] = LocationWidth(
        Column(0), link.sqrt(link.add(link.add(link.exp(Column(1)), link.square(Column(2))), 1e-4))
    )
    start: ClassVar[tuple[float, ...]] = (-1.0, 0.1)
    heavy_tailed: ClassVar[bool] = True
    automatic: ClassVar[bool] = True

    def forward(self, raw: Tensor) -> LogisticParams:
        loc, a, b = raw.split(self.outputs, dim=-1)
        return LogisticParams(loc, (a.exp() + b**2 + 1e-4).sqrt())

    def unit(self) -> Logistic:
        return Logistic(np.zeros(self.outputs), 1.0)


# -- the definition ends here -----------------------------------------------------------------

CHECKED = ("model.c", "weights.c", "selftest.c")
SMALL: dict[str, Any] = {"hidden": (16, 8), "random_state": 0, "verbose": False, "device": "cpu"}


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, the scale of the noise at them, and targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1_200, 3))
    scale = 0.05 + 0.3 * special.expit(2 * X[:, 1])
    return X, scale, 20 + 5 * (np.sin(X[:, 0]) + scale * rng.logistic(size=1_200))


X, SCALE, Y = table()


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    heads.register("logistic", LogisticHead)
    yield
    heads.unregister("logistic")


@pytest.fixture(scope="module")
def model(registered: None) -> rds.RDeepSenseRegressor:
    return rds.RDeepSenseRegressor(likelihood="logistic", **SMALL, effort="quick").fit(X, Y)


def test_the_distribution_is_scipys() -> None:
    dist, y = Logistic([0.5, -1.0], [2.0, 0.3]), np.array([1.0, 4.0])
    peer = stats.logistic([0.5, -1.0], [2.0, 0.3])
    np.testing.assert_allclose(dist.log_prob(y), peer.logpdf(y))
    np.testing.assert_allclose(dist.std, peer.std())
    np.testing.assert_allclose(dist.quantile(0.1), peer.ppf(0.1))


@pytest.mark.slow
def test_it_learns_and_is_calibrated(model: rds.RDeepSenseRegressor) -> None:
    dist = model.predict_dist(X)
    assert isinstance(dist, Logistic)
    assert metrics.deviation_area(dist, Y) < 0.05
    assert np.corrcoef(np.log(dist.std), np.log(SCALE))[0, 1] > 0.8
    isotonic = rds.RDeepSenseRegressor(
        likelihood="logistic", calibrate="isotonic", **SMALL, effort="quick"
    )
    low, high = isotonic.fit(X, Y).predict_interval(X, 0.8)
    assert np.mean((low <= Y) & (high >= Y)) == pytest.approx(0.8, abs=0.05)
    sampled = model.predict_dist(X[:5], samples=8)
    assert isinstance(sampled, Logistic)


def test_the_automatic_choice_tries_it() -> None:
    model = rds.RDeepSenseRegressor(
        likelihood="auto", epochs=4, **SMALL, drop_prob=0.05, alpha=0.5
    ).fit(X[:300], Y[:300])
    assert model.selection_ is not None
    tried = {trial["likelihood"] for trial in model.selection_["trials"]}
    assert tried == {"student", "gaussian", "logistic"}


def test_its_file_needs_it_registered(model: rds.RDeepSenseRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    assert rds.load(tmp_path / "m").predict_dist(X) == model.predict_dist(X)
    heads.unregister("logistic")
    try:
        with pytest.raises(rds.ModelFileError, match="likelihood = 'logistic' is unknown"):
            rds.load(tmp_path / "m")
    finally:
        heads.register("logistic", LogisticHead)


def test_laplace_widens_it_far_away(model: rds.RDeepSenseRegressor) -> None:
    far = np.full((1, 3), 30.0)
    free = copy.copy(model)  # a guard clamps these inputs and widens both distributions
    free.fitted_ = replace(model.fitted_, guard=None, unlike=None)
    std = free.epistemic_std(np.vstack([X[:200], far]))
    assert std[-1] > 5 * std[:-1].max()
    assert free.predict_dist(far, epistemic="laplace").std[0] > free.predict_dist(far).std[0]


def test_it_is_folded(model: rds.RDeepSenseRegressor, tmp_path: Path) -> None:
    rows = X[model.status(X) == rds.Status.OK]  # an export widens no row that is UNLIKE
    for epistemic in (None, "laplace"):
        rds.export(model, tmp_path / "m", epistemic=epistemic)
        found = load(tmp_path / "m")
        wanted = model.predict_dist(rows, epistemic=epistemic)
        np.testing.assert_allclose(found.predict(rows, return_std=True), (wanted.mean, wanted.std))
        low, high = found.predict_interval(rows, 0.9)
        np.testing.assert_allclose((low, high), wanted.interval(0.9), rtol=1e-9)


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_it_goes_to_c_and_onnx(model: rds.RDeepSenseRegressor, dtype: str, tmp_path: Path) -> None:
    for to in ("c99", "onnx"):
        report = rds.export(model, tmp_path / to, to=to, dtype=dtype)
        assert report.quality is not None
        assert abs(report.quality.nll_change) < (1e-5 if dtype == "float32" else 0.02)
    run_cc(tmp_path / "c99", "cc", *STRICT, "-O2", *CHECKED, "-o", "check")
    assert "passed" in subprocess.run([tmp_path / "c99" / "check"], text=True, stdout=-1).stdout


@pytest.mark.slow
def test_compiled_and_laplace_agree(model: rds.RDeepSenseRegressor, tmp_path: Path) -> None:
    rows = X[model.status(X) == rds.Status.OK]
    wanted = model.predict_dist(rows, epistemic="laplace")
    rds.export(model, tmp_path / "m", epistemic="laplace")
    found = load(tmp_path / "m", compile=True).predict(rows, return_std=True)
    np.testing.assert_allclose(found, (wanted.mean, wanted.std), rtol=2e-4)


def test_registering_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="'student' is StudentHead already"):
        heads.register("student", LogisticHead)
    short = type("Short", (LogisticHead,), {"start": (1.0,)})
    with pytest.raises(InputError, match="start must hold what the 2 after the first begin with"):
        heads.register("short", short)
