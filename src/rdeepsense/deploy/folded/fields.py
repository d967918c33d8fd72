"""The fields of a folded file's header: what each may be, checked as it is read."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Texts
from rdeepsense.deploy.folded.layout import MOST_LAYERS
from rdeepsense.encoding import MOST_COLUMNS, Encoding, check_encoding, without_tables
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
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import (
    DTYPE,
    FLAG,
    LABELS,
    TEXT,
    check_fields,
    choice,
    labels_of,
    maybe,
    whole,
)
from rdeepsense.modelfile.schema import TEXTS as KEPT_TEXTS
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

TEXTS = ("features", "feature_units", "targets", "target_units")


def check_header(header: Header) -> None:
    """Refuse a header whose fields are not of their types, or out of range; name the first."""
    # Files of before texts were kept lack some.
    check_fields(header, FIELDS, dict.fromkeys((*TEXTS, "dates"), maybe(KEPT_TEXTS)))
    if (header["classes"] is None) != (header["class_dtype"] is None):
        raise InputError("class_dtype is garbled; it belongs to classes, and they to it")


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
    if header["classes"] is None:
        return None
    return labels_of(header["classes"], header["class_dtype"])


def encoding_record(header: Header) -> Encoding | None:
    """Read the record of an encoding, without its tables; None where there is none."""
    if header.get("encoding") is None:
        return None
    check_fields(header, {"columns": whole(1, MOST_COLUMNS)})
    check_encoding(header["encoding"], header["columns"])
    return without_tables(header["encoding"], header["columns"])


def recipe_of(header: Header, shape: tuple[int, ...]) -> Recipe | None:
    """Read how windows of this shape are cut from a log; None where nobody said."""
    if "windows" not in header:
        return None
    recipe = Recipe.from_json(header["windows"])
    if (recipe.length, len(recipe.channels)) != shape:
        raise InputError(
            f"windows are of {recipe.length} samples of {len(recipe.channels)} channels, which "
            f"does not fit the graph of {list(shape)}"
        )
    return recipe


def smoothing_of(header: Header) -> Smoothing | None:
    """Read how the decisions of a stream are taken together."""
    if "smoothing" not in header:
        return None
    if "windows" not in header or header["classes"] is None:
        raise InputError("smoothing is for classes of windows that say how they are cut")
    return Smoothing.from_json(header["smoothing"])


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


# What each field that every file has may be.
FIELDS = {
    "head": TEXT,
    "layers": whole(1, MOST_LAYERS),
    "classes": maybe(LABELS),
    "class_dtype": maybe(DTYPE),
    "missing": choice("refuse", "mean", "indicator"),
    "one_output": FLAG,
    "calibration": maybe(TEXT),
    "version": TEXT,
    "source": TEXT,
}
