"""Fields of JSON: what is accepted, and the words of a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense.errors import InputError
from rdeepsense.modelfile.schema import (
    DTYPE,
    LABELS,
    TEXT,
    Kind,
    check_fields,
    choice,
    labels_of,
    maybe,
    number,
    several,
    whole,
)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (whole(1, 3), [1, 3], [0, 4, True, 1.0, "1", None, 10**400]),
        (number(0, 1), [0, 1, 0.5], [-0.1, 1.1, True, "0", None, [], 10**400]),
        (TEXT, ["", "straße", "a\0b"], [None, 1, "\ud800", "x" * 1_001, ["a"]]),
        (choice("a", "b"), ["a"], ["", "c", None, ["a"], {}]),
        (maybe(TEXT), [None, "a"], [1]),
        (several(whole(0, 1), 2), [[], [0], [0, 1]], [[2], [0, 0, 0], "0", {}, (0,)]),
        (LABELS, [["a"], [1, 2.5, True]], [[], [None], [[]], "a"]),
        (DTYPE, ["<U4", "|b1", "<f8", "|O"], ["<U200000000", "<M8[s]", "|V8", 3, "int, int", ""]),
    ],
)
def test_what_a_kind_accepts(kind: Kind, right: list[Any], wrong: list[Any]) -> None:
    assert [value for value in right if not kind.accepts(value)] == []
    assert [value for value in wrong if kind.accepts(value)] == []


def test_a_refusal_names_the_field() -> None:
    fields, more = {"a": whole(0, 9)}, {"b": TEXT}
    check_fields({"a": 1, "c": object}, fields, more)
    for value, message in [
        ({}, "lacks the field x.a"),
        ({"a": "1"}, "x.a = '1' is garbled; it must be a whole number from 0 to 9"),
        ({"a": 1, "b": 2}, "x.b = 2 is garbled; it must be a short text"),
        ([], r"x = \[\] is garbled; it must be an object"),
    ]:
        with pytest.raises(InputError, match=f"^{message}$"):
            check_fields(value, fields, more, "x.")


def test_labels_survive_their_type_or_are_refused() -> None:
    assert labels_of(["a", "bb"], "<U2").tolist() == ["a", "bb"]
    assert labels_of([1, 300], ">i4").dtype == np.dtype(">i4")
    for labels, dtype in (
        (["abc"], "<U2"),
        ([1, 300], "|i1"),
        ([1, 1], "<i8"),
        (["a"], "<f8"),
        ([0.1], "<f2"),
        (["a"] * 20_000, "<U9999"),
    ):
        with pytest.raises(InputError, match="classes"):
            labels_of(labels, dtype)
