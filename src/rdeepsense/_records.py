"""Records kept as JSON: frozen dataclasses, written field by field and checked when read."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from rdeepsense.errors import InputError

LEFT_OUT = {"left out of the JSON while it is None": True}
"""Metadata of a field: `field(default=None, metadata=LEFT_OUT)`."""


class Record:
    """Base of dataclasses whose JSON has a key for each field.

    Reading refuses what is missing, unknown or of another type; a field with a default may be
    missing, so that files of versions that did not have it still load.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        values = {one: getattr(self, one.name) for one in fields(self)}
        return {
            one.name: to_plain(value)
            for one, value in values.items()
            if value is not None or one.metadata != LEFT_OUT
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        """Read what `to_json` gave; raises InputError where it is anything else."""
        content = mapping(content, cls.__name__)
        kinds = get_type_hints(cls)
        own = fields(cls)
        lacking = [one.name for one in own if _is_needed(one) and one.name not in content]
        unknown = sorted(set(content) - {one.name for one in own})
        for words, names in (("lacks", lacking), ("has an unknown", unknown)):
            if names:
                raise InputError(f"{cls.__name__}: {words} {', '.join(names)}")
        return cls(**{n: read(kinds[n], v, f"{cls.__name__}.{n}") for n, v in content.items()})


def mapping(content: object, where: str) -> Mapping[str, object]:
    """Return `content` if it is a mapping, as JSON's objects are; raises InputError otherwise."""
    if not isinstance(content, Mapping):
        raise InputError(f"{where}: {_shown(content)} is no record")
    return content


def to_plain(value: object) -> object:
    """Return a value as JSON has it: records and all that holds records as plain data."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Mapping):
        return {key: to_plain(own) for key, own in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_plain(own) for own in value]
    return value


def read(kind: Any, value: object, where: str) -> object:
    """Return `value` as a `kind`, which is a type as annotations write it (hence Any)."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _read_union(arguments, value, where)
    if kind is object:
        return value
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_json(value)
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {key: read(arguments[1], own, f"{where}[{key!r}]") for key, own in value.items()}
    if origin is not None and issubclass(origin, Sequence) and isinstance(value, list | tuple):
        return [read(arguments[0], own, where) for own in value]
    if origin is None and _is(kind, value):
        return value
    raise InputError(f"{where}: {_shown(value)} is not accepted")


def _read_union(kinds: tuple[Any, ...], value: object, where: str) -> object:
    for kind in kinds:
        try:
            return read(kind, value, where)
        except InputError as error:
            reason = error
    raise reason


def _is(kind: type, value: object) -> bool:
    """Tell whether a plain value is of this type; a whole number is a float too, yes/no is not."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _shown(value: object) -> str:
    return f"{value!r:.60}"
