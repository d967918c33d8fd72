"""Joblib: on its default backend, and on one that gives all results at the end."""

from __future__ import annotations

from pathlib import Path

import joblib
import pytest
from joblib._parallel_backends import ThreadingBackend
from pieces_of_work import Dying, Square, Threads

import rdeepsense as rds
from rdeepsense.engines import Failure

WORK = [Square(3), Square(-1), Square(4)]
FOUND = [(0, 9), (1, Failure("no number below 0")), (2, 16)]


class AtTheEnd(ThreadingBackend):
    """Stands for a backend that cannot give results as they come."""

    supports_return_generator = False


joblib.register_parallel_backend("at-the-end", AtTheEnd)


def by_number(found: tuple[int, object]) -> int:
    return found[0]


@pytest.mark.slow
def test_the_default_backend() -> None:
    assert sorted(rds.Joblib(2).run_each(WORK), key=by_number) == FOUND
    assert dict(rds.Joblib(2).run_each([Threads(), Threads()])) == {0: 1, 1: 1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_backend_that_is_active(jobs: int) -> None:
    with joblib.parallel_config(backend="at-the-end", n_jobs=jobs):
        assert sorted(rds.Joblib().run_each(WORK), key=by_number) == FOUND


@pytest.mark.ray
def test_jobs_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    from rdeepsense import engines as module

    asked = []

    class Spy(joblib.Parallel):
        def __init__(self, n_jobs: int, **options: object) -> None:
            asked.append(n_jobs)
            super().__init__(n_jobs=1, **options)

    monkeypatch.setattr(module, "Parallel", Spy)
    list(rds.Joblib().run_each(WORK))
    with joblib.parallel_config(n_jobs=3):
        list(rds.Joblib().run_each(WORK))
        list(rds.Joblib(2).run_each(WORK))
    assert asked == [-1, 3, 2]
    with pytest.raises(rds.InputError, match="jobs = 0; accepted: None, -1 or a number"):
        rds.Joblib(0)


@pytest.mark.ray
def test_a_worker_that_dies_is_told(tmp_path: Path) -> None:
    work = [Dying(tmp_path / "log", 9), Square(1)]
    with pytest.raises(rds.RDeepSenseError, match="run the same again to go on"):
        list(rds.Joblib(2).run_each(work))
