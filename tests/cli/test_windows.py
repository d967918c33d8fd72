"""A raw log on the command line: fit, predict, evaluate, and what is said of untidy ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rdeepsense as rds

SENSORS = ("--sensor", "acc=ax,ay,az", "--sensor", "gyro=gx")
LOG = ("--time", "t", *SENSORS, "--window", "1s", "--hop", "500ms")
QUICK = ("--quick", "--epochs", 2, "--hidden", 4, "--device", "cpu", "--overwrite")


def log(users: int = 6, seconds: float = 6.0, rate: float = 20.0, seed: int = 0) -> dict[str, Any]:
    """Two recordings of each user, with a pull downwards in one and upwards in the other."""
    rng = np.random.default_rng(seed)
    samples = int(seconds * rate)
    parts = []
    for user in range(users):
        for number, word in enumerate(("rest", "shake")):
            t = np.arange(samples) / rate
            wave = np.sin(2 * np.pi * t + rng.uniform(0, 6)) + (-1 if word == "rest" else 1)
            own = {name: wave + 0.1 * rng.normal(size=samples) for name in ("ax", "ay", "az", "gx")}
            told = {"user": f"u{user}", "recording": 2 * user + number, "activity": word}
            amount = {"amount": np.full(samples, 0.1 if word == "rest" else 2.0)}
            parts.append(
                {"t": t, **own, **amount} | {n: np.repeat([v], samples) for n, v in told.items()}
            )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.fixture
def table(run: Any) -> dict[str, Any]:
    found = log()
    pq.write_table(pa.table(found), "log.parquet")
    return found


def fit(run: Any, *more: Any, path: str = "log.parquet", target: str = "activity") -> Any:
    done = run("fit", path, "--target", target, *LOG, *QUICK, *more)
    assert done.code == 0, done.err
    return done


def test_from_a_log_to_figures(run: Any, table: dict[str, Any]) -> None:
    done = fit(run, "--groups", "user", "--by", "recording", "--epochs", 15, "--hidden", 8)
    assert "samples   1,440 in 12 recordings, 20 a second" in done.out
    assert "windows   132" in done.out
    assert "not used  amount" in done.out
    assert "110 windows to learn from" in done.out
    assert "22 of 1 groups to test" in done.out
    model = rds.load("model.safetensors")
    recipe = model.recipe_
    assert (recipe.rate, recipe.length, recipe.step) == (20, 20, 10)
    assert (recipe.by, recipe.label) == (("user", "recording"), ("activity",))
    assert model.feature_names_in_.tolist() == ["ax", "ay", "az", "gx"]
    assert model.fitted_.target.names == ("activity",)

    new = log(users=2, seed=5)
    pq.write_table(pa.table(new), "new.parquet")
    done = run("evaluate", "model.safetensors", "new.parquet", "--json", "e.json")
    assert done.code == 0, done.err
    told = json.loads(Path("e.json").read_text())
    w = model.windows(new)
    figures = model.evaluate(w, w.y)
    assert told["rows"] == len(w) == 44
    for name in ("accuracy", "ece", "nll"):
        assert told[name] == pytest.approx(figures[name])
    assert told["accuracy"] > 0.9
    assert told["accuracy_of_surest_90"] >= told["accuracy"]
    assert told["windows"]["windows"] == 44

    done = run("predict", "model.safetensors", "new.parquet", "-o", "p.csv")
    assert done.code == 0, done.err
    found = pl.read_csv("p.csv")
    assert found.columns == [
        "start", "end", "user", "recording", "class_activity", "p_rest", "p_shake", "status"
    ]  # fmt: skip
    assert found.height == 44
    assert found["class_activity"].to_list() == model.predict(w).tolist()
    assert np.allclose(found["p_shake"], model.predict_proba(w)[:, 1])
    assert np.allclose(found["end"] - found["start"], 0.95)
    shown = run("predict", "model.safetensors", "new.parquet")
    assert "probability" in shown.out
    assert "and 34 windows more" in shown.out


def test_a_log_of_somebody_else_needs_no_labels_and_no_user(
    run: Any, table: dict[str, Any]
) -> None:
    fit(run, "--groups", "user", "--by", "recording")
    own = {name: table[name][:120] for name in ("t", "ax", "ay", "az", "gx")}
    pl.DataFrame(own).write_csv("own.csv")
    done = run("predict", "model.safetensors", "own.csv", "-o", "p.csv")
    assert done.code == 0, done.err
    assert "the log has no user, recording; its recordings are not told apart" in done.out
    columns = ["start", "end", "class_activity", "p_rest", "p_shake", "status"]
    assert pl.read_csv("p.csv").columns == columns
    done = run("evaluate", "model.safetensors", "own.csv")
    assert done.code == 1
    assert "own.csv: has no column 'activity'" in done.err


def test_csv_and_parquet_give_the_same_model(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording", "-o", "a.safetensors")
    pl.DataFrame(table).write_csv("log.csv")
    fit(run, "--groups", "user", "--by", "recording", "-o", "b.safetensors", path="log.csv")
    w = rds.load("a.safetensors").windows(table)
    one, two = (rds.load(f"{name}.safetensors").predict_proba(w) for name in "ab")
    assert np.array_equal(one, two)


def test_numbers_over_windows(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording", target="amount")
    model = rds.load("model.safetensors")
    assert model.recipe_.target == "mean"
    done = run("predict", "model.safetensors", "log.parquet", "-o", "p.csv")
    assert done.code == 0, done.err
    told = [f"{name}_amount" for name in ("mean", "std", "low", "high")]
    assert pl.read_csv("p.csv").columns[-5:] == [*told, "status"]
    assert run("evaluate", "model.safetensors", "log.parquet").code == 0
    fit(run, "--by", "recording", "--window-target", "end", target="amount")
    assert rds.load("model.safetensors").recipe_.target == "end"
    done = run("fit", "log.parquet", "--target", "activity", *LOG, *QUICK, "--window-target", "end")
    assert "--window-target end: is for numbers" in done.err


def test_without_groups_recordings_stay_together(run: Any, table: dict[str, Any]) -> None:
    done = fit(run, "--by", "recording")
    assert "groups are the 12 recordings" in done.out
    one = log(users=1, seconds=120)
    one["activity"] = np.where(np.arange(len(one["t"])) // 200 % 2, "a", "b")
    one["t"] = np.arange(len(one["t"])) / 20
    pq.write_table(pa.table(one), "one.parquet")
    done = fit(run, path="one.parquet")
    assert "groups are 10 stretches of time, and 9 windows that reach" in done.out


def test_a_window_without_a_fit_interval_is_trimmed_and_said(
    run: Any, table: dict[str, Any]
) -> None:
    done = fit(run, "--groups", "user", "--by", "recording", "--window", "1.15s")
    assert (
        "23 samples have no interval of about 0.25 s that divides them; windows of 20" in done.out
    )
    assert rds.load("model.safetensors").recipe_.length == 20


def test_an_export_is_judged_on_a_log(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording")
    done = run(
        "export", "model.safetensors", "--to", "onnx", "--data", "log.parquet",
        "--target", "activity", "-o", "m.onnx",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Figures on 132 rows" in done.out
    c99 = ("export", "model.safetensors", "--to", "c99", "--data", "log.parquet", "-o", "c")
    done = run(*c99, "--hop", "250ms")
    assert done.code == 0, done.err
    report = json.loads(Path("c/report.json").read_text())["samples"]
    assert f"samples        window: {report['multiply_adds']['window']:,} multiply-adds" in done.out
    assert "every 0.25 s" in done.out
    # Twelve recordings in order, of which half judge.
    assert report["decided"]["windows"] == 66
    done = run(*c99, "--stream", "exact", "--overwrite")
    assert done.code == 1
    assert "--stream exact: the network has no intervals" in done.err


def test_a_log_adapts_and_replays(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording", target="amount")
    mine = dict(log(users=1, seed=7))
    mine["amount"] = mine["amount"] + 3
    pq.write_table(pa.table(mine), "mine.parquet")
    done = run("adapt", "model.safetensors", "mine.parquet", "-o", "mine.safetensors")
    assert done.code == 0, done.err
    assert "labels    22" in done.out
    assert "amount: shifted by +" in done.out
    done = run(
        "replay", "model.safetensors", "mine.parquet", "--label-every", 1, "--json", "r.json"
    )
    assert done.code == 0, done.err
    told = json.loads(Path("r.json").read_text())
    assert (told["rows"], told["labels"]) == (22, 22)
    assert told["figures"]["live"]["error"] < told["figures"]["frozen"]["error"]
    done = run("replay", "model.safetensors", "mine.parquet", "--time", "t")
    assert "--time: the model file says which column of a log is its time" in done.err
    done = run(
        "export", "mine.safetensors", "--to", "c99", "--data", "mine.parquet", "--reject", "0.9",
        "-o", "c",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "MODEL_UNSURE 8" in Path("c/model.h").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--time", "clock"), "has no column 'clock'; it has t, ax"),
        (("--sensor", "acc"), "--sensor 'acc': give NAME=COLUMN"),
        (("--window", "soon"), "--window = 'soon' is no duration"),
        (
            ("--rate", "2000", "--by", "recording"),
            "the time 't' has 20 samples a second; is its unit another one",
        ),
        (("--gap", "0"), "--gap = '0' is no duration"),
    ],
)
def test_what_is_wrong_is_named(
    run: Any, table: dict[str, Any], change: tuple[str, ...], words: str
) -> None:
    done = run("fit", "log.parquet", "--target", "activity", *LOG, *QUICK, *change)
    assert done.code == 1
    assert words in done.err


def test_inspect_tells_and_options_of_tables_are_refused(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording")
    done = run("inspect", "model.safetensors")
    assert "windows   1 s every 0.5 s at 20 a second, by t: acc (ax, ay, az), gyro (gx)" in done.out
    done = run("fit", "log.parquet", "--target", "activity", *LOG, *QUICK, "--ignore", "amount")
    assert "--ignore, --input and --datetime are for tables" in done.err


def test_options_of_a_log_need_a_window(run: Any, table: dict[str, Any]) -> None:
    done = run("fit", "log.parquet", "--target", "activity", "--hop", "1s", *QUICK)
    assert "--hop requires --window (for example --window 5s)" in done.err
    done = run("fit", "log.parquet", "--target", "activity", "--window", "1s", *QUICK)
    assert "--window needs --time" in done.err


def test_samples_of_a_stream_are_no_rows(run: Any, table: dict[str, Any]) -> None:
    smooth = {name: np.repeat(table[name], 3) for name in table if name != "amount"}
    smooth["t"] = np.tile(np.arange(360) / 60, 12)
    pl.DataFrame(smooth).write_csv("log.csv")
    done = run("fit", "log.csv", "--target", "activity", "--groups", "user", *QUICK)
    assert done.code == 0, done.err
    found = " ".join(done.out.split())
    assert "warning t Rows are in the order of column 't', which starts again 11 times" in found
    assert "--time 't' --sensor NAME=COLUMNS --window 5s --hop 1s --by RECORDING" in found
    assert "recording: whole numbers in runs: numbers of recordings; --input recording" in done.out
    rng = np.random.default_rng(0)
    noise = {name: rng.normal(size=400) for name in ("x", "z", "y")}
    pl.DataFrame({"t": np.arange(400.0), **noise}).write_csv("rows.csv")
    assert "warning" not in run("fit", "rows.csv", "--target", "y", *QUICK).out
    hours = [f"2024-05-{1 + k // 24:02d} {k % 24:02d}:00" for k in range(400)]
    pl.DataFrame({"when": hours, **noise}).write_csv("rows.csv")
    done = run("fit", "rows.csv", "--target", "y", "--datetime", "hour", *QUICK)
    assert "inputs    4: when (hour sin), when (hour cos), x, z" in done.out
    assert "warning" not in done.out


def test_a_page_about_a_model_of_windows(run: Any, table: dict[str, Any]) -> None:
    fit(run, "--groups", "user", "--by", "recording")
    done = run("evaluate", "model.safetensors", "log.parquet", "--report", "page.html")
    assert done.code == 0, done.err
    html = Path("page.html").read_text()
    assert "Windows of log.parquet. 132 labelled rows." in html
    assert "confusion matrix" in html
    assert "accuracy by user" in html
    assert "no time was given" in html  # each recording's seconds begin at 0
    assert "boosted trees" in html  # which fit kept
    done = run("evaluate", "model.safetensors", "log.parquet", "--target", "amount", "--quiet")
    assert "--target 'amount': the model predicts 'activity'" in done.err
    done = run("evaluate", "model.safetensors", "log.parquet", "--report", "p.html", "--time", "t")
    assert "a log has its time" in done.err
