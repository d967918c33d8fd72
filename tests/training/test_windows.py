"""Windows: every row once an epoch, the same wherever one begins, trained like a table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from stopping import StopAt, StopError
from torch import Tensor

from rdeepsense.dropout import convert
from rdeepsense.errors import CheckpointError, InputError
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, StreamedRows, Windows, stack, train

COUNTS = [7, 30, 1, 12, 50]
X = torch.arange(100.0)[:, None]


def read(part: int) -> tuple[Tensor, Tensor]:
    start = sum(COUNTS[:part])
    rows = X[start : start + COUNTS[part]]
    return rows, -rows


def numbers(windows: Windows, count: int) -> list[float]:
    return [v for n in range(count) for v in windows.window(n)[0][:, 0].tolist()]


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("size", [1, 16, 25, 100])
def test_every_row_comes_once_an_epoch_in_an_order_of_its_own(size: int, readers: int) -> None:
    windows = Windows(COUNTS, read, size, seed=1, readers=readers)
    stream = numbers(windows, 300 // size + 1)[:300]
    windows.close()
    epochs = [stream[i : i + 100] for i in (0, 100, 200)]
    assert all(sorted(epoch) == X[:, 0].tolist() for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_part_that_two_windows_share_is_read_once() -> None:
    seen: list[int] = []

    def noting(part: int) -> tuple[Tensor, Tensor]:
        seen.append(part)
        return read(part)

    windows = Windows(COUNTS, noting, 20, seed=1, readers=2)
    for number in range(5):
        windows.window(number)
    windows.close()
    assert sorted(seen[: len(COUNTS)]) == list(range(len(COUNTS)))


def test_readers_at_work_together_give_the_same_windows() -> None:
    one, four = (Windows(COUNTS, read, 30, seed=2, readers=k) for k in (1, 4))
    for number in range(8):
        assert torch.equal(one.window(number)[0], four.window(number)[0])
    one.close()
    four.close()


def test_a_window_is_the_same_whether_or_not_those_before_it_were_read() -> None:
    windows = Windows(COUNTS, read, 16, seed=1)
    in_turn = [windows.window(n) for n in range(20)]
    other = Windows(COUNTS, read, 16, seed=1)
    for n in (13, 5, 19):
        x, y = other.window(n)
        assert torch.equal(x, in_turn[n][0])
        assert torch.equal(y, -x)
    windows.close()
    other.close()


def test_a_window_must_fit_and_parts_must_stay_as_they_were() -> None:
    with pytest.raises(InputError, match="a window of 101 rows does not fit the 100 rows"):
        Windows(COUNTS, read, 101, seed=1)
    changed = Windows([8, *COUNTS[1:]], read, 101, seed=1)
    with pytest.raises(InputError, match="part 0 has 7 rows, it had 8"):
        changed.window(0)
    changed.close()


def streamed(noise: Tensor, size: int, description: str = "d") -> StreamedRows:
    """600 rows of a sine in six parts."""
    x = torch.linspace(-2, 2, 600)[:, None].repeat(1, 3)
    y = x[:, :1].sin() + noise
    windows = Windows([100] * 6, lambda p: (x[p::6], y[p::6]), size, seed=0)
    static = torch.zeros(size, 3), torch.zeros(size, 1)
    return StreamedRows(*static, windows=windows, description=description)


SCHEDULE = Schedule(200, 32, 5e-3, evaluate_every=20, patience=99, seed=0)


def run(rows: Rows, **options: object) -> tuple[dict[str, Tensor], float]:
    torch.manual_seed(0)
    bank = stack([convert(dense(3, (16,), 1), drop_prob=0.05)])
    x = torch.linspace(-2, 2, 99)[:, None].repeat(1, 3)
    held = Rows(x, x[:, :1].sin())
    record = train(bank, ScoringRule([0.5]), [0.0], rows, held, SCHEDULE, **options)  # type: ignore[arg-type]
    return bank.kept, record.best_nll[0]


def test_a_stream_is_trained_like_a_table() -> None:
    noise = 0.1 * torch.randn(600, 1, generator=torch.Generator().manual_seed(0))
    kept, nll = run(streamed(noise, 192))
    again, _ = run(streamed(noise, 192))
    assert all(torch.equal(kept[name], again[name]) for name in kept)
    x, y = streamed(noise, 600).windows.window(0)
    _, whole = run(Rows(x, y))
    assert nll == pytest.approx(whole, abs=0.2)
    assert nll < 0


def test_a_stream_is_taken_up_in_the_middle_and_only_its_own(tmp_path: Path) -> None:
    noise = 0.1 * torch.randn(600, 1, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "state"

    with pytest.raises(StopError):
        run(streamed(noise, 192), checkpoint=path, progress=StopAt(100))
    with pytest.raises(CheckpointError, match="other data"):
        run(streamed(noise, 192, "another folder"), checkpoint=path)
    resumed, _ = run(streamed(noise, 192), checkpoint=path)
    whole, _ = run(streamed(noise, 192))
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
