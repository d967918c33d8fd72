"""These tests need cross compilers and emulators, so only `make test-device` runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deploy.c_models import STRICT
from deploy.targets.machines import HERE, run

if not os.environ.get("RDEEPSENSE_TARGETS"):
    collect_ignore_glob = ["test_*.py"]


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and no others, as those of targets."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("targets")


COLUMNS = ("machine", "model", "dtype", "flash", "code", "ram", "stack", "instructions")


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The instruction counter. Emulators from version 8 on speak another version of its API."""
    folder = tmp_path_factory.mktemp("plugin")
    version = run(["qemu-system-arm", "--version"], folder).split("version ")[1]
    api = 1 if int(version.split(".")[0]) < 8 else 2
    run(["gcc", *STRICT, f"-DAPI={api}", "-shared", "-fPIC", str(HERE / "count.c"),
         "-o", "count.so"], folder)  # fmt: skip
    return folder / "count.so"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, as a table and as build/targets.json."""
    reports = terminalreporter.stats.get("passed", [])
    found = [value for r in reports for name, value in r.user_properties if name == "measured"]
    if not found:
        return
    found.sort(key=lambda row: (row["machine"], row["model"], row["dtype"]))
    target = terminalreporter.config.rootpath / "build" / "targets.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=2) + "\n")
    terminalreporter.section("bytes, and instructions per inference")
    for row in [dict(zip(COLUMNS, COLUMNS, strict=True)), *found]:
        cells = [row.get(column, "-") for column in COLUMNS]
        shown = [cell if isinstance(cell, str) else f"{cell:,}" for cell in cells]
        line = "{:17}{:26}{:9}{:>7}{:>7}{:>6}{:>7}{:>14}".format(*shown)
        terminalreporter.write_line(line)
