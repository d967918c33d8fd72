"""The record of public names: every signature with its defaults, property, field and value.

Public is what `rdeepsense.__all__` names, what the modules among those name in turn, and what
docs/api.md documents by a longer path.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef, TypeVar, get_origin

import rdeepsense as rds

API_PAGE = Path(__file__).parents[2] / "docs" / "api.md"
WIDTH = 100
# What an instance answers to beside its named methods.
SPECIAL = ("__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__")


def recorded() -> str:
    """Return one block of lines for each public name."""
    shown: dict[int, str] = {}  # names by the identity of what they name
    blocks = []
    for path, value in dict(_public()).items():
        first = shown.setdefault(id(value), path)
        if first != path:
            blocks.append(f"{path} is {first}")
        else:
            blocks.append("\n".join(_described(path, value)))
    return "\n\n".join(blocks) + "\n"


def _public() -> Iterator[tuple[str, Any]]:
    """Return path and value of each public name; of modules, of what they hold."""
    documented = re.findall(r"^::: rdeepsense\.([\w.]+)", API_PAGE.read_text(), re.MULTILINE)
    paths = sorted({*rds.__all__} - {"__version__"})
    paths += sorted(path for path in {*documented} if path not in paths)
    for path in paths:
        value = _found(path)
        if isinstance(value, ModuleType):
            for name in _names(value):
                yield f"rdeepsense.{path}.{name}", getattr(value, name)
        else:
            yield f"rdeepsense.{path}", value


def _found(path: str) -> Any:
    if path in rds.__all__:
        return getattr(rds, path)
    try:
        return importlib.import_module(f"rdeepsense.{path}")
    except ModuleNotFoundError:
        parent, _, name = path.rpartition(".")
        return getattr(_found(parent), name)


def _names(module: ModuleType) -> list[str]:
    """Return `__all__`, or the public names that a module without it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and not isinstance(value, TypeVar)
    )


def _described(path: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        return _class(path, value)
    if get_origin(value) is not None:  # its text depends on the version of numpy
        return [f"{path} is a type"]
    if callable(value):
        return _call(path, inspect.signature(value))
    if isinstance(value, Mapping):
        return [f"{path} = {{", *(f"    {k!r}: {v.__name__}," for k, v in value.items()), "}"]
    return [f"{path} = {value!r}"]


def _class(path: str, cls: type) -> list[str]:
    """Return what a class is built from, how it is constructed, and its public members."""
    bases = _bases(cls)
    lines = [f"class {path}" + (f" is a {', '.join(bases)}" if bases else "")]
    if issubclass(cls, enum.Enum):
        return lines + [f"    {member.name} = {int(member)}" for member in cls]
    if not getattr(cls, "_is_protocol", False) and any(
        _own(c) and {"__init__", "__new__"} & {*vars(c)} for c in cls.__mro__
    ):
        lines += _indented(_call("", inspect.signature(cls)))
    for name, member in sorted((_set_later(cls) | _members(cls)).items()):
        if member is None:
            lines.append(f"    .{name}")
        elif isinstance(member, property):
            result = inspect.signature(member.fget or len).return_annotation
            lines.append(f"    .{name}: {_annotation(result)}")
        else:
            kind = {staticmethod: "static ", classmethod: "class "}.get(type(member), "")
            function = getattr(member, "__func__", member)
            lines += _indented(_call(f"{kind}.{name}", _unbound(function, kind)))
    return lines


def _bases(cls: type) -> list[str]:
    """Return the names that `isinstance` may ask for: public ones, and those of other libraries."""
    known = {getattr(rds, name) for name in rds.__all__}
    foreign = {base for c in cls.__mro__ if _own(c) for base in c.__bases__ if not _own(base)}
    return [c.__name__ for c in cls.__mro__[1:-1] if c in known or c in foreign]


def _own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "rdeepsense"


def _set_later(cls: type) -> dict[str, None]:
    """Return the attributes that an instance is given after its construction, as by `fit`."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    found = {f.name for f in fields if not f.init}
    for c in filter(_own, cls.__mro__):
        found |= {*re.findall(r"\bself\.([a-z]\w*_)(?:: [^=]*)? = ", inspect.getsource(c))}
    return dict.fromkeys(name for name in found if not name.startswith("_"))


def _members(cls: type) -> dict[str, Any]:
    """Return methods and properties that the library defines, the most derived of each name."""
    found: dict[str, Any] = {}
    for c in reversed(cls.__mro__):
        if _own(c):
            found |= {
                name: member
                for name, member in vars(c).items()
                if (not name.startswith("_") or name in SPECIAL) and _is_member(member)
            }
    return found


def _is_member(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | staticmethod | classmethod)


def _unbound(function: Any, kind: str) -> inspect.Signature:
    """Return the signature as callers see it, without `self` or `cls`."""
    signature = inspect.signature(function)
    bound = [*signature.parameters.values()][kind != "static " :]
    return signature.replace(parameters=bound)


def _call(name: str, signature: inspect.Signature) -> list[str]:
    """Return a signature: on one line where it fits, or else with a line for each argument."""
    arguments: list[str] = []
    before: Any = None
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            arguments.append("*")
        before = p.kind
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = stars + p.name
        if p.annotation is not p.empty:
            text += f": {_annotation(p.annotation)}"
        if p.default is not p.empty:
            text += f" = {_default(p.default)}"
        arguments.append(text)
    result = signature.return_annotation
    end = ")" if result is inspect.Signature.empty else f") -> {_annotation(result)}"
    line = f"{name}({', '.join(arguments)}{end}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{name}(", *_indented([f"{argument}," for argument in arguments]), end]


def _annotation(annotation: Any) -> str:
    """Return a type without the names of modules, which are a matter of how it was imported."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+", "", text)


def _default(value: Any) -> str:
    shown = repr(value)
    if " at 0x" in shown:  # an address, which is another one every time
        return f"<{type(value).__name__} {getattr(value, '__name__', '')}>".replace(" >", ">")
    return shown


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
