"""Many rows: chosen on a sample, the winner trained on all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stopping import Steps, content

import rdeepsense as rds
from rdeepsense.fitting import search
from rdeepsense.fitting.records import Candidate, TrainingReport
from rdeepsense.fitting.search import SampleTrainer, epochs_on
from rdeepsense.fitting.trainer import Length, TrainedModel
from rdeepsense.networks import Dense
from rdeepsense.training import Schedule, loop, schedule
from rdeepsense.training import loop as chunks

QUICK: dict[str, Any] = {"random_state": 0, "verbose": False, "device": "cpu"}
FIXED = {"hidden": (16,), "alpha": 0.5, "likelihood": "gaussian"}
OPEN: dict[str, Any] = {**QUICK, **FIXED, "drop_prob": "auto", "epochs": 3}
CLASSES = {name: value for name, value in OPEN.items() if name != "likelihood"}


def waves(rows: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (rows, 3))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=rows)


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> list[SampleTrainer]:
    """Samples of 1,000 rows; the trainers that had one."""
    found: list[SampleTrainer] = []
    begin = SampleTrainer.__init__

    def noted(self: SampleTrainer, *arguments: Any) -> None:
        begin(self, *arguments)
        found.append(self)

    monkeypatch.setattr(search, "SAMPLE", 1_000)
    monkeypatch.setattr(SampleTrainer, "__init__", noted)
    return found


def test_all_rows_are_better_than_the_sample(
    samples: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ladder", lambda *_: (Dense((16,)), Dense((32, 32))))
    X, y = waves(4_000)
    options = {**OPEN, "epochs": 15, "batch_size": 50, "hidden": "auto", "drop_prob": 0.02}
    model = rds.RDeepSenseRegressor(**options).fit(X, y)
    selection = model.selection_
    assert selection["how"] == "validation rows of a sample of 1,000 of 4,000 rows"
    assert len(samples) == 1
    assert len(samples[0].rows.train) == 500
    assert (model.training_["rows"], model.training_["validation_rows"]) == (3_200, 800)
    assert model.validation_scores_["n"] == 800
    tried = next(one for one in selection["architectures"] if one["chosen"])
    assert model.fitted_.networks.architecture == Dense(tried["arguments"]["hidden"])
    chosen = selection["trials"][selection["chosen"]]
    assert model.candidate_ == Candidate(*(chosen[k] for k in ("likelihood", "alpha", "drop_prob")))
    assert model.evaluate(*waves(2_000, 1))["nll"] < chosen["nll"] - 0.2
    model.save(tmp_path / "m")
    assert rds.load(tmp_path / "m").selection_ == selection


def test_the_length_is_that_of_all_rows(
    samples: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ALLOWANCE", 0)
    monkeypatch.setattr(schedule, "STEPS", (250, 400))
    options = {**OPEN, "hidden": (8,), "drop_prob": 0.0, "alpha": "auto", "epochs": None}
    model = rds.RDeepSenseRegressor(**options, batch_size=200).fit(*waves(2_500))
    assert [length["steps"] for length in model.selection_["lengths"]] == [250]
    assert model.training_["planned_steps"] == 250  # 25 epochs of 10 batches, not 125


def test_equal_seeds_give_equal_bits(samples: list[Any]) -> None:
    X, y = waves(2_500)
    first, second = (rds.RDeepSenseRegressor(**OPEN).fit(X, y).predict_dist(X) for _ in range(2))
    assert first == second
    assert len(samples) == 2


def test_a_fixed_fit_sees_no_sample(samples: list[Any]) -> None:
    X, y = waves(2_500)
    fixed = {**OPEN, "drop_prob": 0.05}
    model = rds.RDeepSenseRegressor(**fixed).fit(X, y)
    assert not samples
    assert model.selection_ is None
    few = rds.RDeepSenseRegressor(**OPEN).fit(*waves(1_000))
    assert not samples
    assert few.selection_["how"] == "5-fold cross-validation"


def test_weights_and_classes_go_into_the_sample(samples: list[Any]) -> None:
    X, y = waves(3_000)
    weight = np.where(X[:, 0] > 0, 3.0, 1.0)
    label = np.where(y > np.quantile(y, 0.9), "rare", "usual")
    model = rds.RDeepSenseClassifier(**CLASSES).fit(X, label, sample_weight=weight)
    part = samples[0].rows.train
    np.testing.assert_array_equal(part.weight, weight[part.index])
    assert np.mean(label[part.index] == "rare") == pytest.approx(0.1, abs=0.005)
    assert "a sample of 1,000 of 3,000 rows" in model.selection_["how"]


def test_rows_given_to_validate_on_are_drawn_from_too(samples: list[Any]) -> None:
    X, y = waves(3_000)
    held, truth = waves(1_500, 1)
    model = rds.RDeepSenseClassifier(**CLASSES).fit(X, y > 1, validation=(held, truth > 1))
    own = samples[0].rows
    assert (len(own.train), len(own.validation)) == (500, 500)
    assert np.mean(own.y_val[own.validation.index]) == pytest.approx(np.mean(truth > 1), abs=0.002)
    assert (model.training_["rows"], model.training_["validation_rows"]) == (3_000, 1_500)


def test_categories_and_holes_go_into_the_sample(samples: list[Any]) -> None:
    X, y = waves(1_500)
    table = X.astype(object)
    table[:, 2] = [f"level {k % 30}" for k in range(len(X))]
    table[::7, 0] = np.nan
    model = rds.RDeepSenseRegressor(**OPEN).fit(table, y)
    assert samples[0].rows.network_shape == model.fitted_.inputs.network_shape
    assert "a sample of 1,000 of 1,500 rows" in model.selection_["how"]
    assert model.predict(table[:3]).shape == (3,)


def test_windows_are_drawn_like_rows(samples: list[Any]) -> None:
    X, y = waves(1_200)
    model = rds.RDeepSenseRegressor(**{**OPEN, "hidden": "auto", "epochs": 1})
    model.fit(X.reshape(-1, 1, 3), y)
    assert model.selection_["how"] == "validation rows of a sample of 1,000 of 1,200 rows"
    assert model.selection_["architectures"][0]["name"] == "Flattened"


def test_the_clock_bounds_the_search_alone(samples: list[Any]) -> None:
    X, y = waves(2_500)
    options = {**OPEN, "hidden": "auto", "likelihood": "auto", "max_seconds": 0}
    model = rds.RDeepSenseRegressor(**options).fit(X, y)
    assert len(model.selection_["architectures"]) == 1
    assert model.training_["rows"] == 2_000
    assert model.training_["steps"] == model.training_["planned_steps"]


@pytest.mark.slow
def test_ctrl_c_and_resume_is_never_stopped(
    samples: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = waves(1_500)

    def fit(path: Path | None) -> rds.RDeepSenseRegressor:
        return rds.RDeepSenseRegressor(**{**OPEN, "likelihood": "auto", "checkpoint": path}).fit(
            X, y
        )

    counted = Steps()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", counted.accelerate)
        whole = content(fit(None), tmp_path / "whole")
    for step, rows in ((counted.taken // 4, 700), (counted.taken - 2, 1_200)):
        path = tmp_path / f"{step}.ckpt"
        with monkeypatch.context() as patch:
            patch.setattr(loop, "accelerate", Steps(step).accelerate)
            with pytest.warns(rds.InterruptedTraining):
                partial = fit(path)
        # A search that is stopped is not followed by a long training.
        assert partial.training_["rows"] == rows
        assert partial.training_["interrupted"]
        assert partial.predict(X[:3]).shape == (3,)
        assert path.exists()
        assert content(fit(path), tmp_path / "resumed") == whole


def test_files_are_chosen_on_what_is_in_memory(samples: list[Any], tmp_path: Path) -> None:
    X, y = waves(4_000)
    columns = {f"x{k}": X[:, k] for k in range(3)}
    pq.write_table(pa.table({**columns, "y": y}), tmp_path / "t.parquet", row_group_size=500)
    model = rds.RDeepSenseRegressor(**OPEN).fit(tmp_path / "t.parquet", "y")
    used = model.training_["rows"] + model.training_["validation_rows"]
    assert used == 4_000
    assert model.selection_["how"] == "validation rows of a sample of 1,000 of 4,000 rows"
    # Too little memory for a sample that could tell anything: on windows of all rows, as ever.
    model.fit(tmp_path / "t.parquet", "y", memory=200_000)
    assert model.selection_["how"] == "validation rows"
    assert len(samples) == 1


def test_progress_says_what_is_done(samples: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    train = chunks.train

    def noted(*arguments: Any, **more: Any) -> Any:
        said.append(arguments[-1])
        return train(*arguments, **more)

    monkeypatch.setattr(chunks, "train", noted)
    rds.RDeepSenseRegressor(**OPEN).fit(*waves(2_500))
    assert said == [
        "choosing on 1,000 rows: training 6 networks",
        "training the choice on all 2,500 rows: training",
    ]


def found(steps: int, batch_size: int) -> TrainedModel:
    details = {"planned_steps": steps, "batch_size": batch_size}
    report = TrainingReport(0, 45_000, 5_000, "validation rows", details)
    return TrainedModel(*[None] * 6, report, Length(1, batch_size))  # type: ignore[arg-type]


def test_no_fewer_steps_and_no_fewer_rows_than_on_the_sample() -> None:
    usual = Schedule.of(2_000_000, 0, 1.0, 0)
    per_epoch = 2_000_000 // 1_024
    assert epochs_on(2_000_000, found(2_523, 512), None) == usual.steps // per_epoch == 3
    assert epochs_on(2_000_000, found(20_000, 512), None) == -(-20_000 // per_epoch)
    assert epochs_on(2_000_000, found(20_000, 4_096), None) == -(-80_000 // per_epoch)
    assert epochs_on(2_000_000, found(10_000, 64), 64) == usual_epochs(64)


def usual_epochs(batch_size: int) -> int:
    usual = Schedule.of(2_000_000, 0, 1.0, 0, batch_size=batch_size)
    return usual.steps // (2_000_000 // batch_size)
