"""Cell files: what was written is found again, and what is damaged is set aside, never believed."""

from __future__ import annotations

import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from rdeepsense.comparison.statistics import REGRESSION, MethodScore
from rdeepsense.comparison.trial import FamilyTrial
from rdeepsense.errors import InputError
from rdeepsense.paper.cells import read_cell, write_cell
from rdeepsense.paper.run import FinishedCell
from rdeepsense.paper.scores import AlphaTraining

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))  # every digit in each of its nine other values
KEY = {"dataset": "yacht", "split": 3, "arguments": {"hidden": [50], "alpha": "auto"}}
FIGURES = {name: 0.1234567890123 * 3**number for number, name in enumerate(REGRESSION)}
TRIAL = FamilyTrial(
    fit_seconds=1.25,
    chosen={"alpha": 0.3},
    warnings=["few rows: 45"],
    methods={"SSP-1": MethodScore(FIGURES, [3, 5, 8], 0.5)},
)
TRAINING = FinishedCell(
    AlphaTraining({"nll": 0.71828, "mae": 31.4159}, [], {"nll": [0.5, 0.25]}), 12.5, "2024-02-29"
)
RECORDS = {"benchmark": TRIAL, "study": TRAINING}


@pytest.fixture(params=list(RECORDS))
def record(request: pytest.FixtureRequest) -> Any:
    return RECORDS[request.param]


@pytest.fixture
def path(tmp_path: Path, record: Any) -> Path:
    write_cell(tmp_path / "cell.json", KEY, record.to_json())
    return tmp_path / "cell.json"


def read(path: Path, record: Any) -> tuple[Any, list[str]]:
    """What is read from a cell's file, and the warnings of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_cell(path, KEY, type(record).from_json)
    return found, [str(own.message) for own in caught]


def check_refused(path: Path, data: bytes, record: Any) -> str:
    """Check that `data` is set aside as it is and that the cell, written again, is found."""
    path.write_bytes(data)
    found, warned = read(path, record)
    assert found is None, data
    assert len(warned) == 1
    assert warned[0].startswith(f"{path}: is damaged (")
    aside = path.with_name("cell.json.damaged")
    assert not path.exists()
    assert aside.read_bytes() == data
    aside.unlink()
    write_cell(path, KEY, record.to_json())
    assert read(path, record) == (record, [])
    return warned[0]


def test_what_was_written_is_found(path: Path, record: Any) -> None:
    assert read(path, record) == (record, [])
    assert len(json.loads(path.read_text())["sha256"]) == 64
    assert read(path.with_name("none.json"), record) == (None, [])


def test_every_changed_digit_is_noticed(path: Path, record: Any) -> None:
    text, draw = path.read_text(), random.Random(0)
    places = [number for number, letter in enumerate(text) if letter.isdigit()]
    for place in places if LONG else draw.sample(places, 60):
        others = [digit for digit in "0123456789" if digit != text[place]]
        for digit in others if LONG else draw.sample(others, 1):
            changed = text[:place] + digit + text[place + 1 :]
            if _equal(changed, text):
                continue  # the 17th digit of a number need not change it
            check_refused(path, changed.encode(), record)


def _equal(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_every_cut_is_noticed(path: Path, record: Any) -> None:
    data = path.read_bytes()
    whole = len(data.rstrip())
    for length in range(0, whole, 1 if LONG else 7):
        check_refused(path, data[:length], record)
    path.write_bytes(data[:whole])
    assert read(path, record) == (record, [])


def test_the_cell_of_another_key_is_refused(path: Path, record: Any) -> None:
    other = path.with_name("other.json")
    write_cell(other, {**KEY, "split": 4}, record.to_json())
    assert "it is of another cell" in check_refused(path, other.read_bytes(), record)
    content = json.loads(other.read_text())
    forged = json.dumps({**content, "key": KEY}).encode()
    assert "checksum" in check_refused(path, forged, record)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 40, b"\xff\xfe{}", b"[]", b"null", b"{}", b"1e999", b"[" * 100_000],
    ids=["empty", "zeros", "not UTF-8", "list", "null", "no keys", "infinity", "deep"],
)
def test_files_of_another_form_are_refused(path: Path, record: Any, data: bytes) -> None:
    check_refused(path, data, record)


def test_files_without_a_checksum_are_read_strictly(path: Path, record: Any) -> None:
    content = json.loads(path.read_text())
    signed = {**content, "sha256": None}
    assert "checksum" in check_refused(path, json.dumps(signed).encode(), record)
    del content["sha256"]
    path.write_text(json.dumps(content))
    assert read(path, record) == (record, [])
    first = next(name for name in record.to_json())
    for changed in (
        {name: value for name, value in content.items() if name != first},
        {**content, first: "text"},
        {**content, "unknown": 1},
        {**content, first: float("nan")},
    ):
        check_refused(path, json.dumps(changed).encode(), record)


def test_earlier_damaged_files_are_kept(path: Path, record: Any) -> None:
    for number in range(3):
        path.write_text(f"damage {number}")
        assert read(path, record)[0] is None
    kept = {own.name: own.read_text() for own in path.parent.iterdir()}
    assert kept == {
        "cell.json.damaged": "damage 0",
        "cell.json.damaged-2": "damage 1",
        "cell.json.damaged-3": "damage 2",
    }


def test_a_score_names_the_figures_it_lacks() -> None:
    score = TRIAL.methods["SSP-1"].to_json()
    assert MethodScore.from_json(score) == TRIAL.methods["SSP-1"]
    del score["nll"], score["crps"]
    with pytest.raises(InputError, match="MethodScore: lacks nll, crps"):
        MethodScore.from_json(score)
