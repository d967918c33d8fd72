"""Logs of sensors as people have them: recordings stay apart, and times mean what they say."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cli.conftest import run as command

import rdeepsense as rds
from rdeepsense.windowing.cut import apart, group_names

__all__ = ["command"]


def recording(rng: np.random.Generator, level: float, begin: float = 0.0, n: int = 600) -> Any:
    t = begin + np.cumsum(rng.normal(0.02, 0.002, n))
    return {"t": t, "ax": level + 0.1 * rng.normal(size=n)}


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def cut(table: Any, **more: Any) -> Any:
    return rds.windows(table, "t", {"acc": ["ax"]}, "2s", "1s", **more)


def test_recordings_that_overlap_in_time_are_refused(rng: np.random.Generator) -> None:
    parts = [
        {**recording(rng, 10 * r), "user": np.full(600, u), "rec": np.full(600, r)}
        for u in range(3)
        for r in range(2)
    ]
    log = joined(*parts)
    with pytest.raises(rds.InputError, match="'t' falls back by 1.* name the columns that tell"):
        cut(log, by="user")
    with pytest.raises(rds.InputError, match="by is not given"):
        cut(log)
    w = cut(log, by=["user", "rec"])
    assert w.recipe.rate == 50
    assert np.asarray(w).std(axis=1).max() < 1


@pytest.mark.parametrize("samples", [300, 600])
def test_recordings_at_equal_times_are_refused(rng: np.random.Generator, samples: int) -> None:
    first, second = recording(rng, 0), recording(rng, 10)
    first["t"] = second["t"] = np.arange(600) / 50
    with pytest.raises(rds.InputError, match="falls back by 11.98 s in row 600 "):
        cut(joined(first, {name: values[:samples] for name, values in second.items()}))


def test_a_clock_that_is_set_back_by_an_hour_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(rds.InputError, match="give times in UTC if a clock was set back"):
        cut(joined(recording(rng, 0, 0, 200_000), recording(rng, 0, 400, 10_000)))


ORDERS = {
    "shuffled": lambda t: np.random.default_rng(0).permutation(len(t)),
    "backwards": lambda t: np.arange(len(t))[::-1],
    "blocks in another order": lambda t: np.roll(np.arange(len(t)), 250),
    "a batch that came late": lambda t: np.r_[0:100, 150:500, 100:150, 500 : len(t)],
    "sent twice": lambda t: np.r_[0:400, 200 : len(t)],
    "single samples that came late": lambda t: np.argsort(
        t + 2 * (np.arange(len(t)) % 10 == 0), kind="stable"
    ),
    "of two radios": lambda t: np.argsort(t + 0.09 * (np.arange(len(t)) % 2), kind="stable"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_samples_of_one_recording_may_come_in_any_order(
    order: str, rng: np.random.Generator
) -> None:
    log = recording(rng, 0)
    rows = ORDERS[order](log["t"])
    w = cut({name: values[rows] for name, values in log.items()})
    np.testing.assert_array_equal(np.asarray(w), np.asarray(cut(log)))


def test_sensors_may_be_logged_one_after_the_other(rng: np.random.Generator) -> None:
    acc, gyro = recording(rng, 0), recording(rng, 5)
    log = joined(acc | {"gx": np.full(600, np.nan)}, gyro | {"gx": gyro["ax"]})
    log["ax"][600:] = np.nan
    w = rds.windows(log, "t", {"acc": ["ax"], "gyro": ["gx"]}, "2s", "1s")
    assert abs(np.asarray(w)[..., 1].mean() - 5) < 0.1


def zoned(kind: str) -> Any:
    """Two hours of one sample a second in New York, over the end of summer time."""
    zone = zoneinfo.ZoneInfo("America/New_York")
    begin = datetime(2024, 11, 3, 5, 30, tzinfo=UTC)
    times = [(begin + timedelta(seconds=s)).astimezone(zone) for s in range(7200)]
    value = np.arange(7200.0)
    if kind == "polars":
        return pl.DataFrame({"t": pl.Series(times).dt.convert_time_zone(str(zone)), "ax": value})
    if kind == "pyarrow":
        return pa.table({"t": pa.array(times, pa.timestamp("us", str(zone))), "ax": value})
    if kind == "pandas":
        return pd.DataFrame({"t": pd.to_datetime(times, utc=True).tz_convert(zone), "ax": value})
    return {"t": np.array(times, dtype=object), "ax": value}


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "pandas", "objects"])
def test_times_with_a_zone_are_converted_to_utc(kind: str) -> None:
    w = rds.windows(zoned(kind), "t", {"a": ["ax"]}, "60s")
    assert len(w) == 120
    assert w.starts[0] == np.datetime64("2024-11-03T05:30")
    np.testing.assert_array_equal(np.asarray(w).reshape(-1), np.arange(7200))
    assert w.report.lost_samples == {}


def test_times_with_and_without_a_zone_are_refused() -> None:
    times = [datetime(2024, 11, 3, 1, 0, s, tzinfo=UTC if s % 2 else None) for s in range(50)]
    log = {"t": np.array(times, dtype=object), "ax": np.zeros(50)}
    with pytest.raises(rds.InputError, match="some times have a time zone, others have none"):
        cut(log)


def test_a_time_far_from_all_others_is_refused(rng: np.random.Generator) -> None:
    log = recording(rng, 0)
    log["t"][7] = -1e300
    with pytest.raises(rds.InputError, match=r"row 7 .*-1e\+300.* the median"):
        cut(log)


def test_a_fit_on_windows_keeps_recordings_on_one_side(rng: np.random.Generator) -> None:
    """Labels at random by recording: overlapping windows on both sides would look learnt."""
    parts = []
    for k in range(12):
        t = np.arange(200) / 50
        wave = rng.normal() + np.sin(6 * rng.uniform(0.5, 5) * t)
        what = np.full(200, "ab"[k % 2])
        parts.append({"t": t, "ax": wave, "rec": np.full(200, k), "what": what})
    w = rds.windows(joined(*parts), "t", {"acc": ["ax"]}, "1s", "0.1s", by="rec", label="what")
    options: dict[str, Any] = {"epochs": 20, "effort": "quick", "verbose": False, "device": "cpu"}
    network = rds.networks.Flattened((32,))
    model = rds.RDeepSenseClassifier(network=network, random_state=0, **options)
    scores = model.fit(w, w.y).validation_scores_
    assert scores == model.fit(w, w.y, groups=w.groups["rec"]).validation_scores_
    assert scores["accuracy"] < 0.8
    assert model.fit(w[:], w.y).validation_scores_["accuracy"] < 0.8  # found in the array, too
    leaky = model.set_params(check=False).fit(w[:], w.y)
    assert leaky.validation_scores_["accuracy"] > 0.9


def test_of_few_recordings_windows_on_both_sides_are_left_out(rng: np.random.Generator) -> None:
    w = rds.windows(recording(rng, 0, 0, 2000), "t", {"acc": ["ax"]}, "1s", "0.5s")
    groups, kept, said = apart(w)
    assert len(set(groups)) == 10
    ends = w.first + w.recipe.length
    for one in range(9):
        assert ends[kept & (groups <= one)].max() <= w.first[kept & (groups > one)].min()
    assert said.endswith("9 windows that reach from one into the next are left out")
    long = rds.windows(recording(rng, 0, 0, 600), "t", {"acc": ["ax"]}, "2s", "0.2s")
    groups, kept, _ = apart(long)
    assert len(set(groups)) == 3
    assert kept.mean() > 0.5


def test_recordings_keep_their_names_in_the_figures_of_a_fit(
    command: Callable[..., Any], rng: np.random.Generator
) -> None:
    parts = [
        {
            **recording(rng, k % 2, 0, 200),
            "rec": np.full(200, f"TRAIN{3 * k}"),
            "what": np.full(200, "ab"[k % 2]),
        }
        for k in range(12)
    ]
    pl.DataFrame(joined(*parts)).write_csv("log.csv")
    log = ("--time", "t", "--sensor", "acc=ax", "--window", "1s", "--by", "rec", "--json", "m.json")
    quick = ("--quick", "--epochs", 2, "--hidden", 4, "--device", "cpu", "-o", "m.st")
    done = command("fit", "log.csv", "--target", "what", *log, *quick)
    assert done.code == 0, done.err
    found = {one["group"] for one in json.loads(Path("m.json").read_text())["groups"]["what"]}
    assert len(found) > 1
    assert found < {f"TRAIN{3 * k}" for k in range(12)}
    assert all(name in done.out for name in found)


def test_groups_are_named_by_recording_and_time(rng: np.random.Generator) -> None:
    parts = [
        {**recording(rng, 0, 100 * k), "user": np.full(600, "u"), "rec": np.full(600, k)}
        for k in range(6)
    ]
    by = {"by": ["user", "rec"]}
    w = cut(joined(*parts), **by)
    names = group_names(w, apart(w)[0])
    assert names[0] == "user u, rec 0"
    assert len(set(names)) == 6
    few = cut(joined(*parts[:2]), **by)
    names = group_names(few, apart(few)[0])
    assert names[0].startswith("user u, rec 0 from 0.0")
    assert len(set(names)) == len(set(apart(few)[0]))
    one = cut(parts[0])
    assert group_names(one, apart(one)[0])[-1].startswith("from 9")
