"""The prior of groups that a bank left out equals that of models fitted without them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rdeepsense import ModelFileError, RDeepSenseClassifier, RDeepSenseRegressor, load
from rdeepsense.adaptation.corrections import ClassPrior, Prior
from rdeepsense.adaptation.rates import Rates
from rdeepsense.data.splits import evenly
from rdeepsense.fitting.adaptation import prior_of, stream_of
from rdeepsense.fitting.fitted import CPU
from rdeepsense.fitting.network_fit import left_out_streams
from rdeepsense.fitting.passes import Forward
from rdeepsense.modelfile import tensors as model_file

GROUP = np.repeat(np.arange(12), 20)


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(240, 3)), 3 * rng.normal(size=12)
    return X, 10 + 2 * X[:, 0] + offset[GROUP] + 0.5 * rng.normal(size=240)


X, Y = table()
FIXED = {"hidden": (8,), "epochs": 15, "random_state": 0, "device": "cpu", "effort": "quick"}


@pytest.mark.parametrize("classes", [False, True])
def test_it_is_the_prior_of_the_groups_streams(classes: bool) -> None:
    y: Any = (Y > 10).astype(int) if classes else Y
    kind = RDeepSenseClassifier if classes else RDeepSenseRegressor
    shown, hidden = GROUP < 6, GROUP >= 6
    held = (X[shown][::5], y[shown][::5])
    fitted = kind(**FIXED).fit(X[shown], y[shown], validation=held).fitted_
    fold = SimpleNamespace(
        network=fitted.network,
        trained_on=evenly(np.flatnonzero(shown)),
        dist=fitted.uncalibrated(X[hidden]),
        X=X[hidden],
        y=y[hidden],
        group=GROUP[hidden],
    )
    unit = None if classes else fitted.target_scaler.scale
    forward = Forward(fitted.inputs.scaler, CPU, 0)
    found = prior_of(left_out_streams([fold], forward, X, fitted.calibration, unit))
    wanted = prior_of([stream_of(fitted, X[g == GROUP], y[g == GROUP]) for g in range(6, 12)])
    assert type(found) is type(wanted) is (ClassPrior if classes else Prior)
    assert found.groups == wanted.groups == 6
    for name, value in vars(wanted).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-4, atol=1e-9)
    if not classes:
        assert found.between[0] * unit[0] ** 2 == pytest.approx(9, rel=0.9)


@pytest.mark.parametrize("classes", [False, True])
def test_a_fit_with_groups_chooses_and_keeps_what_it_adapts_by(
    classes: bool, tmp_path: Path
) -> None:
    y: Any = (Y > 10).astype(int) if classes else Y
    kind = RDeepSenseClassifier if classes else RDeepSenseRegressor
    model = kind(**FIXED).fit(X, y, groups=GROUP)
    fitted = model.fitted_
    assert type(fitted.adaptation) is (ClassPrior if classes else Prior)
    assert fitted.adaptation.groups == 12
    assert (fitted.rates is None) == classes
    if not classes:
        assert model.live().settings.rates == fitted.rates
        assert model.live(rates=Rates(eta=0.07)).settings.rates.eta == 0.07
        known = kind(**FIXED).fit(X, y).live().settings.rates
        assert known == Rates() != fitted.rates
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m").fitted_
    assert loaded.rates == fitted.rates
    assert loaded.adaptation.rows == fitted.adaptation.rows


@pytest.mark.parametrize(
    ("field", "value"),
    [("keep", []), ("keep", [1.0]), ("eta", 0), ("rows", "many"), ("within", 2), ("keep", 0.9)],
)
def test_a_file_cannot_bring_rates_that_no_fit_would(
    field: str, value: object, tmp_path: Path
) -> None:
    fitted = RDeepSenseRegressor(**FIXED).fit(X, Y, groups=GROUP)
    fitted.save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    header["live"][field] = value
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match=f"live.{field}"):
        load(tmp_path / "m")
