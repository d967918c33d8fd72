"""`rdeepsense check`: what it prints, and what it leaves to the lines of the columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from rdeepsense.data.check import check

Run = Callable[..., tuple[str, str]]


def recordings(rng: np.random.Generator) -> pl.DataFrame:
    number = np.repeat(np.arange(40), 20)
    return pl.DataFrame(
        {
            "a": rng.normal(size=800),
            "rec": [f"R{k}" for k in number],
            "activity": np.array(list("abcd"))[number % 4],
        }
    )


def test_findings_are_printed_with_their_cure(run: Run, rng: np.random.Generator) -> None:
    recordings(rng).write_csv("leak.csv")
    out, _ = run("check", "leak.csv", "--target", "activity")
    assert "task      classification: activity is not numeric" in out
    [row] = [line for line in out.splitlines() if line.lstrip().startswith("warning")]
    assert "rec       Column 'rec': each of its 40 levels" in row
    assert "(--groups 'rec')" in " ".join(out.split())


def test_several_tables_and_json(run: Run, rng: np.random.Generator) -> None:
    leak = recordings(rng)
    leak.write_csv("leak.csv")
    recordings(rng).drop("rec").write_parquet("fine.parquet")
    out, err = run("check", "leak.csv", "fine.parquet", "--target", "activity", "--json", "-")
    one, other = json.loads(out)["tables"]
    same = check(leak.drop("activity"), leak["activity"]).to_json()
    assert one == {"table": "leak.csv", **same}
    assert [finding["code"] for finding in one["findings"]] == ["recordings"]
    assert (other["table"], other["findings"]) == ("fine.parquet", [])
    assert "findings  none" in err


def test_groups_and_roles_of_columns_are_options(run: Run, rng: np.random.Generator) -> None:
    recordings(rng).write_csv("leak.csv")
    for more in (("--groups", "rec"), ("--ignore", "rec")):
        out, _ = run("check", "leak.csv", "--target", "activity", *more)
        assert "each of its 40 levels" not in out


def test_without_a_target_the_columns_are_checked(run: Run, rng: np.random.Generator) -> None:
    walk = np.cumsum(rng.normal(size=(400, 2)), axis=0)
    day = np.arange("2020-01-01", "2021-02-04", dtype="datetime64[D]")
    columns: dict[str, Any] = {"when": day.astype(str), "x": walk[:, 0], "y": walk[:, 1]}
    pl.DataFrame(columns).write_csv("days.csv")
    out, _ = run("check", "days.csv", "--json", "-")
    [table] = json.loads(out)["tables"]
    assert table["task"] is None
    assert [one["code"] for one in table["findings"]] == ["time-order"]
    assert table["findings"][0]["columns"] == ["when"]


def test_identifiers_that_are_left_out_are_no_findings(run: Run, rng: np.random.Generator) -> None:
    x = rng.normal(size=200)
    table = pl.DataFrame({"nr": np.arange(200), "x": x, "y": x + rng.normal(size=200)})
    table.write_csv("table.csv")
    out, _ = run("check", "table.csv", "--target", "y")
    assert "left out  nr: whole numbers in order" in out
    assert "findings  none" in out
    out, _ = run("check", "table.csv", "--target", "y", "--input", "nr")
    assert "numbers of rows or times" in " ".join(out.split())
