"""Engines by name."""

from __future__ import annotations

import os

from rdeepsense.engines.joblib import Joblib
from rdeepsense.engines.local import Local
from rdeepsense.engines.ray import Ray
from rdeepsense.engines.work import Engine
from rdeepsense.errors import InputError, require

ENGINES = ("local", "joblib", "ray")


def engine_of(engine: str | Engine) -> Engine:
    """Return an engine, of the name "local" (a process for each core), "joblib" or "ray"."""
    if not isinstance(engine, str):
        if not callable(getattr(engine, "run_each", None)):
            raise InputError(f"engine = {engine!r}; accepted: {_accepted()}")
        return engine
    if engine == "local":
        return Local(os.cpu_count() or 1)
    if engine == "joblib":
        return Joblib()
    if engine == "ray":
        require("ray", "ray")
        return Ray()
    raise InputError(f"engine = {engine!r}; accepted: {_accepted()}")


def _accepted() -> str:
    names = ", ".join(map(repr, ENGINES))
    return f"{names}, or an engine such as rds.Ray(address=...)"
