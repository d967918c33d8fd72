"""Where a command may write is found out before it works for hours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdeepsense.cli.terminal import check_outputs
from rdeepsense.errors import InputError


def test_links_are_judged_by_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    table = tmp_path / "table.csv"
    table.touch()
    links = {
        "good": tmp_path / "store" / "model",
        "astray": tmp_path / "nowhere" / "model",
        "round": tmp_path / "round",
        "input": table,
        "folder": tmp_path / "store",
    }
    for name, to in links.items():
        (tmp_path / name).symlink_to(to)
    check_outputs({"--output": tmp_path / "good"}, inputs=(table,))
    for name, problem in (
        ("astray", f"there is no folder {tmp_path}/nowhere"),
        ("round", "is a link that leads to itself"),
        ("input", "would overwrite the input"),
        ("folder", "is a folder"),
    ):
        with pytest.raises(InputError, match=problem):
            check_outputs({"--output": tmp_path / name}, inputs=(table,))
    both = {"--output": tmp_path / "good", "--json": tmp_path / "store" / "model"}
    with pytest.raises(InputError, match="--output and --json must be different files"):
        check_outputs(both)


def test_a_device_is_fine_whatever_its_folder(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_outputs({"--json": pipe, "--output": Path("/dev/null")})
