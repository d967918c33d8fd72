"""Steps on a GPU: a recorded step is the step; what cannot be recorded is still trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from stopping import StopAt, StopError
from torch import Tensor, nn

from rdeepsense.dropout import convert
from rdeepsense.networks import Periodic, dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Bank, Rows, Schedule, TrainingRecord, stack, train
from rdeepsense.uncertainty import by_sampling

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def table() -> tuple[Tensor, Tensor]:
    own = torch.Generator().manual_seed(0)
    X = torch.randn(4_500, 3, generator=own)
    return X, X[:, :1].sin() + 0.3 * torch.randn(4_500, 1, generator=own)


X, Y = table()
SCHEDULE = Schedule(
    steps=120, batch_size=64, learning_rate=2e-3, evaluate_every=40, patience=9, seed=3
)


def run(
    mode: str | None,
    schedule: Schedule = SCHEDULE,
    own: Callable[[], nn.Module] | None = None,
    **options: object,
) -> tuple[Bank, TrainingRecord]:
    networks = []
    for member in range(2):
        torch.manual_seed(member)
        body = dense(3, (64, 64), 1) if own is None else own()
        networks.append(convert(body, drop_prob=0.1 * (member + 1)))
    bank = stack(networks)
    rows = Rows(X[:4_000].cuda(), Y[:4_000].cuda())
    held = Rows(X[4_000:].cuda(), Y[4_000:].cuda())
    rule = ScoringRule([0.5, 0.0])
    return bank, train(bank, rule, [1e-2, 0.0], rows, held, schedule, mode=mode, **options)  # type: ignore[arg-type]


def assert_same(a: Bank, b: Bank) -> None:
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=0)
    assert all(torch.equal(a.kept[name], b.kept[name]) for name in a.kept)


def test_a_recorded_step_is_the_step() -> None:
    """Over more than an epoch, an odd last batch and evaluations: equal to the bit."""
    eager, first = run("eager")
    captured, second = run("captured")
    assert_same(eager, captured)
    assert first.history == second.history


def test_periodic_embeddings_are_recorded_too() -> None:
    def made() -> nn.Module:
        return Periodic((32,), 6, 4).build((3,), 1, 0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(run("eager", own=made)[0], run(None, own=made)[0])


def test_adversarial_steps_are_recorded_too() -> None:
    schedule = replace(SCHEDULE, adversarial=0.01)
    assert_same(run("eager", schedule)[0], run(None, schedule)[0])


def test_a_compiled_step_draws_its_own_masks_and_learns_the_same() -> None:
    schedule = replace(SCHEDULE, steps=1_500, evaluate_every=100)
    eager = [run("eager", replace(schedule, seed=s))[1].best_nll for s in range(3)]
    compiled = [run("compiled", replace(schedule, seed=s))[1].best_nll for s in range(3)]
    torch.testing.assert_close(
        torch.tensor(compiled).mean(0), torch.tensor(eager).mean(0), rtol=0, atol=0.03
    )


def test_an_interrupted_recording_is_taken_up_to_the_bit(tmp_path: Path) -> None:
    whole = run("captured")[0]
    path = tmp_path / "state"

    with pytest.raises(StopError):
        run("captured", checkpoint=path, progress=StopAt(80))
    resumed, record = run("captured", checkpoint=path)
    assert record.resumed_at is not None
    assert_same(whole, resumed)


class Asking(nn.Module):
    """Looks at its numbers on the way, which no recording can hold."""

    def __init__(self) -> None:
        super().__init__()
        self.body = dense(3, (16,), 1)

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.sum().item() == 0:
            return self.body(2 * x)
        return self.body(x)


def test_what_cannot_be_recorded_is_trained_kernel_by_kernel_and_said() -> None:
    with pytest.warns(UserWarning, match="cannot be recorded as a CUDA graph"):
        fallen, _ = run(None, own=Asking)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(fallen, run("eager", own=Asking)[0])
        assert_same(run("eager")[0], run("captured")[0])  # and the next one is recorded again


def test_the_callers_precision_and_random_numbers_are_left_alone() -> None:
    torch.set_float32_matmul_precision("highest")
    bank = stack([convert(dense(3, (64,), 1), drop_prob=0.1)])
    rows = Rows(X.cuda(), Y.cuda())
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(5)
    train(bank, ScoringRule([0.5]), [0.0], rows, rows, SCHEDULE)
    assert torch.equal(torch.rand(3, device="cuda"), expected)
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.filterwarnings("ignore:this network's training step cannot be recorded")
def test_threads_train_and_sample_as_one_thread_does() -> None:
    """Recording, replaying, validating and sampling side by side, to the bit."""
    moulds = [[convert(dense(3, (64, 64), 1), drop_prob=d) for _ in range(2)] for d in (0.1, 0.2)]
    moulds.append([convert(Asking(), drop_prob=0.1)])  # of the user's own, and not recorded

    def job(number: int) -> list[Tensor]:
        networks = moulds[number % 3]
        bank, rows = stack(networks), Rows(X.cuda(), Y.cuda())
        weights = [0.5] * len(networks)
        train(bank, ScoringRule(weights), weights, rows, rows, replace(SCHEDULE, seed=number))
        network = bank.networks()[0].cuda()
        return [*bank.kept.values(), by_sampling(network, X[:50].cuda(), seed=number)[1]]

    before = torch.cuda.get_rng_state()
    alone = [job(number) for number in range(9)]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(job, range(9)))
    for a, b in zip(alone, beside, strict=True):
        assert all(map(torch.equal, a, b))
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_early_stopping_ends_a_recorded_run() -> None:
    schedule = replace(SCHEDULE, steps=4_000, learning_rate=0.3, evaluate_every=10, patience=3)
    _, record = run("captured", schedule)
    assert record.steps < 4_000
