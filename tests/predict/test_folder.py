"""A folder of Parquet becomes another one: in order, whole files, resumed shard by shard."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from predict.models import regressor, table

from rdeepsense._progress import Silent
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.engines import Local
from rdeepsense.errors import InputError
from rdeepsense.predict import folder
from rdeepsense.predict.columns import OutputColumns
from rdeepsense.predict.folder import Shard, predict_shards, shards_of, sources_of
from rdeepsense.predict.plan import Plan, Preparation


@pytest.fixture
def rows(tmp_path: Path) -> pl.DataFrame:
    """Write a folder `in` of three files, one of them empty, and a model.

    The columns of the files are not in the order of the model's inputs.
    """
    frame = table(500, seed=3).drop("site").with_columns(id=pl.int_range(500), more=pl.lit("x"))
    (tmp_path / "in").mkdir()
    for name, part in (("a", frame[:120]), ("b", frame[:0]), ("c", frame[120:])):
        place = tmp_path / "in" / f"{name}.parquet"
        part.select("more", "b", "id", "a").write_parquet(place, row_group_size=50)
    regressor().save(tmp_path / "m")
    return frame


def plan_of(folder: Path, **options: object) -> Plan:
    return Preparation(str(folder / "m"), OutputColumns(**options), "torch").plan()  # type: ignore[arg-type]


def shards(folder: Path, plan: Plan, at_once: int = 33, threads: int = 2) -> list[Shard]:
    (folder / "out").mkdir(exist_ok=True)
    sources = sources_of(ParquetTable(folder / "in"))
    return shards_of(sources, folder / "out", plan, ("id",), at_once, threads)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}


def test_every_row_in_its_place(rows: pl.DataFrame, tmp_path: Path) -> None:
    done = predict_shards(shards(tmp_path, plan_of(tmp_path)), None, Silent(), False)
    assert (done.tally.rows, done.shards, done.kept) == (500, 3, 0)
    assert list(contents(tmp_path)) == ["a.parquet", "b.parquet", "c.parquet"]
    found = pl.concat([pl.read_parquet(tmp_path / "out" / f"{n}.parquet") for n in "abc"])
    assert found["id"].to_list() == list(range(500))
    expected = regressor().predict_dist(rows.select("a", "b"))
    np.testing.assert_allclose(found["mean_heat"], expected.mean, rtol=1e-5)
    np.testing.assert_allclose(found["std_heat"], expected.std, rtol=1e-5)
    assert pl.read_parquet(tmp_path / "out" / "b.parquet").schema == found.schema


def test_large_files_are_several_shards(
    rows: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "SHARD_ROWS", 120)
    predict_shards(shards(tmp_path, plan_of(tmp_path)), None, Silent(), False)
    names = ["a.parquet", "b.parquet", *(f"c-{k:05}.parquet" for k in range(4))]
    assert list(contents(tmp_path)) == names
    found = pl.concat([pl.read_parquet(tmp_path / "out" / name) for name in names])
    assert found["id"].to_list() == list(range(500))


def test_what_is_done_is_not_done_again(
    rows: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path)
    predict_shards(shards(tmp_path, plan), None, Silent(), False)
    before = contents(tmp_path)
    ran: list[str] = []
    run = Shard.run
    monkeypatch.setattr(
        Shard, "run", lambda self, report=None: ran.append(self.target.name) or run(self, report)
    )
    again = predict_shards(shards(tmp_path, plan), None, Silent(), False)
    assert (again.kept, again.tally.rows, ran) == (3, 0, [])
    (tmp_path / "out" / "a.parquet").unlink()
    predict_shards(shards(tmp_path, plan), None, Silent(), False)
    assert ran == ["a.parquet"]
    assert contents(tmp_path) == before
    # Other options, another model, another source or half a file: it is done, if it may be.
    for changed in (plan_of(tmp_path, coverage=0.5), replace(plan, digest="0" * 64)):
        ran.clear()
        with pytest.raises(InputError, match="of another model, other rows or options"):
            predict_shards(shards(tmp_path, changed), None, Silent(), False)
        predict_shards(shards(tmp_path, changed), None, Silent(), True)
        assert len(ran) == 3
    ran.clear()
    rows[:120].reverse().write_parquet(tmp_path / "in" / "a.parquet")
    (tmp_path / "out" / "c.parquet").write_bytes(before["c.parquet"][:-9])
    predict_shards(shards(tmp_path, replace(plan, digest="0" * 64)), None, Silent(), True)
    assert ran == ["a.parquet", "c.parquet"]


def test_a_stopped_shard_leaves_nothing(rows: pl.DataFrame, tmp_path: Path) -> None:
    def stop(written: int) -> None:
        if written > 60:
            raise KeyboardInterrupt

    shard = shards(tmp_path, plan_of(tmp_path))[2]
    with pytest.raises(KeyboardInterrupt):
        shard.run(stop)
    assert contents(tmp_path) == {}


def test_processes_write_the_same_bytes(rows: pl.DataFrame, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    predict_shards(shards(tmp_path, plan), None, Silent(), False)
    before = contents(tmp_path)
    done = predict_shards(shards(tmp_path, plan, threads=1), _Elsewhere(), Silent(), True)
    assert done.kept == 3
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    done = predict_shards(shards(tmp_path, plan, threads=1), _Elsewhere(), Silent(), False)
    assert done.tally.rows == 500
    assert contents(tmp_path) == before


class _Elsewhere(Local):
    """An engine that sends work as one of other machines would, and does the last piece first."""

    def run_each(self, work):  # type: ignore[no-untyped-def]
        sent = pickle.loads(pickle.dumps(work[::-1]))
        yield from ((len(work) - 1 - k, one) for k, one in super().run_each(sent))


@pytest.mark.skipif(not os.environ.get("RDEEPSENSE_LONG"), reason="starts torch twice")
def test_real_processes(rows: pl.DataFrame, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    predict_shards(shards(tmp_path, plan), None, Silent(), False)
    before = contents(tmp_path)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    predict_shards(shards(tmp_path, plan, threads=1), Local(2), Silent(), False)
    assert contents(tmp_path) == before


def test_failures_name_the_file_and_keep_the_others(rows: pl.DataFrame, tmp_path: Path) -> None:
    rows[:9].with_columns(a=pl.lit("what")).write_parquet(tmp_path / "in" / "a.parquet")
    rows[:9].drop("more").write_parquet(tmp_path / "in" / "c.parquet")
    rows[:9].drop("more").write_parquet(tmp_path / "in" / "b.parquet")
    plan = plan_of(tmp_path)
    (tmp_path / "out").mkdir()
    sources = [sources_of(ParquetTable(tmp_path / "in" / f"{n}.parquet"))[0] for n in "abc"]
    made = shards_of(sources, tmp_path / "out", plan, (), 4, 1)
    with pytest.raises(InputError, match=r"1 of 3 shards have failed.*a\.parquet: column 'a'"):
        predict_shards(made, Local(), Silent(), False)
    assert list(contents(tmp_path)) == ["b.parquet", "c.parquet"]


def test_the_record_says_what_was_done(rows: pl.DataFrame, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    shard = shards(tmp_path, plan)[0]
    shard.run()
    text = pq.read_metadata(tmp_path / "out" / "a.parquet").metadata[b"rdeepsense"]
    found = json.loads(text)
    assert found["model"] == plan.digest
    assert found["source"][0] == "a.parquet"
    assert str(tmp_path) not in text.decode()
