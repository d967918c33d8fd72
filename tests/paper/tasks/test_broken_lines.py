"""The walk that names a broken line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks.task import (
    fields,
    number,
    one_of,
    refuse_broken_lines,
    whole_number,
    word,
)

READINGS = {"t": whole_number, "x": number, "who": word, "gt": one_of("sit", "stand")}


def walk(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refuse_broken_lines(path, READINGS)


def test_quotes_blank_lines_and_missing_values_are_no_damage(tmp_path: Path) -> None:
    walk(
        tmp_path / "a.csv",
        b'\xef\xbb\xbf"t","x","who","gt","other"\r\n1,,"a",sit,\r\n\r\n2,NaN,b,stand,?\r\n\n',
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"1,2,a,sit,9", r"a.csv, line 3: 5 fields, not 4: '1,2,a,sit,9'"),
        (b"1,2", r"a.csv, line 3: 2 fields, not 4"),
        (b"1.5,2,a,sit", r"a.csv, line 3: t = '1.5' is no whole number"),
        (b",2,a,sit", r"a.csv, line 3: t = '' is no whole number"),
        (b"1,2..3,a,sit", r"a.csv, line 3: x = '2..3' is no number"),
        (b"1,2,,sit", r"a.csv, line 3: who = nothing; a name is needed"),
        (b"1,2,a,run", r"a.csv, line 3: gt = 'run'; accepted: sit, stand"),
        (b"1,2,a,s\xffit", r"a.csv, line 3: gt = 's\ufffdit'; accepted"),
    ],
)
def test_the_first_broken_line_is_named(tmp_path: Path, line: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        walk(tmp_path / "a.csv", b"t,x,who,gt\n1,2,a,sit\n" + line + b"\nalso,broken\n")


def test_without_a_header_columns_are_counted_from_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,four\n")
    with pytest.raises(InputError, match=r"line 2: column 2 = 'four' is no number"):
        refuse_broken_lines(path, {"column 2": number}, header=False)


def test_a_blank_line_has_one_empty_field() -> None:
    assert fields("\r\n") == [""]
    assert fields(' 1 ,"b",\n') == ["1", "b", ""]
