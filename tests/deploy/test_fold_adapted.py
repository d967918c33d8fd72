"""Adapted models in every format: what was learnt is in the last layer."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from deploy.c.runtime.configured import FILES, sections
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.watched import without_novelty

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates
from rdeepsense.calibration import Isotonic
from rdeepsense.deploy import load
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold_fitted, narrowing, with_adaptation_folded
from rdeepsense.deploy.quantise import as_float32
from rdeepsense.errors import InputError

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "epochs": 6,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def rows(count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)).astype(np.float32).astype(np.float64)
    return X, 20 + 3 * X[:, 0] + rng.normal(size=count)


def adapted(kind: str, **more: Any) -> Any:
    """A small model, adapted by nine labels that are quite other than those of the training."""
    (X, y), (few, truth) = rows(300, 0), rows(9, 1)
    truth = truth + 6
    own = {**SETTINGS, "hidden": (12, 10), **more}
    if kind == "classes":
        model = rds.RDeepSenseClassifier(**own).fit(X, np.digitize(y, [19, 21]))
        return model.adapt(few, np.digitize(truth, [19, 21]))
    if kind == "two":
        both = rds.RDeepSenseRegressor(**own).fit(X, np.c_[y, 100 * y])
        return both.adapt(few, np.c_[truth, 90 * truth])
    return rds.RDeepSenseRegressor(**own).fit(X, y).adapt(few, truth)


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("kind", ["one", "two", "classes"])
def test_every_format_predicts_what_the_adapted_model_does(kind: str, tmp_path: Path) -> None:
    mine = adapted(kind)
    X = rows(100, 2)[0]
    rds.export(mine, tmp_path / "m.folded")
    rds.export(mine, tmp_path / "m.onnx", to="onnx")
    report: Any = rds.export(mine, tmp_path / "c", to="c99")
    assert abs(report.quality.nll_change) < 1e-4
    forms = load(tmp_path / "m.folded"), load(tmp_path / "m.folded", compile=True)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    by_onnx = session.run(None, {"x": X.astype(np.float32)})
    if kind == "classes":
        wanted = mine.predict_proba(X)
        for found in (*(form.predict_proba(X) for form in forms), by_onnx[0]):
            assert np.abs(found - wanted).max() < 1e-5
        assert np.abs(wanted - wanted.mean(0)).max() > 0.1
        return
    mean, std = mine.predict(X, return_std=True)
    for found in (*(form.predict(X, return_std=True) for form in forms), by_onnx[:2]):
        for one, true in zip(found, (mean, std), strict=True):
            assert np.abs((one.reshape(true.shape) - true) / std).max() < 1e-5


def test_isotonic_calibration_and_projected_features(tmp_path: Path) -> None:
    mine = adapted("one", hidden=(8, 140))
    assert mine.fitted_.correction.projection is not None
    stated = np.linspace(0, 1, 7)
    mine.fitted_ = replace(mine.fitted_, calibration=Isotonic(1.1, stated, stated**1.3))
    X = rows(100, 2)[0]
    rds.export(mine, tmp_path / "m.folded")
    mean, std = mine.predict(X, return_std=True)
    found = load(tmp_path / "m.folded").predict(X, return_std=True)
    assert np.abs((found[0] - mean) / std).max() < 1e-5
    assert np.abs((found[1] - std) / std).max() < 1e-5


def test_the_model_stays_as_it_is() -> None:
    mine = adapted("one")
    before = [value.clone() for value in mine.network_.parameters()]
    plain = with_adaptation_folded(mine.fitted_)
    assert plain.correction is None
    assert mine.fitted_.correction is not None
    for value, old in zip(mine.network_.parameters(), before, strict=True):
        assert torch.equal(value, old)
    assert with_adaptation_folded(plain) is plain


def narrowed(kind: str, share: float = 0.5, **more: Any) -> Any:
    """An adapted model whose variance labels narrow, as if groups had been left out."""
    mine = adapted(kind, calibrate="scale", **more)
    known = mine.fitted_.correction
    prior = replace(known.state.prior, shares=np.full_like(known.state.prior.shares, share))
    state = replace(known.state, prior=prior)
    mine.fitted_ = replace(mine.fitted_, correction=replace(known, state=state))
    return mine


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize(
    ("kind", "share", "hidden"),
    [("two", 0.4, (12, 10)), ("one", 3.0, (9,)), ("one", 0.5, (8, 140))],
)
def test_c_narrows_predictions_as_labels_did(
    kind: str, share: float, hidden: tuple[int, ...], tmp_path: Path
) -> None:
    mine = narrowed(kind, share, hidden=hidden)
    plain = with_adaptation_folded(mine.fitted_)
    report: Any = rds.export(mine, tmp_path / "c", to="c99")
    assert abs(report.quality.nll_change) < 1e-4
    folded = replace(fold_fitted(plain), narrowing=narrowing(mine.fitted_, "float32", False))
    source = Source(folded, as_float32(folded))
    X = rows(100, 2)[0]
    X[-1] = 30.0  # the guard widens what was narrowed
    mean, std = (part.reshape(100, -1) for part in mine.predict(X, return_std=True))
    built = library(write(source, tmp_path / "built"), COMPILERS[0], "-O2")
    status, found = predict(built, source, X)
    assert status[-1] == 2
    assert np.abs((found - np.array([mean, std])) / std).max() < 2e-5
    before = plain.distribution(X).std.reshape(100, -1)
    assert (std[:-1] < 0.999 * before[:-1]).any()
    if share == 3.0:
        assert np.isclose(std[:-1] / before[:-1], np.sqrt(0.05)).any()
    for name, text in sections(source, X[:8]).items():
        (tmp_path / name).write_text(text)
    run_cc(tmp_path, COMPILERS[-1], *STRICT, "-Wundef", "-I.", *FILES, "-o", "as_it_lies")
    run_cc(tmp_path, tmp_path / "as_it_lies")
    command = ["gcc", "-std=c99", "-O2", "selftest.c", "model.c", "weights.c", "-o", "selftest"]
    subprocess.run(command, cwd=tmp_path / "c", check=True)
    subprocess.run(["./selftest"], cwd=tmp_path / "c", check=True, capture_output=True)


def test_a_variance_that_labels_narrow_is_refused_elsewhere(tmp_path: Path) -> None:
    mine = narrowed("one")
    for options, said in [({"dtype": "int8"}, "float32"), ({"live": True}, "live=True")]:
        with pytest.raises(InputError, match=said):
            rds.export(mine, tmp_path / "c", to="c99", **options)
    for to in ("folded", "onnx"):
        with pytest.raises(InputError, match="an adapted model cannot be exported"):
            rds.export(mine, tmp_path / to, to=to)
        assert not (tmp_path / to).exists()
    with pytest.raises(InputError, match="that of the frozen model"):
        rds.export(adapted("one"), tmp_path / "c", to="c99", epistemic="laplace")


def of_groups() -> Any:
    """A model of groups that each have an offset of their own."""
    X, y = rows(400, 0)
    group = np.arange(400) % 10
    y = y + 3 * np.random.default_rng(3).normal(size=10)[group]
    own = {**SETTINGS, "hidden": (12,), "calibrate": "scale"}
    return rds.RDeepSenseRegressor(**own).fit(X, y, groups=group)


def test_a_model_of_groups_is_narrowed_in_c_by_what_it_chose(tmp_path: Path) -> None:
    model = of_groups()
    few, truth = rows(5, 1)
    mine = without_novelty(model.adapt(few, truth + 6))
    X = rows(100, 2)[0]
    mean, std = mine.predict(X, return_std=True)
    assert (std < 0.9 * model.predict(X, return_std=True)[1]).all()
    report: Any = rds.export(mine, tmp_path / "c", to="c99")
    assert abs(report.quality.nll_change) < 1e-4
    folded = replace(
        fold_fitted(with_adaptation_folded(mine.fitted_)),
        narrowing=narrowing(mine.fitted_, "float32", False),
    )
    source = Source(folded, as_float32(folded))
    found = predict(library(write(source, tmp_path / "b"), COMPILERS[0], "-O2"), source, X)[1]
    assert np.abs((found[:, :, 0] - np.array([mean, std])) / std).max() < 2e-5


@pytest.mark.compilers
def test_c_learns_on_by_what_the_fit_chose(tmp_path: Path) -> None:
    model = of_groups()
    chosen = model.fitted_.rates
    assert chosen not in (None, Rates())
    for name, rates in (("own", None), ("chosen", chosen), ("default", Rates())):
        rds.export(model, tmp_path / name, to="c99", live=True, rates=rates)
    own, same, other = (
        (tmp_path / name / "weights.c").read_text() for name in ("own", "chosen", "default")
    )
    assert own == same != other
