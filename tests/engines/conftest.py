"""A small Ray of two cores, started once for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rdeepsense.engines import environment


@pytest.fixture(scope="module")
def two_cores() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    tests = Path(__file__).parents[1]  # has pieces_of_work
    variables = environment()["env_vars"]
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=100 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {**variables, "PYTHONPATH": f"{tests}:{variables['PYTHONPATH']}"}},
    )
    try:
        yield
    finally:
        ray.shutdown()
