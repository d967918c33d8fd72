"""The packages of four small models, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.packages import package

NAMES = ("tank", "level", "gait", "steps")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of each model."""
    folder = tmp_path_factory.mktemp("packages")
    for name in NAMES:
        package(name, folder / name)
    return folder
