"""Names of targets, and units of inputs and targets.

Texts that travel with a model into its file and its exports; nothing is computed from them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from rdeepsense.errors import InputError

Texts = tuple[str, ...]
Given = str | Sequence[str] | Mapping[str, str]  # a text, one for each, or some by name
KEPT = ("target_names", "target_units", "feature_units")


def of_target(y: object) -> Texts | None:
    """Return the names that a table or column of pandas or polars brings; only text counts."""
    columns = getattr(y, "columns", None)
    names: list[object] = [getattr(y, "name", None)] if columns is None else list(columns)
    found = tuple(name for name in names if isinstance(name, str) and name)
    return found if found and len(found) == len(names) else None


def texts(argument: str, given: Given, count: int, names: Iterable[object] | None = None) -> Texts:
    """Return `count` texts out of a sequence, a single text, or a dictionary by name.

    Names that a dictionary leaves out get an empty text.
    """
    if isinstance(given, Mapping):
        known = None if names is None else [str(name) for name in names]
        if known is None:
            raise InputError(
                f"{argument} is a dictionary, but there are no names here; give a list of {count}"
            )
        accepted = set(known)
        strange = [key for key in given if key not in accepted]
        if strange:
            raise InputError(f"{argument} names {strange[0]!r}; known: {', '.join(known)}")
        given = [given.get(name, "") for name in known]
    found = (given,) if isinstance(given, str) else tuple(given)
    if len(found) != count or not all(isinstance(text, str) for text in found):
        raise InputError(f"{argument} = {given!r}; accepted: one text for each of {count}")
    if odd := next((one for one in found if _has_controls(one)), None):
        raise InputError(f"{argument}: {odd!r:.80} holds a control character")
    return found


def _has_controls(text: str) -> bool:
    """Tell whether a text holds controls of a terminal; names in spreadsheets have line breaks."""
    return any(unicodedata.category(one) == "Cc" and not one.isspace() for one in text)
