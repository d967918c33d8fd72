"""Ray tasks: as `Local`, whoever dies is replaced, and what nobody waits for ends."""

from __future__ import annotations

import json
import os
import select
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from pieces_of_work import Dying, Endless, Mistaken, Square, Threads

import rdeepsense as rds
from rdeepsense import engines
from rdeepsense._progress import Silent
from rdeepsense.comparison.methods import parse_all
from rdeepsense.engines import Failure, check_reachable, environment
from rdeepsense.paper.cells import CHECKSUM
from rdeepsense.paper.uci import DataSet, cells_of, run_cells

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("two_cores")]


def test_each_piece_has_its_result_or_its_failure() -> None:
    work = [Square(number) for number in (3, -1, *range(20))]
    found = dict(rds.Ray().run_each(work))
    assert found[1] == Failure("no number below 0")
    assert [found[0], *(found[number] for number in range(2, 22))] == [
        9,
        *(n * n for n in range(20)),
    ]
    assert list(rds.Ray().run_each([])) == []


def test_torch_has_one_thread() -> None:
    assert list(rds.Ray().run_each([Threads()])) == [(0, 1)]


def test_few_pieces_are_given_out_ahead() -> None:
    given = 0

    @dataclass
    class Counted:
        def __reduce__(self) -> Any:
            nonlocal given
            given += 1
            return Square, (2,)

        def run(self) -> int:
            raise NotImplementedError

    for workers, most in ((None, 2 * engines.AHEAD), (1, 1)):
        given = 0
        results = rds.Ray(workers).run_each([Counted() for _ in range(50)])
        assert next(results)[1] == 4
        assert given == most
        results.close()  # type: ignore[attr-defined]


def test_a_lost_worker_is_replaced(tmp_path: Path) -> None:
    work = [Dying(tmp_path / "once", 1), Square(2), Dying(tmp_path / "twice", 2)]
    assert sorted(rds.Ray(failures=2).run_each(work)) == [(0, 2), (1, 4), (2, 3)]


def test_who_dies_again_and_again_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(rds.RDeepSenseError, match=r"WorkerCrashedError.*run the same again to go"):
        list(rds.Ray(failures=1).run_each([Dying(log, 9)]))
    assert log.read_text() == "xx"


def test_a_mistake_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError, match="a mistake of the piece itself"):
        list(rds.Ray().run_each([Mistaken()]))


def test_what_nobody_waits_for_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    results = rds.Ray(workers=2).run_each([Square(1), Endless(pipe)])
    assert next(results) == (0, 1)
    number = int(pipe.read_text())
    handle = os.pidfd_open(number)
    results.close()  # type: ignore[attr-defined]
    assert select.select([handle], [], [], 60)[0]  # readable when the process has ended
    os.close(handle)


def test_joblib_on_the_backend_of_ray() -> None:
    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        found = dict(rds.Joblib().run_each([Square(3), Square(-1), Square(4)]))
    assert found == {0: 9, 1: Failure("no number below 0"), 2: 16}


def test_compare_gives_the_same_on_ray() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    options: dict[str, Any] = {"hidden": (4,), "epochs": 1, "verbose": False, "splits": 2}
    methods = ("RDeepSense-quick", "MCDrop-3-paper", "MCDrop-2-paper")
    here, there = (
        rds.compare(X, y, methods, engine=engine, **options).to_json() for engine in (None, "ray")
    )
    assert untimed(here) == untimed(there)


def test_cells_are_written_by_the_workers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(45, 2))
    test = np.argsort(rng.random((3, 45)), axis=1) < 9
    data = DataSet("one", x, x[:, 0] + rng.normal(size=45), test, "of it")
    cells = cells_of([data], None, parse_all(["SSP-1"]), (4,), 0, epochs=1)
    runs = {
        name: run_cells(cells, tmp_path / name, engine, Silent())
        for name, engine in (("here", rds.Local()), ("there", rds.Ray()))
    }
    assert runs["there"].ran == 3
    here, there = (
        {path.name: untimed(json.loads(path.read_text())) for path in (tmp_path / name).iterdir()}
        for name in runs
    )
    assert here == there
    assert run_cells(cells, tmp_path / "there", rds.Ray(), Silent()).ran == 0


def untimed(value: object) -> object:
    """Take out all seconds, and the checksum over them."""
    if isinstance(value, dict):
        timed = [name for name in value if "seconds" in name or name == CHECKSUM]
        return {name: untimed(own) for name, own in value.items() if name not in timed}
    return [untimed(own) for own in value] if isinstance(value, list) else value


def test_an_address_where_nobody_answers() -> None:
    with pytest.raises(rds.RDeepSenseError, match="address = 'localhost:1' does not answer"):
        check_reachable("localhost:1")
    check_reachable("auto")


def test_workers_find_the_source() -> None:
    source, installed = (
        environment(Path(place) / "rdeepsense")["env_vars"]
        for place in ("/a/src", "/a/lib/site-packages")
    )
    assert source["PYTHONPATH"] == f"/a/src{os.pathsep}${{PYTHONPATH}}"
    assert "PYTHONPATH" not in installed
