"""Records: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from rdeepsense._records import LEFT_OUT, Record
from rdeepsense.errors import InputError


@dataclass(frozen=True)
class Point(Record):
    x: float
    name: str | None


@dataclass(frozen=True)
class Drawing(Record):
    points: Sequence[Point]
    named: Mapping[str, Point]
    colours: Sequence[str] = field(default_factory=list)
    note: str | None = field(default=None, metadata=LEFT_OUT)


DRAWING = Drawing([Point(1, "a"), Point(0.5, None)], {"b": Point(2.0, "b")}, ["red"])


def test_written_and_read_back() -> None:
    content = json.loads(json.dumps(DRAWING.to_json()))
    assert content == {
        "points": [{"x": 1, "name": "a"}, {"x": 0.5, "name": None}],
        "named": {"b": {"x": 2.0, "name": "b"}},
        "colours": ["red"],
    }
    assert Drawing.from_json(content) == DRAWING


def test_a_field_of_a_later_version_may_be_missing() -> None:
    assert Drawing.from_json({"points": [], "named": {}}) == Drawing([], {})
    assert Drawing([], {}, note="n").to_json()["note"] == "n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "Point: .* is no record"),
        ({"x": 1}, "Point: lacks name"),
        ({"x": 1, "name": None, "z": 2}, "Point: has an unknown z"),
        ({"x": "1", "name": None}, r"Point.x: '1' is not accepted"),
        ({"x": True, "name": None}, "Point.x: True is not accepted"),
        ({"x": None, "name": None}, "Point.x: None is not accepted"),
        ({"x": 1, "name": 3}, "Point.name: 3 is not accepted"),
    ],
)
def test_anything_else_is_refused(content: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Point.from_json(content)


def test_a_list_is_no_mapping() -> None:
    with pytest.raises(InputError, match=r"Drawing.named: \[\] is not accepted"):
        Drawing.from_json({"points": [], "named": []})
