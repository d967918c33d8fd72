"""docs/watch.md on a real log: UCI HAPT, people that the model has not met."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from docs.test_pages import ROOT, shell

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KNOWN, NEW = (1, 3, 5, 7, 8, 11), (2, 4, 9)


@pytest.mark.skipif(not os.environ.get("RDEEPSENSE_LONG"), reason="minutes: RDEEPSENSE_LONG=1")
def test_the_commands_of_the_page_on_a_real_log(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.chdir(tmp_path)
    from hapt_log import raw_log, written

    log = raw_log(data_dir)
    third = log["recording"] % 3 == 0  # the people's own number of recordings would take minutes
    log = {name: values[third] for name, values in log.items()}
    assert len(log["t"]) > 100_000
    written(log, KNOWN, Path("log.parquet"))
    written(log, NEW, Path("new.parquet"))
    first, *commands = BLOCK.findall((ROOT / "docs/watch.md").read_text())
    assert first == "python make_log.py\n"
    assert len(commands) == 3
    for command in commands:
        printed = shell(command)
        assert "[exit status" not in printed, f"{command}\n{printed}"
    assert printed.split("\n")[0] == "replay passed"
    figures = json.loads(Path("figures.json").read_text())
    assert figures["accuracy"] > 0.6, "six activities, six people, five epochs"
    stored = Path("gait/examples/replay/stored.h").read_text()
    assert set(re.findall(r'"(\w+)"', stored)) == set(np.unique(log["activity"]))
