"""Engines by name, and what is refused."""

from __future__ import annotations

import os
import sys

import pytest

import rdeepsense as rds
from rdeepsense.engines import ENGINES, engine_of


def test_names() -> None:
    assert engine_of("local") == rds.Local(os.cpu_count())
    assert engine_of("joblib") == rds.Joblib()
    assert engine_of("ray") == rds.Ray()
    own = rds.Ray(address="auto")
    assert engine_of(own) is own
    assert len(ENGINES) == 3


@pytest.mark.parametrize("engine", ["dask", "", 3])
def test_others_are_refused(engine: object) -> None:
    with pytest.raises(rds.InputError, match=r"engine = .*; accepted: 'local', 'joblib', 'ray'"):
        engine_of(engine)  # type: ignore[arg-type]
    with pytest.raises(rds.InputError, match="engine = "):
        rds.compare([[0.0]], [0.0], engine=engine)


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(rds.MissingExtraError, match=r"pip install 'rdeepsense\[ray\]'"):
        engine_of("ray")
