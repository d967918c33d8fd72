"""Fields of JSON that anyone may have written: what each may be, checked by name.

A `Kind` says what is accepted, as a test and in words; `check_fields` holds an object to one kind
for each of its fields. It needs numpy alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError

Json = Any  # whatever JSON holds
LONGEST_TEXT = 1_000
MOST_LABELS = 1 << 20
LARGEST_LABELS = 1 << 24  # bytes of all labels
LABEL_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248]|U\d{1,4}|O)")


class Kind(NamedTuple):
    """What a field may be, as a test and in words."""

    accepts: Callable[[Json], bool]
    words: str


def check_fields(
    values: Json,
    required: Mapping[str, Kind],
    optional: Mapping[str, Kind] = {},
    at: str = "",
    *,
    closed: bool = False,
) -> None:
    """Refuse an object that lacks a field, or has one of another kind.

    Other fields are left alone, or refused where the object is `closed`.
    """
    if type(values) is not dict:
        raise InputError(f"{at.rstrip('.')} = {values!r:.60} is garbled; it must be an object")
    for name, kind in {**required, **optional}.items():
        if name not in values:
            if name in required:
                raise InputError(f"lacks the field {at}{name}")
        elif not kind.accepts(values[name]):
            raise InputError(
                f"{at}{name} = {values[name]!r:.60} is garbled; it must be {kind.words}"
            )
    if closed and (strange := sorted(values.keys() - required.keys() - optional.keys())):
        raise InputError(f"{at}{strange[0]!s:.60} is unknown here")


def whole(least: int, most: int) -> Kind:
    """Accept whole numbers from one to another."""
    return Kind(
        lambda value: type(value) is int and least <= value <= most,
        f"a whole number from {least} to {most}",
    )


def number(least: float, most: float) -> Kind:
    """Accept numbers from one to another."""
    return Kind(
        lambda value: type(value) in (int, float) and least <= value <= most,
        f"a number from {least:g} to {most:g}",
    )


def choice(*words: str) -> Kind:
    """Accept one of a few words."""
    return Kind(lambda value: type(value) is str and value in words, " or ".join(words))


def maybe(kind: Kind) -> Kind:
    """Accept null as well."""
    return Kind(lambda value: value is None or kind.accepts(value), f"null or {kind.words}")


def several(kind: Kind, most: int, least: int = 0) -> Kind:
    """Accept a list."""
    return Kind(
        lambda value: (
            type(value) is list and least <= len(value) <= most and all(map(kind.accepts, value))
        ),
        f"a list of {least} to {most}, each {kind.words}",
    )


def either(*kinds: Kind) -> Kind:
    """Accept one of several kinds."""
    return Kind(
        lambda value: any(kind.accepts(value) for kind in kinds),
        " or ".join(kind.words for kind in kinds),
    )


def text(longest: int) -> Kind:
    """Accept texts of some length that can be written anywhere."""

    def accepts(value: Json) -> bool:
        if type(value) is not str or len(value) > longest:
            return False
        return not any("\ud800" <= letter <= "\udfff" for letter in value)

    return Kind(accepts, "a short text")


def label(longest: int) -> Kind:
    """Accept what names a class or a group."""
    return either(text(longest), Kind(lambda value: type(value) in (int, float, bool), "a number"))


def labels_of(labels: list[Json], dtype: str) -> NDArray[Any]:
    """Return labels as an array of a dtype that `DTYPE` accepts; every one must survive it."""
    if len(labels) * np.dtype(dtype).itemsize > LARGEST_LABELS:
        raise InputError(f"classes of the dtype {dtype!r} are too wide for {len(labels)} of them")
    try:
        found: NDArray[Any] = np.array(labels, dtype=dtype)
    except (OverflowError, ValueError, TypeError) as error:
        raise InputError(f"classes cannot be held as {dtype!r}") from error
    if found.tolist() != labels or len(set(labels)) != len(labels):
        raise InputError(f"classes are not distinct labels of dtype {dtype!r}")
    return found


TEXT = text(LONGEST_TEXT)
TEXTS = several(TEXT, MOST_LABELS)
FLAG = Kind(lambda value: type(value) is bool, "true or false")
LABELS = several(label(LONGEST_TEXT), MOST_LABELS, least=1)
DTYPE = Kind(
    lambda value: type(value) is str and LABEL_DTYPE.fullmatch(value) is not None,
    "the dtype of texts or numbers",
)
