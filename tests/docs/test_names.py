"""Modules, functions and files that the documentation names exist."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import rdeepsense

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rdeepsense"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FILE_NAMES = {"rdeepsense.js"}  # written by exports
NAME = re.compile(r"\brdeepsense(?:\.[A-Za-z_]\w*)+")
# In architecture.md, names are relative to the package: `fitting.trainer`.
TOP = "|".join(sorted(path.stem for path in PACKAGE.iterdir() if path.stem != "__init__"))
RELATIVE = re.compile(rf"`((?:{TOP})(?:\.\w+)*)`")
PATH = re.compile(r"\bsrc/rdeepsense(?:/[\w.-]+)*")


def exists(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one."""
    found: object = rdeepsense
    parts = name.split(".")
    for end in range(2, len(parts) + 1):
        if hasattr(found, parts[end - 1]):
            found = getattr(found, parts[end - 1])
            continue
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_and_paths_on_a_page_exist(page: Path) -> None:
    text = page.read_text()
    names = set(NAME.findall(text)) - FILE_NAMES
    if page.name == "architecture.md":
        names |= {f"rdeepsense.{name}" for name in RELATIVE.findall(text)}
        assert len(names) > 50
    assert sorted(name for name in names if not exists(name)) == []
    assert sorted(path for path in PATH.findall(text) if not (ROOT / path).exists()) == []


def test_an_old_name_is_noticed() -> None:
    assert exists("rdeepsense.fitting.trainer.Trainer.train")
    assert not exists("rdeepsense.fitting.select")
    assert not exists("rdeepsense.experiments")


def test_the_table_of_layers_is_that_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one["id"] == "layers")
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = [row.split("|") for row in text.splitlines() if row.startswith("| ")][1:]
    shown = [re.findall(r"`(\w+)`", row[2]) for row in rows]
    assert [set(own) for own in shown] == [set(re.findall(r"\w+", layer)) for layer in layers]
