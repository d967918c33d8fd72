"""The fields of a folded file's header: what each may be, checked as it is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.container import Header
from rdeepsense.deploy.folded.facts import Texts
from rdeepsense.deploy.folded.layout import MOST_LAYERS
from rdeepsense.errors import InputError
from rdeepsense.link import (
    Column,
    Expression,
    Link,
    LocationWidth,
    Operation,
    Softmax,
    add,
    from_json,
    softplus,
    sqrt,
)

TEXTS = ("features", "feature_units", "targets", "target_units")
LONGEST_TEXT = 1_000
MOST_OUTPUTS = 1 << 20
LARGEST_CLASSES = 1 << 24  # bytes of all labels
CLASS_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248]|U\d{1,4}|O)")
MISSING = ("refuse", "mean")


def check_fields(header: Header) -> None:
    """Refuse a header whose fields are not of their types, or out of range; name the first."""
    for name, (accepts, words) in FIELDS.items():
        if name not in header:
            raise InputError(f"lacks the field {name}")
        if not accepts(header[name]):
            raise InputError(f"{name} = {header[name]!r:.60} is garbled; it must be {words}")
    for name in TEXTS:  # files of before these were kept lack some
        texts = header.get(name)
        if texts is not None and not (type(texts) is list and all(map(is_text, texts))):
            raise InputError(f"{name} must be short texts")
    if (header["classes"] is None) != (header["class_dtype"] is None):
        raise InputError("class_dtype is garbled; it belongs to classes, and they to it")


def is_text(value: object) -> bool:
    """Tell whether this is a short text that can be written anywhere."""
    if type(value) is not str or len(value) > LONGEST_TEXT:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def texts_of(header: Header, name: str, count: int) -> Texts | None:
    """Read names or units, of which there must be this many."""
    texts = header.get(name)
    if not texts:
        return None
    if len(texts) != count:
        raise InputError(f"{name} do not fit the layers: {len(texts)} texts for {count}")
    return tuple(texts)


def classes_of(header: Header) -> NDArray[Any] | None:
    """Read the labels of a classifier; every one must survive its dtype."""
    labels, dtype = header["classes"], header["class_dtype"]
    if labels is None:
        return None
    if len(labels) * np.dtype(dtype).itemsize > LARGEST_CLASSES:
        raise InputError(f"class_dtype = {dtype!r} is too wide for {len(labels)} classes")
    try:
        found: NDArray[Any] = np.array(labels, dtype=dtype)
    except (OverflowError, ValueError, TypeError) as error:
        raise InputError(f"classes cannot be held as {dtype!r}") from error
    if found.tolist() != labels or len(set(labels)) != len(labels):
        raise InputError(f"classes are not distinct labels of dtype {dtype!r}")
    return found


def link_of(header: Header) -> Link:
    """Read the link; files of before there were links name a head and its floor instead."""
    if "link" in header:
        try:
            link = from_json(header["link"])
        except OverflowError as error:
            raise InputError("the link holds a number that is too large") from error
    else:
        link = _link_of_head(header)
    if isinstance(link, LocationWidth):
        if not _reads_columns(link.location):
            raise InputError("the link takes the column of a negative number")
        sign(link.location)
        if link.width is not None and not (_reads_columns(link.width) and sign(link.width) > 0):
            raise InputError("the link's width can be 0 or negative")
    return link


def sign(expression: Expression) -> int:
    """Tell what is known of an expression for any columns: 1 positive, 0 not negative, -1 nothing.

    A square counts as positive: it is 0 at single points only. A root of what may be negative is
    refused.
    """
    if isinstance(expression, Column):
        return -1
    if isinstance(expression, Operation):
        signs = [sign(argument) for argument in expression.arguments]
        if expression.name == "sqrt" and signs[0] < 0:
            raise InputError("the link takes the root of what may be negative")
        if expression.name in ("softplus", "exp"):
            return 1
        if expression.name == "square":
            return 0 if signs[0] == 0 else 1
        if expression.name == "add":
            return max(signs) if min(signs) >= 0 else -1
        if expression.name == "multiply" and expression.arguments[0] == expression.arguments[1]:
            return 0 if signs[0] == 0 else 1
        return min(signs)
    return (expression > 0) - (expression < 0)


def _reads_columns(expression: Expression) -> bool:
    """Tell whether every column that an expression reads is one."""
    if isinstance(expression, Operation):
        return all(map(_reads_columns, expression.arguments))
    return not isinstance(expression, Column) or expression.number >= 0


def _link_of_head(header: Header) -> Link:
    name, floor = header["head"], header.get("floor")
    if not isinstance(floor, int | float) or isinstance(floor, bool) or not 0 <= floor <= 1e100:
        raise InputError(f"floor = {floor!r:.60} is garbled; it must be a number, 0 or more")
    positive: Expression = add(softplus(Column(1)), float(floor))
    of_heads: dict[str, Link] = {
        "gaussian": LocationWidth(Column(0), sqrt(positive)),
        "student": LocationWidth(Column(0), positive),
        "categorical": Softmax(),
    }
    if name not in of_heads:
        raise InputError(f"has the head {name!r:.60}, unknown here")
    return of_heads[name]


def _is_labels(value: object) -> bool:
    if value is None:
        return True
    if type(value) is not list or not 0 < len(value) <= MOST_OUTPUTS:
        return False
    return all(is_text(label) or type(label) in (int, float, bool) for label in value)


def _is_dtype(value: object) -> bool:
    return value is None or (type(value) is str and CLASS_DTYPE.fullmatch(value) is not None)


# What each field that every file has may be, as a test and in words.
FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "head": (is_text, "a short text"),
    "layers": (
        lambda value: type(value) is int and 0 < value <= MOST_LAYERS,
        f"a whole number from 1 to {MOST_LAYERS}",
    ),
    "classes": (_is_labels, "null, or texts or numbers"),
    "class_dtype": (_is_dtype, "null, or the dtype of texts or numbers"),
    "missing": (lambda value: type(value) is str and value in MISSING, "refuse or mean"),
    "one_output": (lambda value: type(value) is bool, "true or false"),
    "calibration": (lambda value: value is None or is_text(value), "null or a short text"),
    "version": (is_text, "a short text"),
    "source": (is_text, "a short text"),
}
