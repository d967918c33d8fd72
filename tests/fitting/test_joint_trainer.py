"""Fits whose rows workers share, without Ray: one gives the bits of none, two are one in parts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from ray import cloudpickle
from stopping import content
from together import joint, together

import rdeepsense as rds
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.engines import Ray
from rdeepsense.errors import InputError
from rdeepsense.fitting import cluster
from rdeepsense.fitting.cluster import JointJob
from rdeepsense.training.workers import WorkerGroup

SMALL = 60_000  # bytes: windows of some 200 rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table")
    data = simulate(1_600, 0)
    columns = {**dict(zip(FEATURES, data.X.T, strict=True)), "y": data.y}
    columns["label"] = np.where(data.y > np.median(data.y), "high", "low")
    pq.write_table(pa.table(columns), path / "a.parquet", row_group_size=100)
    return path


def quick(**options: Any) -> rds.RDeepSenseRegressor:
    fixed = {"drop_prob": 0.05, "alpha": 0.5, "likelihood": "gaussian"}
    settings = {"hidden": (16,), "epochs": 4, "random_state": 0, "device": "cpu", "verbose": False}
    return rds.RDeepSenseRegressor(**{**fixed, **settings, **options})


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[JointJob], Any]], list[JointJob]]:
    """Give jobs to a function instead of Ray, and note them."""

    def through(run: Callable[[JointJob], Any]) -> list[JointJob]:
        seen: list[JointJob] = []

        def train(job: JointJob, *_: object, **__: object) -> Any:
            seen.append(job)
            return run(job)

        monkeypatch.setattr(cluster, "train_with_ray", train)
        monkeypatch.setattr(cluster, "worker_count", lambda engine, ray: engine.workers)
        monkeypatch.setattr(Ray, "connected", lambda self: nullcontext())
        return seen

    return through


def alone(job: JointJob) -> Any:
    return job.run(WorkerGroup())


def comparable(model: Any, path: Path) -> Any:
    header, tensors = content(model, path)
    for own in ("workers", "seconds_around"):
        header["training"].pop(own, None)
    return header, tensors


@pytest.mark.parametrize("memory", [2**30, SMALL])
@pytest.mark.parametrize("options", [{}, {"drop_prob": "auto"}])
def test_one_worker_gives_the_bits_of_none(
    folder: Path, tmp_path: Path, jobs: Any, memory: int, options: dict[str, Any]
) -> None:
    seen = jobs(alone)
    source = ParquetTable(folder, ["label"])
    plain = quick(**options).fit(source, "y", memory=memory)
    given = quick(**options).fit(source, "y", memory=memory, engine=Ray(workers=1))
    assert comparable(plain, tmp_path / "a") == comparable(given, tmp_path / "b")
    assert (seen[-1].window is None) == (memory > SMALL)
    (worker,) = given.training_["workers"]
    assert worker["steps"] == given.training_["planned_steps"]
    assert worker["rows"] == given.training_["rows"]
    assert worker["bytes_reduced"] == 0


def test_classes_too(folder: Path, tmp_path: Path, jobs: Any) -> None:
    jobs(alone)
    source = ParquetTable(folder, ["y"])
    made = [
        rds.RDeepSenseClassifier(
            hidden=(8,), drop_prob=0.1, alpha=0.0, epochs=3, random_state=0, device="cpu"
        ).fit(source, "label", engine=engine)
        for engine in (None, Ray(workers=1))
    ]
    assert comparable(made[0], tmp_path / "a") == comparable(made[1], tmp_path / "b")


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_two_workers(folder: Path, tmp_path: Path, jobs: Any) -> None:
    """Steps are the schedule's, bytes 4 for each parameter and step, figures those of one."""

    def both(job: JointJob) -> Any:
        (states, record), (others, _) = together(joint, 2, tmp_path, dumped(job))
        for state, other in zip(states, others, strict=True):
            assert all(torch.equal(state[name], other[name]) for name in state)
        networks = [copy.deepcopy(network).eval() for network in job.networks]
        for network, state in zip(networks, states, strict=True):
            network.load_state_dict(state)
        return networks, record

    seen = jobs(both)
    settings: dict[str, Any] = {"epochs": 15, "batch_size": 65}
    source = ParquetTable(folder, ["label"])
    plain = quick(**settings).fit(source, "y", memory=SMALL)
    model = quick(**settings).fit(source, "y", memory=SMALL, engine=Ray(workers=2))
    first, second = model.training_["workers"]
    parameters = sum(p.numel() for p in model.network_.parameters())
    for worker in (first, second):
        assert worker["steps"] == plain.training_["steps"] == model.training_["steps"]
        assert worker["batch_size"] == 32
        assert worker["bytes_reduced"] == 4 * parameters * worker["steps"]
    assert first["rows"] + second["rows"] == plain.training_["rows"]
    assert seen[0].schedule.batch_size == 64
    test = simulate(4_000, 1)
    nll = [m.evaluate(test.X, test.y)["nll"] for m in (plain, model)]
    assert abs(nll[0] - nll[1]) < 0.05
    # Other rows, another draw.
    assert not torch.equal(*(next(m.network_.parameters()) for m in (plain, model)))


def test_jobs_are_told_apart(folder: Path, jobs: Any) -> None:
    seen = jobs(alone)
    for options, workers in (({}, 1), ({}, 1), ({"epochs": 5}, 1), ({"random_state": 1}, 1)):
        quick(**options).fit(ParquetTable(folder, ["label"]), "y", engine=Ray(workers=workers))
    same, again, longer, other = (job.fingerprint() for job in seen)
    assert same == again
    assert len({same, longer, other}) == 3
    twice = replace(seen[0], shares=cluster.Shares.of(seen[0].split.found.counts, 2))
    assert twice.fingerprint() != same


def test_refusals(folder: Path, jobs: Any) -> None:
    jobs(alone)
    with pytest.raises(InputError, match="engine is a int; accepted: None, rdeepsense.Ray"):
        quick().fit(folder, "y", engine=4)
    with pytest.raises(InputError, match="workers = 33: is more than the 32 rows of a batch"):
        quick(batch_size=32).fit(ParquetTable(folder, ["label"]), "y", engine=Ray(workers=33))


def dumped(job: JointJob) -> bytes:
    """As Ray pickles it."""
    made: bytes = cloudpickle.dumps(job)
    assert pickle.loads(made).fingerprint() == job.fingerprint()
    return made
