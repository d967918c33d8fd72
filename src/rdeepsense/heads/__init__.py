"""Heads: what a network's last numbers mean. A new head is one small file and a line here."""

from __future__ import annotations

from rdeepsense.errors import InputError
from rdeepsense.heads.base import Head, Params
from rdeepsense.heads.categorical import CategoricalHead, CategoricalParams
from rdeepsense.heads.gaussian import GaussianHead, GaussianParams
from rdeepsense.heads.point import PointHead, PointParams
from rdeepsense.heads.student import StudentHead, StudentTParams

HEADS: dict[str, type[Head]] = {
    "gaussian": GaussianHead,
    "student": StudentHead,
    "categorical": CategoricalHead,
    "point": PointHead,
}

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
    "StudentHead",
    "StudentTParams",
    "head_named",
]


def head_named(likelihood: str) -> type[Head]:
    """The head of a likelihood, by its public name."""
    if likelihood not in HEADS:
        raise InputError(f"unknown likelihood {likelihood!r}; accepted: {', '.join(HEADS)}")
    return HEADS[likelihood]
