"""What holds for all four simulators: shapes, seeds, groups, and that the truth is the truth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np
import pytest

from rdeepsense import metrics
from rdeepsense.distributions import Categorical, Gaussian, StudentT
from rdeepsense.errors import InputError
from rdeepsense.paper.tasks.catalogue import SIMULATORS, kl_from_truth
from rdeepsense.paper.tasks.nycommute import TripMinutes
from rdeepsense.paper.tasks.task import Task

SHAPES = {
    "BPEst": ((2_000, 250), (2_000, 250)),
    "NYCommute": ((2_000, 5), (2_000,)),
    "GasSen": ((2_000, 16), (2_000, 2)),
    "HHAR": ((2_000, 840), (2_000,)),
}
TASKS = {name: simulate(2_000, 1) for name, simulate in SIMULATORS.items()}


@pytest.fixture(params=list(SIMULATORS))
def task(request: pytest.FixtureRequest) -> Task:
    return TASKS[cast(str, request.param)]


def test_shapes_of_the_paper(task: Task) -> None:
    assert (task.X.shape, task.y.shape) == SHAPES[task.name]
    assert task.X.dtype == np.float32
    assert np.isfinite(task.X).all()
    assert np.isfinite(task.y).all()
    assert task.simulated
    assert task.source.startswith("simulated")
    assert task.source.endswith("seed 1")
    assert len(task.targets) == (task.y.shape[1] if task.y.ndim == 2 else 1)
    assert not np.array_equal(task.X[0], task.X[1])


def test_same_seed_same_rows(task: Task) -> None:
    again, other = (SIMULATORS[task.name](2_000, seed) for seed in (1, 2))
    assert task.truth == again.truth
    for field in {field.name for field in fields(Task)} - {"truth"}:
        assert np.array_equal(getattr(task, field), getattr(again, field)), field
    assert not np.array_equal(task.y, other.y)
    assert not np.array_equal(task.X, other.X)


def test_groups_split_into_three_parts(task: Task) -> None:
    assert task.groups is not None
    split = task.split(by="groups")
    parts = [set(task.groups[rows]) for rows in (split.train, split.validation, split.test)]
    assert all(parts)
    assert sum(map(len, parts)) == len(set.union(*parts))
    assert (task.split_by == "groups") == (task.name == "HHAR")


def test_rows_are_refused_or_drawn(task: Task) -> None:
    assert len(SIMULATORS[task.name](1, 0).X) == 1
    with pytest.raises(InputError, match="rows = 0: at least one"):
        SIMULATORS[task.name](0, 0)
    with pytest.raises(InputError, match="seed of 0 or greater; got -1"):
        SIMULATORS[task.name](5, -1)


def test_truth_of_some_rows(task: Task) -> None:
    truth = cast(Any, task.truth)
    rows = np.array([5, 17, 1_999])
    assert np.array_equal(truth[rows].log_prob(task.y[rows]), truth.log_prob(task.y)[rows])


def test_targets_are_as_likely_as_draws_of_the_truth(task: Task) -> None:
    """The mean log density of the targets is the truth's negative entropy."""
    truth = cast(Any, task.truth)
    drawn = np.array([truth.log_prob(y).mean() for y in truth.sample(5, 0)])
    # Windows of one record or user share their luck, so the targets scatter more than draws.
    tolerance = {"BPEst": 0.1, "NYCommute": 0.06, "GasSen": 0.06, "HHAR": 0.06}[task.name]
    assert truth.log_prob(task.y).mean() == pytest.approx(drawn.mean(), abs=tolerance)
    if hasattr(truth, "entropy"):
        assert -drawn.mean() == pytest.approx(truth.entropy().mean(), abs=0.02)


def worse_versions(truth: Any) -> list[Any]:
    match truth:
        case Gaussian() | StudentT():
            shifted = truth.affine(0.5 * truth.std, 1.0)
            return [truth.widened(1.4), truth.widened(0.7), shifted]
        case TripMinutes():
            median, spread = truth.median, truth.spread
            return [TripMinutes(median, f * spread) for f in (1.4, 0.7)] + [
                TripMinutes(1.1 * median, spread)
            ]
        case Categorical():
            return [truth.tempered(1.4), truth.tempered(0.7)]
    raise AssertionError(truth)


def test_no_changed_truth_is_likelier(task: Task) -> None:
    truth = cast(Any, task.truth)
    for worse in worse_versions(truth):
        gap, error = kl_from_truth(truth, worse, 0, 5)
        assert gap > 3 * error
        # On the targets too; rows of one record share their luck, so the changes are large.
        assert truth.log_prob(task.y).mean() > worse.log_prob(task.y).mean()


def test_perfectly_calibrated(task: Task) -> None:
    truth = cast(Any, task.truth)
    if task.classes:
        assert metrics.ece(truth, task.y) < 0.05
    else:
        assert metrics.deviation_area(truth, task.y) < 0.035
