"""Names of targets and units: where they come from, what is refused, and that they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import rdeepsense as rds
from rdeepsense import InputError, RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.data.checks import KEPT, of_target
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.modelfile import tensors as model_file

TASK = simulate(60, seed=0)
PAIR = np.column_stack([TASK.y, -TASK.y])
FIT: dict[str, Any] = {"hidden": (4,), "epochs": 1, "random_state": 0, "device": "cpu"}


def regressor(X: Any = TASK.X, y: Any = TASK.y) -> RDeepSenseRegressor:
    return RDeepSenseRegressor(**FIT, effort="quick").fit(X, y)


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (pd.Series(TASK.y, name="load"), ("load",)),
        (pl.Series("load", TASK.y), ("load",)),
        (pd.DataFrame(PAIR, columns=["load", "lift"]), ("load", "lift")),
        (pl.DataFrame(PAIR, schema=["load", "lift"]), ("load", "lift")),
        (pd.Series(TASK.y), None),
        (pl.Series(TASK.y), None),
        (pd.DataFrame(PAIR), None),  # pandas counts them: 0, 1
        (TASK.y, None),
        (list(TASK.y), None),
    ],
)
def test_targets_are_called_as_in_y(y: Any, names: tuple[str, ...] | None) -> None:
    assert of_target(y) == names
    model = regressor(y=y)
    assert (model.fitted_.target.names, model.fitted_.target.units, model.fitted_.inputs.units) == (
        names,
        None,
        None,
    )


def test_the_target_of_files_has_its_column_s_name(tmp_path: Path) -> None:
    table = pl.DataFrame(TASK.X, schema=list(FEATURES)).with_columns(load=TASK.y, lift=-TASK.y)
    table.write_parquet(tmp_path / "part.parquet")
    assert regressor(tmp_path, ["lift", "load"]).fitted_.target.names == ("lift", "load")


def test_units_by_list_and_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame(TASK.X, columns=list(FEATURES))
    model = regressor(frame, pd.DataFrame(PAIR, columns=["load", "lift"]))
    assert model.describe(target_units=["N", "µm"], feature_units={"x2": "°C"}) is model
    assert model.fitted_.target.units == ("N", "µm")
    assert model.fitted_.inputs.units == ("", "", "°C", "")
    model.describe(target_names=["a", "b"])
    assert model.fitted_.target.units == ("N", "µm"), "what is not named stays"
    path = tmp_path / "m"
    model.save(path)
    again = rds.load(path)
    assert again.fitted_.target == model.fitted_.target
    assert again.fitted_.inputs.units == model.fitted_.inputs.units
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert again.predict_dist(frame) == model.predict_dist(frame)
    assert not hasattr(clone(model), "fitted_")
    assert model.fit(frame, TASK.y).fitted_.target.units is None


def test_one_text_for_one_target_and_channels_of_windows() -> None:
    assert regressor().describe("load", "N").fitted_.target.units == ("N",)
    windows = np.random.default_rng(0).normal(size=(30, 8, 3))
    network = rds.networks.DeepSense(
        sensors=(2, 1), interval=4, filters=2, depth=1, hidden=2, layers=1
    )
    model = RDeepSenseRegressor(
        network=network, epochs=1, random_state=0, device="cpu", effort="quick"
    )
    model.fit(windows, TASK.y[:30]).describe(feature_units=["g", "g", "lx"])
    assert model.fitted_.inputs.units == ("g", "g", "lx")


def test_classes_have_a_name_but_no_unit() -> None:
    labels = pd.Series(np.where(TASK.y > 50, "high", "low"), name="pressure")
    model = RDeepSenseClassifier(**FIT, effort="quick").fit(TASK.X, labels)
    assert model.fitted_.target.names == ("pressure",)
    with pytest.raises(InputError, match="classes have no unit"):
        model.describe(target_units=["mmHg"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_names": ["a", "b"]}, r"target_names = \['a', 'b'\]; .* one text for each of 1"),
        ({"target_units": [3]}, r"target_units = \[3\]; accepted: one text"),
        ({"feature_units": ["V"]}, "feature_units = .* one text for each of 4"),
        ({"feature_units": {"x0": "V"}}, "no names here; give a list of 4"),
        ({"target_names": "y", "target_units": {"z": "V"}}, "target_units names 'z'; known: y"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        regressor().describe(**given)


def test_a_file_of_before_names_were_kept_loads(tmp_path: Path) -> None:
    path = tmp_path / "m"
    model = regressor(y=pd.Series(TASK.y, name="load")).describe(target_units="N")
    model.save(path)
    header, tensors = model_file.read(path)
    model_file.write(path, {k: v for k, v in header.items() if k not in KEPT}, tensors)
    old = rds.load(path)
    assert (old.fitted_.target.names, old.fitted_.target.units, old.fitted_.inputs.units) == (
        None,
        None,
        None,
    )
    assert old.predict_dist(TASK.X) == model.predict_dist(TASK.X)
    model_file.write(path, {**header, "target_names": [["load"]]}, tensors)
    with pytest.raises(rds.ModelFileError, match=r"target_names = \[\['load'\]\] is garbled"):
        rds.load(path)
