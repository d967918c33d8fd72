"""--engine, --address and --jobs: the engine they make, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rdeepsense as rds
from rdeepsense.cli.options import EngineName, engine_asked

NAMES = {name.value: name for name in EngineName}


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (("local", None, None), rds.Local(1)),
        (("local", None, None, 4), rds.Local(4)),
        (("local", None, 3, 4), rds.Local(3)),
        (("joblib", None, None, 4), rds.Joblib()),
        (("joblib", None, 2), rds.Joblib(2)),
        (("ray", None, None), rds.Ray()),
        (("ray", "auto", None), rds.Ray(address="auto")),
    ],
)
def test_the_engine(words: Any, engine: object) -> None:
    assert engine_asked(NAMES[words[0]], *words[1:]) == engine


@pytest.mark.parametrize(
    "command",
    [
        ("benchmark", "uci", "--data", "."),
        ("benchmark", "drift", "--data", "."),
        ("reproduce", "GasSen"),
        ("compare", "t.csv", "--target", "y"),
    ],
    ids=" ".join,
)
def test_refused(command: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(*command, "--engine", "dask")
    assert done.code == 2
    assert "'dask' is not one of 'local', 'joblib', 'ray'" in " ".join(done.err.split())
    for words, message in (
        (("--address", "auto"), "--address auto: is for --engine ray; the engine is local"),
        (("--engine", "ray", "--jobs", 2), "--jobs 2: is for local and joblib; Ray uses the "),
    ):
        done = run(*command, *words)
        assert done.code == 1
        assert message in done.err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'rdeepsense[ray]'" in run(*command, "--engine", "ray").err
    assert not any(Path(name).exists() for name in ("benchmark", "drift", "reproduction"))


@pytest.mark.ray
def test_compare_in_processes_of_joblib(run: Any, csv: Path) -> None:
    words = ("compare", csv, "--target", "y", "--ignore", "z", "--methods", "RDeepSense-quick",
             "--splits", 2, "--hidden", 4, "--epochs", 1)  # fmt: skip
    here = run(*words, "--json", "here.json")
    there = run(*words, "--json", "there.json", "--engine", "joblib", "--jobs", 2)
    assert (here.code, there.code) == (0, 0)
    assert "fitted RDeepSense-quick on split" in there.err
    assert untimed("here.json") == untimed("there.json")


def untimed(name: str) -> object:
    timeless = lambda record: {k: v for k, v in record.items() if "seconds" not in k}  # noqa: E731
    return json.loads(Path(name).read_text(), object_hook=timeless)
