"""Workers that average gradients: the steps of one that has all their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from together import HELD, KINDS, SCHEDULE, TRAIN, bank, every_kind, together, trained

from rdeepsense.training import Rows
from rdeepsense.training.workers import ALONE, JointCheckpoint, WorkerGroup, statistics_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return together(every_kind, 2, tmp_path_factory.mktemp("pair"))


@pytest.mark.parametrize("kind", ["written out", "autograd"])
def test_two_take_the_steps_of_one(pair: list[Any], kind: str) -> None:
    weights, record = trained(kind, ALONE)
    for found, other, _ in (worker[kind] for worker in pair):
        for name, value in weights.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)
        assert torch.tensor(other.history).allclose(torch.tensor(record.history), atol=1e-6)
        assert (other.steps, other.best_step) == (record.steps, record.best_step)


@pytest.mark.everyday(1, "ray")
@pytest.mark.parametrize("kind", [*KINDS, "dropping"])
def test_all_hold_the_same_bits(pair: list[Any], kind: str) -> None:
    (first, record, _), (second, other, _) = (worker[kind] for worker in pair)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert record.history == other.history


def test_masks_are_each_workers_own(pair: list[Any]) -> None:
    """With the same masks on both, two would drop as one does."""
    alone, _ = trained("written out", ALONE, 0.3)
    found = pair[0]["dropping"][0]
    assert any(not torch.allclose(found[name], alone[name], atol=1e-4) for name in alone)
    assert WorkerGroup(0, 2).seed(3) == 3
    assert len({WorkerGroup(rank, 1000).seed(3) for rank in range(1000)}) == 1000
    assert all(0 <= WorkerGroup(rank, 9).seed(2**31 - 2) < 2**31 for rank in range(9))


def test_bytes_are_steps_times_parameters(pair: list[Any]) -> None:
    before = 0
    for kind in KINDS:
        own = bank(kind)
        moved = [*own.parameters(), *statistics_of(own)]
        expected = SCHEDULE.steps * 4 * sum(value.numel() for value in moved)
        for worker in pair:
            assert worker[kind][2] - before == expected
        before += expected


def test_an_average_is_no_sum(pair: list[Any]) -> None:
    """Adam hardly sees the size of gradients, but clipping and weight decay do."""
    assert [worker["averaged"] for worker in pair] == [[0.5, 6.0]] * 2


def test_the_first_decides(pair: list[Any]) -> None:
    assert [worker["agreed"] for worker in pair] == [5, 5]


def test_alone_nothing_is_exchanged() -> None:
    flat = torch.tensor([1.0, 2.0])
    ALONE.average(flat)
    ALONE.add(flat)
    assert flat.tolist() == [1.0, 2.0]
    assert ALONE.part_of(HELD) is HELD
    assert ALONE.reduced == 0


def test_parts_are_all_rows_once() -> None:
    weighted = Rows(TRAIN.x, TRAIN.y, torch.arange(160.0).expand(2, 160))
    parts = [WorkerGroup(rank, 3).part_of(weighted) for rank in range(3)]
    assert [len(part) for part in parts] == [54, 53, 53]
    found = torch.cat([part.weight[0] for part in parts if part.weight is not None])
    assert found.sort().values.tolist() == list(range(160))
    assert torch.equal(parts[1].x, TRAIN.x[1::3])


def test_a_joint_checkpoint_is_saved_at_first_and_when_its_cost_is_paid_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes 1 s and saving 2 s: a twentieth of the time is a save in 40 steps."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    handed: list[float] = []

    def hand_over() -> None:
        now[0] += 2
        handed.append(now[0])

    saver = JointCheckpoint(tmp_path / "state", "f", ALONE, hand_over)
    saved = []
    for step in range(1, 100):
        now[0] += 1
        if saver.due():
            saver.save({"steps": step}, {"x": torch.ones(2)})
            saved.append(step)
    assert saved == [1, 41, 81]
    assert handed == [3.0, 45.0, 87.0]
    loaded = saver.load()
    assert loaded is not None
    assert loaded[0]["steps"] == 81
