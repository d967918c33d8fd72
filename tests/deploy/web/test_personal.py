"""Learning from a user's windows in the page, beside `model.adapt`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.watched import without_novelty
from deploy.web.calls import call, predicted
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.adaptation.corrections import ClassPrior, first_of_each
from rdeepsense.errors import InputError
from rdeepsense.paper.demo import cut
from rdeepsense.paper.tasks.hhar import simulate_log

pytestmark = pytest.mark.slow

TURN = 0.6  # radians: somebody who carries the phone otherwise than all who were trained on


def turned(X: NDArray[Any]) -> NDArray[Any]:
    """Windows of a phone that was rotated about its x axis."""
    c, s = np.cos(TURN), np.sin(TURN)
    rotation = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.concatenate([X[..., :3] @ rotation.T, X[..., 3:] @ rotation.T], axis=-1)


def saved(model: Any, folder: Path) -> Path:
    model.save(folder / "model.safetensors")
    return folder / "model.safetensors"


def test_three_windows_of_each_class_teach_what_they_teach_in_python(
    windows_model: Any, page_of: Callable[..., Path], node: str, tmp_path: Path
) -> None:
    user = cut(simulate_log([77], 9.0, 5))
    X, y = turned(np.asarray(user)), user.y
    # As fit chooses where groups that it left out differ a lot.
    free = without_novelty(rds.load(saved(windows_model, tmp_path)))
    free.fitted_ = replace(free.fitted_, adaptation=ClassPrior(10.0, 5))
    some = first_of_each(np.unique(y, return_inverse=True)[1], 3)
    adapted = free.adapt(X[some], y[some])
    classes = list(windows_model.classes_)
    calls: list[list[Any]] = []
    for window, label in zip(X[some], y[some], strict=True):
        calls += [["predict", window.ravel().tolist()], ["observe", str(label)]]
    taught = len(calls)
    calls += [["predict", window.ravel().tolist()] for window in X[~some]]
    folder = page_of("free windows", free, live=True)
    found = call(node, folder, calls)
    assert all(found[1:taught:2])
    probs = np.array([one["probs"] for one in found[taught:]])
    np.testing.assert_allclose(probs, adapted.predict_proba(X[~some]), atol=1e-4)
    right = [classes[k] for k in probs.argmax(1)] == y[~some]
    before = windows_model.predict(X[~some]) == y[~some]
    assert np.mean(right) > np.mean(before)
    assert np.mean(right) == np.mean(adapted.predict(X[~some]) == y[~some])
    plain = predicted(node, folder, X[:5])
    wanted = without_novelty(windows_model).predict_proba(X[:5])
    np.testing.assert_allclose([one["probs"] for one in plain], wanted, atol=1e-5)


def test_the_card_teaches_tells_the_gain_and_forgets(
    windows_model: Any, page_of: Callable[..., Path], opened: Callable[..., Any], tmp_path: Path
) -> None:
    from deploy.web.test_windows_page import DISPATCH, START

    page = opened(page_of("windows", windows_model, live=True))
    log = simulate_log([78], 24.0, 5, pause=0.0)
    sent = [[1000 * (1 + t), a, g] for t, a, g in zip(
        log["t"], np.column_stack([log[f"a{k}"] for k in "xyz"]).tolist(),
        (np.column_stack([log[f"g{k}"] for k in "xyz"]) * 180 / np.pi).tolist(), strict=True,
    )]  # fmt: skip
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.get_by_role("button", name=f"I am: {log['activity'][0]}", exact=True).click()
    page.evaluate(DISPATCH, sent[:1_150])
    page.wait_for_selector("text=/: done. Teach another/")
    assert page.locator("text=/Of 3 windows of yours/").count() == 1
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save").click()
    path = tmp_path / "personal.json"
    waiting.value.save_as(path)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=/is forgotten/")
    load = page.locator("input[aria-label=Load]")
    load.set_input_files(str(path))
    page.wait_for_selector("text=3 labelled windows were loaded.")
    (tmp_path / "other.json").write_text('{"model": "x"}')
    load.set_input_files(str(tmp_path / "other.json"))
    page.wait_for_selector("text=it was learnt by another model")


def test_windows_of_numbers_do_not_learn_in_a_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 24, 3))
    network = rds.networks.DeepSense((3,), interval=12, filters=2, hidden=3)
    model = rds.RDeepSenseRegressor(
        network=network, epochs=1, effort="quick", random_state=0, verbose=False
    ).fit(X, X.mean((1, 2)))
    with pytest.raises(InputError, match="live=True is for windows of classes, and tables of num"):
        rds.export(model, tmp_path / "page", to="web", live=True)
