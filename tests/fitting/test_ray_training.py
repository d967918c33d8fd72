"""Fits on workers of a Ray cluster; starting them takes most of the time of these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import ray.train
import torch
from ray import cloudpickle
from stopping import content
from together import KillsItself, joint, together

import rdeepsense as rds
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.errors import InputError, RDeepSenseError, TrainingError
from rdeepsense.fitting import cluster as joint_trainer
from rdeepsense.fitting import cluster as ray_training
from rdeepsense.fitting.cluster import JointJob
from rdeepsense.modelfile import tensors as model_file

LONG = os.environ.get("RDEEPSENSE_LONG") == "1"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
        patch.setenv("RAY_TRAIN_METRICS_ENABLED", "0")
        # What tests share is for the workers, too.
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        ray.init(
            address="local",
            num_cpus=4,
            object_store_memory=100 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
        )
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table")
    data = simulate(5_000, 0)
    columns = {**dict(zip(FEATURES, data.X.T, strict=True)), "y": data.y}
    pq.write_table(pa.table(columns), path / "a.parquet", row_group_size=625)
    return path


def quick(**options: Any) -> rds.RDeepSenseRegressor:
    fixed = {"drop_prob": 0.05, "alpha": 0.5, "likelihood": "gaussian", "batch_size": 250}
    settings = {"hidden": (16,), "epochs": 4, "random_state": 0, "device": "cpu", "verbose": False}
    return rds.RDeepSenseRegressor(**{**fixed, **settings, **options})


@pytest.mark.skipif(not LONG, reason="a minute; RDEEPSENSE_LONG=1 runs it")
def test_one_worker_gives_the_bits_of_none(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)  # workers have a folder of their own, and must find the files
    made = [
        content(quick().fit(folder.name, "y", engine=engine), tmp_path / "model")
        for engine in (None, rds.Ray(workers=1))
    ]
    for own in ("workers", "seconds_around"):
        made[1][0]["training"].pop(own)  # type: ignore[attr-defined]
    assert made[0] == made[1]


@pytest.mark.ray
def test_a_killed_worker_is_started_again_and_the_end_is_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes without Ray give the bits that two workers of Ray give, one of them killed.

    `test_joint_trainer` has one such process beside a fit without an engine.
    """
    monkeypatch.chdir(folder.parent)  # workers have a folder of their own, and must find the files
    said = tmp_path / "killed"
    killer = KillsItself(30, said, tmp_path / "state.ray")
    monkeypatch.setattr(ray_training, "relayed", lambda *_: nullcontext(killer))
    jobs: list[JointJob] = []
    train = ray_training.train_with_ray

    def noted(job: JointJob, *rest: Any, **options: Any) -> Any:
        jobs.append(job)
        return train(job, *rest, **options)

    monkeypatch.setattr(joint_trainer, "train_with_ray", noted)
    checkpoint = tmp_path / "state"
    model = quick(checkpoint=checkpoint).fit(folder.name, "y", engine=rds.Ray(workers=2))
    training = model.training_
    assert 1 <= training["resumed_at"] < int(said.read_text()) < training["planned_steps"]
    assert [worker["steps"] for worker in training["workers"]] == [training["planned_steps"]] * 2
    (state,), record = together(joint, 2, tmp_path, cloudpickle.dumps(jobs[0]))[0]
    assert training["history"] == record.history
    found = model.network_.state_dict()
    assert all(torch.equal(found[name], value) for name, value in state.items())
    (run,) = (tmp_path / "state.ray").iterdir()
    assert jobs[0].fingerprint().startswith(run.name.removeprefix("fit-"))
    *others, newest = sorted(path for path in run.glob("checkpoint_*") if path.is_dir())
    assert sorted(file.name for file in newest.iterdir()) == ["state-0.bank", "state-1.bank"]
    assert len(others) <= 1  # what was being reported when the worker was killed may stay


def test_refusals(folder: Path) -> None:
    with pytest.raises(InputError, match="workers = 5: the cluster has 4 CPUs"):
        quick().fit(folder, "y", engine=rds.Ray(workers=5))
    with pytest.raises(InputError, match="the cluster has 0 GPUs, and each worker takes one"):
        quick().fit(folder, "y", engine=rds.Ray(workers=1, use_gpu=True))


@pytest.mark.ray
def test_errors_of_workers_are_the_librarys_own() -> None:
    lost, own = ValueError("gone\nconnection lost"), InputError("no such file")
    assert ray_training.reason_of(ray.train.WorkerGroupError("", {0: lost, 1: own})) is own
    other = ray_training.reason_of(ray.train.WorkerGroupError("", {0: lost}))
    assert type(other) is RDeepSenseError
    assert str(other).endswith("connection lost")
    assert isinstance(ray_training.reason_of(Exception("")), RDeepSenseError)


class Nodes:
    """A cluster of machines with these addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeManagerAddress": a, "Alive": a != "gone"} for a in self._addresses]


def test_where_states_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = Nodes("a", "a", "gone"), Nodes("a", "b")
    for engine, nodes, checkpoint, expected in (
        (rds.Ray(storage="s3://bucket/fits"), two, "state", "s3://bucket/fits"),
        (rds.Ray(storage=Path("kept")), two, None, str(tmp_path / "kept")),
        (rds.Ray(), one, "state", str(tmp_path / "state.ray")),
    ):
        with ray_training.storage_for(engine, nodes, checkpoint) as found:
            assert found == expected
    with ray_training.storage_for(rds.Ray(), one, None) as found:
        assert Path(found).is_dir()
    assert not Path(found).exists()
    with (
        pytest.raises(InputError, match="storage = None: the cluster has 2 machines"),
        ray_training.storage_for(rds.Ray(), two, "state"),
    ):
        pass


@pytest.mark.ray
def test_ctrl_c_stays_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGINT)

    def end_as_ray_does() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(0)

    with pytest.raises(KeyboardInterrupt), ray_training.interruptible():
        end_as_ray_does()
    assert signal.getsignal(signal.SIGINT) is before


def test_how_often_ray_looks_is_the_callers_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_training.LOOK, "7")
    with ray_training.looking_often():
        assert os.environ[ray_training.LOOK] == "7"
    monkeypatch.delenv(ray_training.LOOK)
    with ray_training.looking_often():
        assert os.environ[ray_training.LOOK] == "0.5"
    assert ray_training.LOOK not in os.environ


@pytest.mark.skipif(not LONG, reason="minutes; RDEEPSENSE_LONG=1 runs it")
def test_four_workers_the_same_bits_each_time(folder: Path) -> None:
    made = [
        quick(epochs=40).fit(folder, "y", engine=rds.Ray(workers=workers)) for workers in (4, 4, 1)
    ]
    first, again, one = (model.network_.state_dict() for model in made)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], one[name]) for name in first)
    test = simulate(5_000, 1)
    nll = [model.evaluate(test.X, test.y)["nll"] for model in made]
    assert abs(nll[0] - nll[2]) < 0.03


DRIVER = """
import sys
import ray
import rdeepsense as rds
folder, checkpoint, output = sys.argv[1:]
small = {"num_cpus": 2, "object_store_memory": 100 * 2**20, "include_dashboard": False}
ray.init(address="local", log_to_driver=False, **small)
model = rds.RDeepSenseRegressor(
    hidden=(16,), drop_prob=0.05, alpha=0.5, likelihood="gaussian", batch_size=250, epochs=400,
    random_state=0, device="cpu", verbose=False, checkpoint=checkpoint,
)
model.fit(folder, "y", engine=rds.Ray(workers=2)).save(output)
print(model.training_["resumed_at"])
"""


@pytest.mark.skipif(not LONG, reason="minutes; RDEEPSENSE_LONG=1 runs it")
def test_a_killed_driver_goes_on(folder: Path, tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        own = [folder, tmp_path / name, tmp_path / f"{name}.model"]
        command = [sys.executable, "-c", DRIVER, *map(str, own)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    assert start("whole").communicate()[0].split()[-1] == "None"
    killed = start("killed")
    while not list((tmp_path / "killed.ray").glob("*/checkpoint_*/state-1.bank")):
        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(0.1)
    killed.kill()
    killed.wait()
    assert not (tmp_path / "killed.model").exists()
    assert int(start("killed").communicate()[0].split()[-1]) >= 1
    whole, resumed = (model_file.read(tmp_path / f"{n}.model")[1] for n in ("whole", "killed"))
    assert all((whole[name] == resumed[name]).all() for name in whole)


@pytest.mark.ray
@pytest.mark.skipif(not LONG, reason="minutes; RDEEPSENSE_LONG=1 runs it")
def test_divergence_is_told_once(folder: Path) -> None:
    with pytest.raises(TrainingError, match="training diverged"):
        quick(learning_rate=1e30).fit(folder, "y", engine=rds.Ray(workers=2))
