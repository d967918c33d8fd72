"""Heads: the meaning of a network's last numbers. A new one is one small file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rdeepsense.errors import InputError
from rdeepsense.heads.base import Head, Params, Scaling
from rdeepsense.heads.categorical import CategoricalHead, CategoricalParams
from rdeepsense.heads.gaussian import GaussianHead, GaussianParams
from rdeepsense.heads.point import PointHead, PointParams
from rdeepsense.heads.student import StudentHead, StudentTParams
from rdeepsense.link import LocationWidth

_HEADS: dict[str, type[Head]] = {}
HEADS: Mapping[str, type[Head]] = MappingProxyType(_HEADS)  # by their public names


def register(name: str, head: type[Head]) -> None:
    """Make a head known as `likelihood=name` to `fit`, model files and exports.

    A head that subclasses `Head` in a module of your own is registered once, at import; a model
    file names its head, so it must be registered again before such a file is loaded.
    """
    if _HEADS.get(name, head) is not head:
        raise InputError(f"likelihood {name!r} is {_HEADS[name].__name__} already")
    if len(head.start) != head.link.columns - 1:
        raise InputError(
            f"{head.__name__} has {head.link.columns} columns for each output; start must hold "
            f"what the {head.link.columns - 1} after the first begin with, it has {head.start}"
        )
    _HEADS[name] = head


def unregister(name: str) -> None:
    """Forget a head again, as a notebook that defines it anew must."""
    _HEADS.pop(name)


register("student", StudentHead)  # the first that `likelihood="auto"` tries
register("gaussian", GaussianHead)
register("categorical", CategoricalHead)
register("point", PointHead)

__all__ = [
    "HEADS",
    "CategoricalHead",
    "CategoricalParams",
    "GaussianHead",
    "GaussianParams",
    "Head",
    "Params",
    "PointHead",
    "PointParams",
    "Scaling",
    "StudentHead",
    "StudentTParams",
    "head_named",
    "register",
    "regression_heads",
    "unregister",
]


def head_named(likelihood: str) -> type[Head]:
    """Return the head of a likelihood, by its public name."""
    if likelihood not in _HEADS:
        raise InputError(f"unknown likelihood {likelihood!r}; accepted: {', '.join(_HEADS)}")
    return _HEADS[likelihood]


def regression_heads() -> dict[str, type[Head]]:
    """Return the heads of numbers with a spread, by name."""
    return {
        name: head
        for name, head in _HEADS.items()
        if isinstance(head.link, LocationWidth) and head.link.width is not None
    }
