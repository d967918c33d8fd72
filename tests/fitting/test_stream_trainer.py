"""Folders of Parquet files: trained on like a table in memory, within the budget."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from stopping import Steps, content

import rdeepsense as rds
from rdeepsense.data import stream
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.stream import Moments, Reservoir
from rdeepsense.datasets import FEATURES, kl_from_truth, simulate
from rdeepsense.errors import CheckpointError, InputError
from rdeepsense.fitting import stream_trainer
from rdeepsense.training import loop

SMALL = 60_000  # bytes: windows of some 200 rows


def write(folder: Path, columns: dict[str, Any], files: int = 3, group: int = 150) -> Path:
    """The rows in so many files, in row groups of at most `group`."""
    folder.mkdir(exist_ok=True)
    rows = len(next(iter(columns.values())))
    edges = np.linspace(0, rows, files + 1).astype(int)
    for number, (a, b) in enumerate(pairwise(edges)):
        part = pa.table({name: values[a:b] for name, values in columns.items()})
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=group)
    return folder


def known(rows: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    data = simulate(rows, seed)
    return {**dict(zip(FEATURES, data.X.T, strict=True)), "y": data.y}


def quick(**options: Any) -> rds.RDeepSenseRegressor:
    fixed = {"drop_prob": 0.05, "alpha": 0.5, "likelihood": "gaussian"}
    settings = {"hidden": (16,), "epochs": 3, "random_state": 0, "device": "cpu", "verbose": False}
    return rds.RDeepSenseRegressor(**{**fixed, **settings, **options})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "table", known(1_500))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, torch.Tensor]]:
    """The row groups read for training, with the inputs that came of them, in turn."""
    seen: list[tuple[int, torch.Tensor]] = []
    read = stream_trainer.Reader.__call__

    def spy(self: Any, part: int) -> Any:
        x, y = read(self, part)
        seen.append((part, x))
        return x, y

    monkeypatch.setattr(stream_trainer.Reader, "__call__", spy)
    return seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("memory", [2**30, 100_000])
def test_the_known_truth_is_found(tmp_path: Path, memory: int, reads: list[Any]) -> None:
    table, test = write(tmp_path / "t", known(3_200), group=100), simulate(5_000, 1)
    held = simulate(800, 2)
    model = rds.RDeepSenseRegressor(
        drop_prob=0.02, random_state=0, device="cpu", verbose=False, effort="quick"
    )
    model.fit(table, "y", validation=(held.X, held.y), memory=memory)
    epochs = 1 if memory == 2**30 else 20  # read once, or again and again
    assert len(reads) >= epochs * len(ParquetTable(table).groups)
    assert epochs > 1 or len(reads) == len(ParquetTable(table).groups)
    assert kl_from_truth(test.truth, model.predict_dist(test.X)) <= 0.06
    assert model.feature_names_in_.tolist() == list(FEATURES)
    assert model.epistemic_std(test.X).shape == (5_000,)
    model.save(tmp_path / "m")
    again = rds.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(test.X), model.predict(test.X))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_equal_seeds_give_equal_bits(folder: Path) -> None:
    X = simulate(50, 1).X
    fits = [quick(random_state=s).fit(folder, "y", memory=SMALL) for s in (0, 0, 1)]
    first, same, other = (m.predict(X) for m in fits)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_every_row_trains_or_validates_and_none_does_both(folder: Path, reads: list[Any]) -> None:
    model = quick(keep_rows=10_000).fit(folder, "y", memory=SMALL)
    trained, held = model.training_["rows"], model.training_["validation_rows"]
    scaler = model.fitted_.inputs.scaler
    table = np.unique(scaler.transform(simulate(1_500, 0).X).numpy(), axis=0)
    groups = len(ParquetTable(folder).groups)
    seen = dict(reads)
    assert set(seen) == set(range(groups))
    assert len(reads) > groups  # windows are smaller than the table
    training = np.concatenate([x.numpy() for x in seen.values()])
    validation = scaler.transform(model.fitted_.kept_rows[0]).numpy()
    assert (len(training), len(validation)) == (trained, held)
    joined = np.unique(np.concatenate([training, validation]), axis=0)
    assert len(joined) == trained + held
    assert len(np.unique(np.concatenate([joined, table]), axis=0)) == 1_500
    # More may have drawn to validate than the budget keeps; these are not trained on either.
    assert held == stream.rows_to_keep(SMALL, 5)
    assert 1_400 < trained + held <= 1_500


def test_where_all_rows_fit_they_are_read_once(folder: Path, reads: list[Any]) -> None:
    quick().fit(folder, "y")
    assert [part for part, _ in reads] == list(range(len(ParquetTable(folder).groups)))


def test_equal_inputs_are_on_one_side(tmp_path: Path, reads: list[Any]) -> None:
    inputs = np.repeat(np.arange(300.0), 5)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(inputs)
    table = write(tmp_path / "t", {"a": shuffled, "y": shuffled + rng.normal(size=1_500)})
    model = quick(keep_rows=10_000).fit(table, "y")
    held = set(np.unique(model.fitted_.kept_rows[0]))
    back = model.fitted_.inputs.scaler
    training = np.concatenate([x.numpy()[:, 0] for _, x in reads]) * back.scale + back.shift
    assert 30 < len(held) < 100
    assert not held & set(np.rint(training))


def test_groups_are_a_column_and_no_input(tmp_path: Path, reads: list[Any]) -> None:
    columns = known(1_500)
    user = np.repeat(np.arange(15), 100)
    names = np.array([f"user {u}" for u in user])
    table = write(tmp_path / "t", {**columns, "who": names})
    model = quick(keep_rows=10_000).fit(table, "y", groups="who")
    assert model.n_features_in_ == 4
    validation = model.fitted_.kept_rows[1]
    users = {int(user[np.flatnonzero(columns["y"] == value)[0]]) for value in validation}
    assert len(validation) == 100 * len(users) == 300  # a fifth of the users
    assert sum(len(x) for _, x in reads) == 1_500 - len(validation)


def test_two_groups_make_two_sides(tmp_path: Path) -> None:
    columns = {**known(200), "who": np.repeat([0, 1], 100)}
    table = write(tmp_path / "t", columns)
    for seed in range(5):
        model = quick(random_state=seed, epochs=1).fit(table, "y", groups="who")
        assert (model.training_["rows"], model.training_["validation_rows"]) == (100, 100)
    one = write(tmp_path / "one", {**known(200), "who": np.zeros(200)})
    with pytest.raises(InputError, match="has 1 groups, which are too few to split"):
        quick().fit(one, "y", groups="who")


def test_inputs_that_hardly_differ(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for seed in range(3):
        table = write(tmp_path / "two", {"a": np.repeat([0.0, 1.0], 50), "y": rng.normal(size=100)})
        model = quick(random_state=seed, epochs=1).fit(table, "y")
        assert (model.training_["rows"], model.training_["validation_rows"]) == (50, 50)
    table = write(tmp_path / "one", {"a": np.zeros(100), "y": rng.normal(size=100)})
    with pytest.raises(InputError, match="has too few different inputs to split"):
        quick().fit(table, "y")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_classes_of_text(tmp_path: Path) -> None:
    columns = known(1_500)
    label = np.where(columns.pop("y") > 50, "warm", "cold")
    table = write(tmp_path / "t", {**columns, "label": pa.array(label).dictionary_encode()})
    settings = {"hidden": (16,), "epochs": 15, "random_state": 0, "device": "cpu"}
    model = rds.RDeepSenseClassifier(**settings, verbose=False, effort="quick")
    model.fit(table, "label", memory=SMALL)
    X = np.column_stack(list(columns.values()))
    assert model.classes_.tolist() == ["cold", "warm"]
    assert np.mean(model.predict(X) == label) > 0.8


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_methods_heads_and_targets(tmp_path: Path) -> None:
    columns = {**known(600), "z": np.arange(600.0) % 7}
    table, X = write(tmp_path / "t", columns), simulate(5, 1).X
    for model in (
        quick(likelihood="auto", alpha="auto", epochs=1),
        rds.SSPRegressor(members=2, hidden=(8,), epochs=1, device="cpu", verbose=False),
        rds.MCDropRegressor(hidden=(8,), epochs=1, device="cpu", verbose=False),
    ):
        model.fit(table, ["y", "z"], memory=SMALL)
        assert model.predict_dist(X).shape == (5, 2)
    chosen = quick(likelihood="auto", epochs=1).fit(table, "y", memory=SMALL)
    assert chosen.selection_["how"] == "validation rows"
    with pytest.raises(InputError, match="GPRegressor does not train on files"):
        rds.GPRegressor().fit(table, "y")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_set_aside_and_rows_given(folder: Path) -> None:
    model = quick(calibrate="conformal").fit(folder, "y")
    used = model.training_["rows"] + model.training_["validation_rows"]
    assert 1_100 < used < 1_300
    low, high = model.predict_interval(simulate(9, 1).X, method="conformal")
    assert (low < high).all()
    given = simulate(77, 1)
    model = quick().fit(folder, "y", validation=(given.X, given.y))
    assert (model.training_["rows"], model.training_["validation_rows"]) == (1_500, 77)


def test_missing_inputs_are_filled_as_in_memory(tmp_path: Path) -> None:
    columns = known(600)
    columns["x1"][::7] = np.nan
    table = write(tmp_path / "t", columns)
    with pytest.raises(InputError, match=r"0.parquet, row 0 \(the first row is 0\): column 'x1'"):
        quick(missing="refuse").fit(table, "y")
    with pytest.raises(InputError, match="'indicator' is for tables in memory"):
        quick(missing="indicator").fit(table, "y")
    assert quick(epochs=1).fit(table, "y").fitted_.inputs.missing == "mean"
    given = simulate(50, 1)
    with pytest.warns(UserWarning, match="feature names"):
        model = quick(missing="mean").fit(table, "y", validation=(given.X, given.y))
    X = np.column_stack([columns[name] for name in FEATURES])
    index, weight = np.arange(600), np.ones(600)
    expected = Scaler.standard(X, index, weight)
    np.testing.assert_allclose(model.fitted_.inputs.scaler.shift, expected.shift)
    np.testing.assert_allclose(model.fitted_.inputs.scaler.scale, expected.scale)


def test_moments_join_to_those_of_all_rows() -> None:
    values = 1e6 + np.random.default_rng(0).normal(size=(1_000, 3))
    values[::3, 1] = np.nan
    joined = Moments.of(values[:1])
    for a, b in ((1, 2), (2, 400), (400, 400), (400, 1_000)):
        joined.add(Moments.of(values[a:b]))
    np.testing.assert_array_equal(joined.count, (~np.isnan(values)).sum(0))
    np.testing.assert_allclose(joined.scaler().shift, np.nanmean(values, 0), rtol=1e-14)
    np.testing.assert_allclose(joined.scaler().scale, np.nanstd(values, 0), rtol=1e-9)


def test_a_reservoir_keeps_the_smallest_keys_in_their_order() -> None:
    keys = np.random.default_rng(0).permutation(1_000) / 1_000
    kept = Reservoir(10)
    for part in np.split(np.arange(1_000), 50):
        kept.add(part[:, None], part, keys[part])
    X, y = kept.rows()
    np.testing.assert_array_equal(y, np.flatnonzero(keys < 0.01))
    np.testing.assert_array_equal(X[:, 0], y)


def test_the_window_is_what_the_budget_holds() -> None:
    rows = {"batch": 64, "row": 20, "raw": 40, "group": 1_000, "readers": 1}
    size = stream_trainer.window_rows(4_000_000, 10**6, **rows)
    assert size == (2_500_000 - 1_000 * 140) // 84 // 64 * 64 == 28_032
    assert stream_trainer.window_rows(4_000_000, 54_545, **rows) == 54_545  # all at once
    assert stream_trainer.window_rows(4_000_000, 54_546, **rows) == 28_032
    four = stream_trainer.window_rows(4_000_000, 10**6, **rows | {"readers": 4})
    assert four == (2_500_000 - 1_000 * 380) // 84 // 64 * 64 == 25_216
    assert stream.rows_to_keep(2**30, 17) == 100_000
    assert stream.rows_to_keep(12_000_000, 10) == 4_166
    with pytest.raises(InputError, match="give 232,602 bytes at least"):
        stream_trainer.window_rows(232_600, 10**6, **rows)
    assert stream_trainer.window_rows(232_602, 10**6, **rows) == 64


def test_a_killed_fit_goes_on_and_only_with_its_own_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    whole = quick().fit(folder, "y", memory=SMALL)
    turn, turns = stream_trainer.StreamedRows.turn_to, []

    def stop(self: Any, window: int) -> None:
        turns.append(window)
        if len(turns) == 4:
            raise KeyError("killed")
        turn(self, window)

    monkeypatch.setattr(stream_trainer.StreamedRows, "turn_to", stop)
    with pytest.raises(KeyError):
        quick(checkpoint=path).fit(folder, "y", memory=SMALL)
    resumed = quick(checkpoint=path).fit(folder, "y", memory=SMALL)
    assert resumed.training_["resumed_at"] > 0
    for a, b in zip(whole.network_.parameters(), resumed.network_.parameters(), strict=True):
        assert torch.equal(a, b)
    (folder / "2.parquet").unlink()
    shutil.copy(folder / "1.parquet", folder / "2.parquet")
    with pytest.raises(CheckpointError, match="other data"):
        quick(checkpoint=path).fit(folder, "y", memory=SMALL)


def test_ctrl_c_and_resume_is_never_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(path: Path | None) -> rds.RDeepSenseRegressor:
        return quick(checkpoint=path, likelihood="auto").fit(folder, "y", memory=SMALL)

    counted = Steps()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", counted.accelerate)
        whole = content(fit(None), tmp_path / "whole")
    for step in (counted.taken // 3, counted.taken - 1):
        path = tmp_path / f"{step}.ckpt"
        with monkeypatch.context() as patch:
            patch.setattr(loop, "accelerate", Steps(step).accelerate)
            with pytest.warns(rds.InterruptedTraining):
                fit(path)
        assert content(fit(path), tmp_path / "resumed") == whole


def test_a_file_that_disappears_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = stream.survey

    def then_remove(*args: Any) -> Any:
        found = survey(*args)
        (folder / "1.parquet").unlink()
        return found

    monkeypatch.setattr(stream, "survey", then_remove)
    with pytest.raises(InputError, match=r"1\.parquet: cannot be read any more"):
        quick().fit(folder, "y")


@pytest.mark.parametrize(
    ("columns", "y", "problem"),
    [
        ({}, "minutes", "y: there is no column 'minutes'"),
        ({}, ["y", "y"], "column 'y' is named twice"),
        ({}, np.zeros(100), "so y must name the target column"),
        ({"site": ["a", "b"] * 50}, "y", "column 'site' holds text; numbers are needed"),
        ({"y": np.ones(100)}, "y", "y is constant (1)"),
        ({"y": np.r_[np.zeros(70), np.inf, np.ones(29)]}, "y", "2.parquet, row 4 "),
        ({"x0": pa.nulls(100, pa.float64())}, "y", "column 'x0' has no value at all"),
    ],
)
def test_columns_that_cannot_be(tmp_path: Path, columns: Any, y: Any, problem: str) -> None:
    table = write(tmp_path / "t", {**known(100), **columns})
    with pytest.raises(InputError) as error:
        quick().fit(table, y)
    assert problem in str(error.value)


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="empty: holds no file whose name ends in .parquet"):
        quick().fit(empty, "y")
    with pytest.raises(InputError, match="nowhere: there is no such folder or file"):
        quick().fit(str(tmp_path / "nowhere"), "y")
    table = write(tmp_path / "t", known(100))
    columns = known(30)
    for other, problem in (
        ({**columns, "more": columns["y"]}, "a column 'more', which 0.parquet has not"),
        ({n: v for n, v in columns.items() if n != "x2"}, "no column 'x2', which 0.parquet has"),
        ({**columns, "x2": ["a"] * 30}, "'x2' holds text, in 0.parquet it holds numbers"),
    ):
        pq.write_table(pa.table(other), table / "9.parquet")
        with pytest.raises(InputError, match=f"9.parquet: .*{problem}"):
            quick().fit(table, "y")
    (table / "9.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(InputError, match=r"9\.parquet: cannot be read as Parquet"):
        quick().fit(table, "y")
    with pytest.raises(InputError, match="has 9 rows; at least 10 are needed"):
        quick().fit(write(tmp_path / "few", known(9)), "y")
    with pytest.raises(InputError, match="sample_weight does not go with files"):
        quick().fit(write(tmp_path / "few", known(20)), "y", sample_weight=np.ones(20))


def test_columns_left_out_by_name(tmp_path: Path) -> None:
    table = write(tmp_path / "t", {**known(100), "site": ["a", "b"] * 50})
    model = quick(epochs=1).fit(ParquetTable(table, ignore=["site", "x3"]), "y")
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    with pytest.raises(InputError, match="has no column 'city' to ignore"):
        ParquetTable(table, ignore=["city"])
