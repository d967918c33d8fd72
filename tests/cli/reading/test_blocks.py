"""Blocks of CSV are whole lines, whatever is quoted in them, and say when they are no use."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rdeepsense.cli.predict import BlockedCsv, NotInBlocksError, look_at
from rdeepsense.cli.reading.table import read_table


@pytest.mark.parametrize("seed", range(20))
def test_blocks_together_are_the_table(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    words = ["north", 'say "so"', "two\nlines", "a,b", "  wide ", "NA", "", "ä"]
    rows = int(rng.integers(3, 60))
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=rows),
            "text": rng.choice(words, rows),
            "y": [None if gap else 1.5 for gap in rng.random(rows) < 0.2],
            "last": np.arange(rows),
        }
    )
    path, end = tmp_path / "t.csv", "\r\n" if seed % 2 else "\n"
    text = io.BytesIO()
    frame.write_csv(text, line_terminator=end, separator=";" if seed % 3 else ",")
    path.write_bytes(text.getvalue() + b"\n" * (seed % 4))
    csv = BlockedCsv.open(path)
    parts = [
        csv.read(block, ["x", "y"], ["text"], ["1.5"])
        for block in csv.blocks(int(rng.integers(1, 400)))
    ]
    found = pl.concat([part.frame for part in parts])
    expected = read_table(path, ["1.5"]).frame.select(pl.col("x", "y").cast(pl.Float64), "text")
    assert found.equals(expected)
    assert sum(part.marked for part in parts) == rows - frame["y"].null_count()
    assert csv.names == frame.columns


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n1,2\n3\n4,5\n", "a line is not like the header"),
        (b"a,b\n1,2\n3,4,5\n", "a line is not like the header"),
        (b"a,b\n1,2\n\n4,5\n", "a line is not like the header"),
        (b"a;b\n1,5;2\n2,5;3\n", "not written with decimal points"),
        (b"a,b\n1,2\nno,3\n", "not written with decimal points"),
        (b"a,b\n1,2\n3,\xe4\n", "not UTF-8"),
        (b"a\n1\n2\n", "its header is unusual"),
        (b'a,"b\nc"\n1,2\n', "its header is unusual"),
        (b"\x1f\x8b123", "packed, or no CSV"),
        (b'{"a": 1}\n', "packed, or no CSV"),
    ],
)
def test_what_only_the_whole_can_decide(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(NotInBlocksError, match=reason):
        read_all(path)


def read_all(path: Path) -> None:
    look_at(path)
    csv = BlockedCsv.open(path)
    for block in csv.blocks(4):
        csv.read(block, csv.names[:1], csv.names[1:], [])


def test_cells_that_are_no_numbers_are_missing_and_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\nerr,3\n ,4\n2,5\n")
    csv = BlockedCsv.open(path)
    (block,) = csv.blocks(1000)
    found = csv.read(block, ["a", "b"], [], [])
    assert found.frame["a"].to_list() == [1.0, None, None, 2.0]
    assert str(found.strays["a"]) == "1 of 3 cells: row 1 'err'"
    assert (found.strays["b"].cells, found.strays["b"].filled) == (0, 4)
    assert 3 < csv.rows < 5
    assert look_at(path) == (False, 5)  # of lines
