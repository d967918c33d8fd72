"""docs/api.md has every public name."""

from __future__ import annotations

import re
from pathlib import Path

import rdeepsense
import rdeepsense.errors

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def test_every_public_name_is_on_the_page() -> None:
    shown = set(re.findall(r"^::: rdeepsense\.(\w+)", PAGE, re.MULTILINE))
    errors = {name for name in rdeepsense.__all__ if hasattr(rdeepsense.errors, name)}
    assert "errors" in shown  # the whole module
    assert set(rdeepsense.__all__) - {"__version__"} - errors - shown == set()
