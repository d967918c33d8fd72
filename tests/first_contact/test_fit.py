"""Planted faults on the command line: `fit` acts on them, and its verdict is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import rdeepsense as rds

Run = Callable[..., tuple[str, str]]


def fitted(run: Run, table: pl.DataFrame, *options: object, target: str = "y") -> Any:
    """Fit a table quickly; returns what `--json` says."""
    table.write_csv("table.csv")
    quick = ("--quick", "--epochs", 8, "--hidden", 16, "-o", "m.st", "--overwrite", "--json", "-")
    out, _ = run("fit", "table.csv", "--target", target, *quick, *options)
    return json.loads(out)


def codes(found: Any) -> list[str]:
    return [one["code"] for one in found["findings"]]


def test_recordings_are_no_inputs_and_stay_together(run: Run, rng: np.random.Generator) -> None:
    number = np.repeat(np.arange(40), 20)
    noise = {name: rng.normal(size=800) for name in ("a", "b")}
    label = np.array(list("abcd"))[number % 4]
    table = pl.DataFrame({**noise, "rec": [f"R{k}" for k in number], "activity": label})
    found = fitted(run, table, target="activity")
    assert codes(found) == ["recordings"]
    assert found["inputs"] == ["a", "b"]
    assert "--input rec" in found["left_out"]["rec"]
    verdict = found["verdict"]["activity"]
    assert verdict["skill"] == "none"
    assert verdict["figures"]["accuracy"] < 0.6
    assert {one["group"] for one in found["groups"]["activity"]} < {f"R{k}" for k in range(40)}
    assert [one.code for one in rds.load("m.st").findings_] == ["recordings"]


def test_what_a_user_vouches_for_is_taken(run: Run, rng: np.random.Generator) -> None:
    number = np.repeat(np.arange(40), 20)
    table = pl.DataFrame({"a": rng.normal(size=800), "rec": number, "activity": number % 4})
    options = ("--task", "classification", "--input", "rec")
    found = fitted(run, table, *options, target="activity")
    assert found["inputs"] == ["a", "rec"]
    assert [one["severity"] for one in found["findings"]] == ["info"]
    assert found["verdict"]["activity"]["distrust"] is None
    unchecked = fitted(run, table, "--task", "classification", "--no-check", target="activity")
    assert (unchecked["inputs"], unchecked["findings"]) == (["a", "rec"], [])


def test_a_copy_of_the_target_overrules_the_verdict(run: Run, rng: np.random.Generator) -> None:
    y = rng.normal(size=400)
    table = pl.DataFrame({"a": rng.normal(size=400), "copy": 1.8 * y + 32, "y": y})
    found = fitted(run, table)
    assert codes(found) == ["target-copy"]
    assert found["verdict"]["y"]["distrust"].startswith("Cannot be trusted: Column 'copy'")
    out, _ = run("evaluate", "m.st", "table.csv")
    assert "verdict   cannot be trusted (skill strong" in out
    known = fitted(run, table, "--input", "copy")
    assert known["verdict"]["y"]["distrust"] is None


def test_near_copies_stay_together(run: Run, rng: np.random.Generator) -> None:
    situation = np.repeat(np.arange(60), 10)
    points = rng.normal(size=(60, 3))
    X = points[situation] + 1e-4 * rng.normal(size=(600, 3))
    y = (points[:, 0] + rng.normal(size=60))[situation]
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    found = fitted(run, table)
    assert codes(found) == ["near-copies"]
    assert len(found["groups"]["y"]) == 12  # blocks
    assert found["verdict"]["y"]["skill"] != "strong"  # row by row it would be


def test_names_of_rows_are_left_out(run: Run, rng: np.random.Generator) -> None:
    x = rng.normal(size=400)
    serial = [f"SN{k // 2}" for k in rng.permutation(400)]
    table = pl.DataFrame({"x": x, "serial": serial, "y": 10 * x + rng.normal(size=400)})
    found = fitted(run, table)
    assert found["inputs"] == ["x"]
    assert "names of rows: 200 texts in 400 rows" in found["left_out"]["serial"]
    assert found["verdict"]["y"]["skill"] == "strong"


def test_entities_are_no_inputs_by_any_of_their_names(run: Run, rng: np.random.Generator) -> None:
    person = rng.integers(0, 30, 400)
    x = rng.normal(size=(400, 2))
    y = np.sin(2 * x[:, 0]) + 1.5 * rng.normal(size=30)[person] + 0.5 * rng.normal(size=400)
    names = [f"P{k}" for k in person]
    rooms = [f"P{k} {room}" for k, room in zip(person, rng.integers(0, 2, 400), strict=True)]
    columns = {"a": x[:, 0], "b": x[:, 1], "name": names, "person": person, "room": rooms, "y": y}
    table = pl.DataFrame(columns)
    found = fitted(run, table)
    assert codes(found) == ["entities"]
    assert found["inputs"] in (["a", "b"], ["a", "b", "person"])
    assert found["verdict"]["y"]["flagged"] < 20
    assert found["known_groups"]["y"] > 0.75
    given = fitted(run, table, "--groups", "person")
    assert given["inputs"] == ["a", "b"]
    assert codes(given) == ["group-input"]
    assert given["known_groups"] == {}
    vouched = fitted(run, table, "--input", "name")
    assert vouched["inputs"] == ["a", "b", "name", "person", "room"]


def test_rows_of_the_fit_do_not_judge_it(run: Run, rng: np.random.Generator) -> None:
    x = rng.normal(size=(400, 2))
    table = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] + 0.5 * rng.normal(size=400)})
    table[:300].write_csv("train.csv")
    table[300:].write_csv("test.csv")
    run("fit", "train.csv", "--target", "y", "--quick", "--epochs", 15, "-o", "m.st")
    out, _ = run("evaluate", "m.st", "train.csv", "--train", "train.csv")
    assert "Cannot be trusted: 100% of these rows are in the table of the fit." in out
    out, _ = run("evaluate", "m.st", "test.csv", "--train", "train.csv")
    assert "verdict   skill strong" in out
    assert "findings  none" in out
