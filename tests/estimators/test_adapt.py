"""`model.adapt(X, y)`: a few labels of one group, in closed form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import rdeepsense as rds
from rdeepsense import InputError, RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.adaptation.corrections import ClassPrior, Prior
from rdeepsense.datasets import simulate
from rdeepsense.fitting.adaptation import group_streams, prior_of, stream_of
from rdeepsense.fitting.passes import LastHidden

TASK = simulate(600, seed=0)
TWO = np.column_stack([TASK.y, TASK.y + TASK.X[:, 0]])
LABELS = np.array(["low", "middle", "high"])[np.digitize(TASK.y, [40.0, 60.0])]
NEW = simulate(200, seed=1)
FIXED = {"hidden": (16, 16), "epochs": 15, "random_state": 0, "device": "cpu", "effort": "quick"}


@pytest.fixture(scope="module")
def model() -> RDeepSenseRegressor:
    return RDeepSenseRegressor(**FIXED).fit(TASK.X, TASK.y)


@pytest.fixture(scope="module")
def classifier() -> RDeepSenseClassifier:
    return RDeepSenseClassifier(**FIXED).fit(TASK.X, LABELS)


def with_prior(model: Any, prior: Prior | ClassPrior) -> Any:
    """The same model as if it had been fitted with groups that ask for this prior."""
    found = clone(model).set_params(**model.get_params())
    vars(found).update(vars(model))
    found.fitted_ = rds.fitting.fitted.replace(model.fitted_, adaptation=prior)
    return found


def offset_prior(share: float = 0.5) -> Prior:
    return Prior(1e4, np.ones(1), 0.2 * np.ones(1), np.eye(1), np.array([[share]]), 9)


def test_an_offset_is_learnt_and_the_model_stays(model: RDeepSenseRegressor) -> None:
    known = with_prior(model, offset_prior())
    before = model.predict_dist(NEW.X)
    mine = known.adapt(NEW.X[:5], NEW.y[:5] + 10)
    after = mine.predict_dist(NEW.X[5:])
    assert type(mine) is RDeepSenseRegressor
    shift = after.quantile(0.5) - before[5:].quantile(0.5)
    assert 7 < shift.mean() < 12
    factor = after.std / before[5:].std
    assert (factor < 0.8).all()
    assert (factor > np.sqrt(0.5) - 1e-9).all()
    assert type(after) is type(before)
    assert known.predict_dist(NEW.X) == before
    assert mine.fitted_.correction.labels == 5
    assert (
        mine.evaluate(NEW.X[5:], NEW.y[5:] + 10)["nll"]
        < known.evaluate(NEW.X[5:], NEW.y[5:] + 10)["nll"]
    )
    low, high = mine.predict_interval(NEW.X[5:], 0.9)
    np.testing.assert_array_equal((low, high), after.interval(0.9))
    np.testing.assert_array_equal(mine.predict(NEW.X[5:]), after.mean)


def test_no_rows_give_the_model_itself(
    model: RDeepSenseRegressor, classifier: RDeepSenseClassifier
) -> None:
    for one in (model, classifier):
        same = one.adapt(np.empty((0, 4)), [])
        assert same.predict_dist(NEW.X) == one.predict_dist(NEW.X)


def test_to_adapt_twice_is_to_go_on(model: RDeepSenseRegressor) -> None:
    known = with_prior(model, offset_prior())
    y = NEW.y + 5
    at_once = known.adapt(NEW.X[:8], y[:8])
    both = known.adapt(NEW.X[:3], y[:3]).adapt(NEW.X[3:8], y[3:8])
    for name in ("mean", "std"):
        one, other = (getattr(m.predict_dist(NEW.X), name) for m in (both, at_once))
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert both.fitted_.correction.labels == 8
    assert both.fitted_.correction.source == model.fitted_.digest()


def test_without_groups_labels_shift_and_the_variance_stays(model: RDeepSenseRegressor) -> None:
    mine = model.adapt(NEW.X[:20], NEW.y[:20] + 20)
    before, after = model.predict_dist(NEW.X[20:]), mine.predict_dist(NEW.X[20:])
    np.testing.assert_allclose(after.std, before.std)
    assert mine.fitted_.adaptation.groups == 0
    assert 10 < (after.mean - before.mean).mean() < 20


def test_two_outputs_are_adapted_each() -> None:
    model = RDeepSenseRegressor(**FIXED).fit(TASK.X, TWO)
    assert model.adapt(NEW.X[:0], TWO[:0]) is model
    mine = model.adapt(NEW.X[:30], np.column_stack([NEW.y[:30] + 30, NEW.y[:30]]))
    shift = (mine.predict(NEW.X) - model.predict(NEW.X)).mean(0)
    assert shift[0] > 5
    assert abs(shift[1]) < shift[0] / 3


def test_classes_learn_what_is_called_how(classifier: RDeepSenseClassifier) -> None:
    swapped = {"low": "low", "middle": "high", "high": "middle"}
    truth = np.array(["low", "middle", "high"])[np.digitize(NEW.y, [40.0, 60.0])]
    mine_says = np.array([swapped[one] for one in truth])
    known = with_prior(classifier, ClassPrior(3.0, 5))
    mine = known.adapt(NEW.X[:60], mine_says[:60])
    rest = NEW.X[60:], mine_says[60:]
    assert mine.evaluate(*rest)["nll"] < known.evaluate(*rest)["nll"] - 0.3
    assert mine.score(*rest) > known.score(*rest)
    np.testing.assert_allclose(mine.predict_proba(NEW.X).sum(1), 1)
    assert list(mine.predict_dist(NEW.X).classes) == ["high", "low", "middle"]
    again = mine.adapt(NEW.X[60:120], mine_says[60:120])
    assert again.fitted_.correction.labels == 120


@pytest.mark.parametrize("kind", ["number", "classes"])
def test_an_adapted_model_is_kept_by_its_file(
    model: RDeepSenseRegressor, classifier: RDeepSenseClassifier, tmp_path: Path, kind: str
) -> None:
    if kind == "number":
        mine = with_prior(model, offset_prior()).adapt(NEW.X[:4], NEW.y[:4] + 3)
    else:
        mine = classifier.adapt(NEW.X[:4], LABELS[:4])
    mine.save(tmp_path / "mine")
    loaded: Any = rds.load(tmp_path / "mine")
    assert loaded.predict_dist(NEW.X) == mine.predict_dist(NEW.X)
    found, own = loaded.fitted_.correction, mine.fitted_.correction
    assert (found.labels, found.source) == (own.labels, own.source)
    more = (NEW.X[4:8], NEW.y[4:8] if kind == "number" else LABELS[4:8])
    assert loaded.adapt(*more).predict_dist(NEW.X) == mine.adapt(*more).predict_dist(NEW.X)
    prior, again = mine.fitted_.adaptation, loaded.fitted_.adaptation
    assert type(prior) is type(again)
    assert vars(again).keys() == vars(prior).keys()
    for name, value in vars(prior).items():
        np.testing.assert_array_equal(getattr(again, name), value)


@pytest.mark.parametrize("hidden", [(16, 16), (140,)])
def test_a_wide_last_layer_is_projected(hidden: tuple[int, ...], tmp_path: Path) -> None:
    model = RDeepSenseRegressor(**{**FIXED, "hidden": hidden}).fit(TASK.X, TASK.y)
    mine = model.adapt(NEW.X[:20], NEW.y[:20] + 10)
    wide = hidden[-1] > 128
    assert mine.fitted_.correction.state.weights.shape == ((65 if wide else 17), 1)
    mine.save(tmp_path / "mine")
    assert rds.load(tmp_path / "mine").predict_dist(NEW.X) == mine.predict_dist(NEW.X)
    assert 5 < (mine.predict(NEW.X[20:]) - model.predict(NEW.X[20:])).mean() < 10


@pytest.mark.parametrize("label", [1e30, -1e30])
def test_absurd_numbers_do_bounded_harm(model: RDeepSenseRegressor, label: float) -> None:
    known = with_prior(model, offset_prior())
    mine = known.adapt(NEW.X[:9], np.full(9, label))
    scale = float(model.fitted_.target_scaler.scale[0])
    shift = mine.predict(NEW.X) - model.predict(NEW.X)
    # FARTHEST sqrt(k) times the std between groups, 1, and next to nothing of other weights
    assert (np.abs(shift) <= 1.05 * 3 * 3 * scale).all()
    assert (mine.predict_dist(NEW.X).std >= np.sqrt(0.49) * model.predict_dist(NEW.X).std).all()


def test_flipped_labels_do_bounded_harm(classifier: RDeepSenseClassifier) -> None:
    """As much as the prior lets them: weights worth more rows are moved less."""
    wrong = np.roll(classifier.classes_, 1)[np.argmax(classifier.predict_proba(NEW.X[:9]), 1)]
    before = np.log(classifier.predict_proba(NEW.X))
    moved = []
    for rows in (10.0, 100.0, 1e3, 1e6):
        mine = with_prior(classifier, ClassPrior(rows, 5)).adapt(NEW.X[:9], wrong)
        moved.append(np.abs(np.log(mine.predict_proba(NEW.X)) - before).max())
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < 0.01


def test_the_guard_still_widens(model: RDeepSenseRegressor) -> None:
    mine = with_prior(model, offset_prior()).adapt(NEW.X[:5], NEW.y[:5])
    far = NEW.X[:3] + np.array([100.0, 0, 0, 0])
    assert mine.status(far).all()
    scale = model.fitted_.target_scaler.scale[0]
    assert (mine.predict_dist(far).std >= (1 - 1e-9) * model.fitted_.guard.fallback[0]).all()
    assert scale > 0


def test_bad_labels_are_refused(
    model: RDeepSenseRegressor, classifier: RDeepSenseClassifier
) -> None:
    with pytest.raises(InputError, match="y "):
        model.adapt(NEW.X[:2], [1.0, np.nan])
    with pytest.raises(InputError, match="y "):
        model.adapt(NEW.X[:2], [1.0])
    with pytest.raises(InputError, match="outputs of shape"):
        model.adapt(NEW.X[:2], np.ones((2, 3)))
    with pytest.raises(InputError, match="'huge', which the model was not fitted on"):
        classifier.adapt(NEW.X[:1], ["huge"])
    with pytest.raises(ValueError, match="NaN"):
        model.adapt(np.full((1, 4), np.nan), [1.0])
    with pytest.raises(ValueError, match="features"):
        model.adapt(np.ones((1, 3)), [1.0])


def test_what_an_adapted_model_does_not_do_is_said(model: RDeepSenseRegressor) -> None:
    mine = model.adapt(NEW.X[:3], NEW.y[:3])
    with pytest.raises(InputError, match="ask the model that it was adapted from"):
        mine.predict_dist(NEW.X, epistemic="laplace")
    with pytest.raises(InputError, match="ask the model that it was adapted from"):
        mine.epistemic_std(NEW.X)
    with pytest.raises(InputError, match="predicts in one pass"):
        mine.predict_dist(NEW.X, samples=5)


def test_methods_without_one_last_layer_say_what_can_adapt() -> None:
    fixed = {"random_state": 0, "device": "cpu"}
    small = {**fixed, "hidden": (8,), "epochs": 2}
    for model in (rds.MCDropRegressor(**small), rds.SSPRegressor(**small, members=2)):
        model.fit(TASK.X, TASK.y)
        with pytest.raises(InputError, match="accepted: RDeepSenseRegressor, RDeepSenseClass"):
            model.adapt(NEW.X[:2], NEW.y[:2])


def test_conformal_thresholds_are_left_out() -> None:
    model = RDeepSenseRegressor(**FIXED, calibrate="conformal").fit(TASK.X, TASK.y)
    mine = model.adapt(NEW.X[:3], NEW.y[:3])
    with pytest.raises(InputError, match="conformalise"):
        mine.predict_interval(NEW.X, method="conformal")
    mine.conformalise(NEW.X[3:], NEW.y[3:])
    mine.predict_interval(NEW.X, method="conformal")
    model.predict_interval(NEW.X, method="conformal")


def test_streams_of_a_fitted_model_choose_a_prior(model: RDeepSenseRegressor) -> None:
    rng = np.random.default_rng(0)
    streams = []
    for seed in range(12):
        group = simulate(20, seed=100 + seed)
        X = group.X.astype(float)
        streams.append(stream_of(model.fitted_, X, group.y + 30 * rng.normal()))
    prior = prior_of(streams)
    assert isinstance(prior, Prior)
    scale = float(model.fitted_.target_scaler.scale[0])
    assert 12 < np.sqrt(prior.between[0]) * scale < 60
    assert 0.6 < prior.shares[0, 0] <= 0.95
    assert streams[0].phi.shape == (20, 17)
    assert streams[0].information.shape == (17, 17)


def test_the_information_is_that_of_the_training_rows(model: RDeepSenseRegressor) -> None:
    """H without inputs, as if Laplace had been fitted on phi alone (and the prior)."""
    stream = stream_of(model.fitted_, TASK.X.astype(float), TASK.y)
    laplace = model.fitted_.epistemic.laplace
    whole = np.linalg.inv((laplace.root @ laplace.root.T).astype(float))
    kept = np.r_[:16, len(whole) - 1]
    np.testing.assert_allclose(stream.information, whole[np.ix_(kept, kept)], rtol=2e-2, atol=1)


def test_rows_of_several_groups_become_a_stream_each(model: RDeepSenseRegressor) -> None:
    fitted, group = model.fitted_, np.array([2, 1, 2, 1, 1])
    X, y = NEW.X[:5].astype(float), NEW.y[:5]
    layer = LastHidden.of(fitted.network, fitted.epistemic.laplace)
    found = group_streams(
        layer,
        float(fitted.training.rows),
        fitted.last_hidden(X, None),
        fitted.calibrated(X),
        y,
        group,
        fitted.target_scaler.scale,
    )
    assert [len(stream.error) for stream in found] == [3, 2]
    for stream, label in zip(found, (1, 2), strict=True):
        one = stream_of(fitted, X[group == label], y[group == label])
        for name, value in vars(one).items():
            np.testing.assert_allclose(getattr(stream, name), value, rtol=1e-12)
