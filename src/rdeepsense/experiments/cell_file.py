"""The file of a finished cell: whole, with a checksum, and set aside where it is damaged."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from rdeepsense._files import write_whole
from rdeepsense.errors import InputError
from rdeepsense.experiments.records import mapping

T = TypeVar("T")
CHECKSUM = "sha256"


def write_cell(path: Path, key: Mapping[str, object], record: Mapping[str, object]) -> None:
    """Write what a cell found beside its key, and the checksum over both."""
    # Through JSON once, so that the checksum is over what a reader will find.
    content = json.loads(json.dumps({"key": key, **record}, allow_nan=False))
    signed = {CHECKSUM: _checksum(content), **content}
    write_whole(path, json.dumps(signed, indent=1, allow_nan=False) + "\n")


def read_cell(path: Path, key: Mapping[str, object], parse: Callable[[object], T]) -> T | None:
    """Return what `parse` makes of the cell with this key; None where there is no sound one.

    A damaged file is named in a warning and kept beside under another name. Files of early
    versions have no checksum; those that `parse` accepts count as sound.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return parse(_verified(data, key))
    except (ValueError, RecursionError) as error:
        aside = _set_aside(path)
        warnings.warn(
            f"{path}: is damaged ({error}); it is kept as {aside.name} and computed again",
            stacklevel=2,
        )
        return None


def _verified(data: bytes, key: Mapping[str, object]) -> dict[str, object]:
    """Return the record in a file whose checksum, if it has one, and key are right."""
    content = dict(mapping(json.loads(data), "cell"))
    signed, said = CHECKSUM in content, content.pop(CHECKSUM, None)
    found = _checksum(content)  # refuses NaN and infinity in files without one, too
    if signed and said != found:
        raise InputError("its checksum is not that of its content")
    if content.pop("key", None) != key:
        raise InputError("it is of another cell")
    return content


def _checksum(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _set_aside(path: Path) -> Path:
    """Rename a file to the first `NAME.damaged`, `NAME.damaged-2`, ... that is free."""
    aside, number = path.with_name(f"{path.name}.damaged"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{number}")
    path.rename(aside)
    return aside
