"""Shards of a folder predicted by workers of Ray are, byte for byte, those of one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict.models import regressor, table
from typer.testing import CliRunner

from rdeepsense.cli.app import app


@pytest.mark.ray
@pytest.mark.usefixtures("two_cores")
def test_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # workers stand elsewhere
    frame = table(600, seed=3).drop("site")
    Path("in").mkdir()
    for number in range(3):
        frame[200 * number : 200 * (number + 1)].write_parquet(f"in/{number}.parquet")
    regressor().save("m")
    for out, options in (("here", []), ("there", ["--engine", "ray"])):
        words = ["predict", "m", "in", "-o", out, "--quantiles", "0.05,0.5", "--quiet", *options]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    names = [f"{number}.parquet" for number in range(3)]
    for out in ("here", "there"):
        assert sorted(path.name for path in Path(out).iterdir()) == names
    for name in names:
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()
