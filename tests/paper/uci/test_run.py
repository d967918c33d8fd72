"""Cells: run once, found again, run again when a setting changes, failures kept apart."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from rdeepsense._progress import Silent
from rdeepsense.arrays import Floats
from rdeepsense.comparison.baselines import BoostedPeer, Rows
from rdeepsense.comparison.methods import FAMILIES, parse_all
from rdeepsense.comparison.trial import PEERS, run_trial
from rdeepsense.engines import Local
from rdeepsense.errors import InputError, TrainingError
from rdeepsense.paper import uci
from rdeepsense.paper.cells import VERSION
from rdeepsense.paper.uci import BenchmarkCell, cells_of, find, load, run_cells

METHODS = ("RDeepSense-quick", "MCDrop-3-paper", "SSP-1", "SSP-2")


def cells(
    data: Path, methods: tuple[str, ...] = METHODS, seed: int = 0, splits: list[int] | None = None
) -> list[BenchmarkCell]:
    sets = [load(path) for path in find(data)]
    return cells_of(sets, splits, parse_all(methods), (4,), seed, epochs=1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trials that were really run."""
    made: list[str] = []

    def counted(methods: Any, *args: Any, **options: Any) -> Any:
        made.append(methods[0].family)
        return run_trial(methods, *args, **options)

    monkeypatch.setattr(uci, "run_trial", counted)
    return made


def untimed(folder: Path) -> dict[str, Any]:
    """All cell files without the seconds in them, and the checksum, which follows from them."""
    text = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    for cell in text.values():
        del cell["fit_seconds"], cell["sha256"]
        for figures in cell["methods"].values():
            del figures["predict_seconds"]
    return text


def test_order_and_unknown_splits(data: Path) -> None:
    found = cells(data)
    assert [(c.split, c.data.name) for c in found[::3]] == [
        (0, "wine-small"), (0, "yacht"), (1, "wine-small"), (1, "yacht"),
    ]  # fmt: skip
    assert [c.family for c in found[:3]] == ["RDeepSense-quick", "MCDrop-paper", "SSP"]
    assert {c.split for c in cells(data, splits=[1])} == {1}
    with pytest.raises(InputError, match="wine-small: has splits 0 to 1; got 2"):
        cells(data, splits=[0, 2])


@pytest.mark.slow
def test_finished_cells_are_not_run_again(data: Path, tmp_path: Path, calls: list[str]) -> None:
    folder = tmp_path / "cells"
    first = run_cells(cells(data), folder, Local(), Silent())
    assert (len(first.done), first.ran, len(calls)) == (12, 12, 12)
    assert len(list(folder.iterdir())) == 12
    before = untimed(folder)

    again = run_cells(cells(data), folder, Local(), Silent())
    assert (len(again.done), again.ran, len(calls)) == (12, 0, 12)

    next(folder.glob("yacht-01-SSP-*.json")).unlink()
    next(folder.glob("yacht-00-MCDrop-paper-*.json")).write_text('{"half of a fi')
    with pytest.warns(UserWarning, match="yacht-00-MCDrop-paper-.*json: is damaged"):
        mended = run_cells(cells(data), folder, Local(), Silent())
    assert (mended.ran, sorted(calls[12:])) == (2, ["MCDrop-paper", "SSP"])
    assert untimed(folder) == before  # the same to the last bit
    assert [c.file_name for c, _ in mended.done] == [c.file_name for c in cells(data)]


def test_a_changed_figure_is_never_reported(data: Path, tmp_path: Path, calls: list[str]) -> None:
    folder = tmp_path / "cells"
    some = cells(data, ("SSP-1",), splits=[0])
    first = run_cells(some, folder, Local(), Silent())
    path, other = (folder / cell.file_name for cell in some)
    text = path.read_text()
    changed = re.sub(r'("nll": -?)(\d)', lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text)
    path.write_text(changed)
    other.write_bytes(text.encode())  # the sound cell of another data set
    with pytest.warns(UserWarning, match="is damaged") as warned:
        mended = run_cells(some, folder, Local(), Silent())
    assert ["checksum" in str(own.message) for own in warned] == [True, False]
    assert "it is of another cell" in str(warned[1].message)
    assert (mended.ran, len(calls)) == (2, 4)
    for (_, ours), (_, theirs) in zip(mended.done, first.done, strict=True):
        assert ours.methods["SSP-1"].figures == theirs.methods["SSP-1"].figures
    assert len(list(folder.glob("*.json.damaged"))) == 2
    assert run_cells(some, folder, Local(), Silent()).ran == 0


def test_a_changed_setting_is_another_cell(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cells(data, ("RDeepSense-quick",), splits=[0])[:1]
    run_cells(one, tmp_path / "cells", Local(), Silent())
    assert one[0].key["version"] == VERSION
    other_seed = cells(data, ("RDeepSense-quick",), seed=7, splits=[0])[:1]
    assert other_seed[0].file_name != one[0].file_name
    assert run_cells(other_seed, tmp_path / "cells", Local(), Silent()).ran == 1
    assert run_cells(one, tmp_path / "cells", Local(), Silent()).ran == 0
    monkeypatch.setattr(uci, "VERSION", "another one")
    of_another_version = cells(data, ("RDeepSense-quick",), splits=[0])[:1]
    assert run_cells(of_another_version, tmp_path / "cells", Local(), Silent()).ran == 1


def test_more_methods_of_a_model_join_its_cell(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cells"
    three, two = ("SSP-1", "SSP-3"), ("SSP-2", "SSP-3")
    run_cells(cells(data, three, splits=[0])[:1], folder, Local(), Silent())
    joined = run_cells(cells(data, two, splits=[0])[:1], folder, Local(), Silent())
    assert joined.ran == 1
    kept = json.loads(next(folder.iterdir()).read_text())
    assert sorted(kept["methods"]) == ["SSP-1", "SSP-2", "SSP-3"]
    assert run_cells(cells(data, three, splits=[0])[:1], folder, Local(), Silent()).ran == 0


def test_a_failed_cell_does_not_stop_the_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(methods: Any, *args: Any, **options: Any) -> Any:
        if methods[0].family == "SSP":
            raise TrainingError("no usable\nnetwork")
        return run_trial(methods, *args, **options)

    monkeypatch.setattr(uci, "run_trial", failing)
    outcome = run_cells(cells(data, splits=[0])[:3], tmp_path / "cells", Local(), Silent())
    assert [cell.family for cell, _ in outcome.done] == ["RDeepSense-quick", "MCDrop-paper"]
    assert [(cell.family, failure.reason) for cell, failure in outcome.failed] == [
        ("SSP", "no usable network")
    ]
    assert not list((tmp_path / "cells").glob("*SSP*"))


@pytest.mark.ray
def test_processes_give_the_same_figures(data: Path, tmp_path: Path) -> None:
    some = cells(data, ("RDeepSense-quick", "SSP-1"), splits=[0])[:2]
    run_cells(some, tmp_path / "here", Local(), Silent())
    outcome = run_cells(some, tmp_path / "there", Local(2), Silent())
    assert outcome.ran == 2
    assert untimed(tmp_path / "here") == untimed(tmp_path / "there")


class Peer(BoostedPeer):
    """Stands for CatBoost, which may not be installed."""

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        return 1

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        return X[:, 0], np.ones(len(X))


def test_cells_of_a_peer_are_known_by_its_library(
    data: Path, tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = replace(FAMILIES["CatBoost"], library="scipy")  # one that is there
    monkeypatch.setitem(FAMILIES, "CatBoost", library)
    monkeypatch.setitem(PEERS, "CatBoost", Peer)
    methods = ("catboost", "RDeepSense-quick")
    first = run_cells(cells(data, methods, splits=[0]), tmp_path, Local(), Silent())
    assert [cell.family for cell, _ in first.done[:2]] == ["CatBoost", "RDeepSense-quick"]
    (cell, trial), (other, _) = first.done[:2]
    assert cell.key["library"] == f"scipy {scipy.__version__}"
    assert "library" not in other.key
    assert trial.chosen is not None
    assert trial.chosen["trees"] == 1
    assert run_cells(cells(data, methods, splits=[0]), tmp_path, Local(), Silent()).ran == 0
    monkeypatch.setattr(uci.metadata, "version", lambda _: "99")
    assert run_cells(cells(data, methods, splits=[0]), tmp_path, Local(), Silent()).ran == 2
    assert calls.count("CatBoost") == 4
    assert calls.count("RDeepSense-quick") == 2
