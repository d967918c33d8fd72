"""Charts of a replayed stream: means over the latest rows, and a page of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rdeepsense.live.replay import WAYS, Replayed, Told
from rdeepsense.reporting.replay import (
    replay_page,
    replay_picture,
    replay_table,
    rolling,
    window_of,
)


def stream(alarm: int | None) -> Replayed:
    rng = np.random.default_rng(0)
    ways = {}
    for number, way in enumerate(WAYS):
        error = rng.exponential(10.0**number, 400)
        error[::5] = np.nan
        held = np.where(np.isnan(error), np.nan, (rng.random(400) < 0.9).astype(float))
        ways[way] = Told(error, held, np.full(400, 2.0 + number), error / 2)
    known = ~np.isnan(ways["live"].error)
    return Replayed(ways, 0.9, known, known, alarm, False)


def drawn(found: Replayed, panel: int) -> Any:
    """Draw one of the panels."""
    axes = Figure().subplots()
    replay_picture(found).panels[panel].draw(axes)
    return axes


def test_rolling_means_by_hand() -> None:
    nan = np.nan
    mean, count = rolling(np.array([1.0, nan, 3.0, 5.0, nan, nan, nan]), 3)
    np.testing.assert_array_equal(mean, [nan, nan, 2.0, 4.0, 4.0, 5.0, nan])
    assert count.tolist() == [0, 0, 2, 2, 2, 1, 0]
    assert (window_of(10), window_of(100), window_of(1200)) == (10, 30, 100)


def test_lines_are_rolling_means_and_the_alarm_is_marked() -> None:
    found = stream(alarm=123)
    coverage = drawn(found, 0)
    lines = {line.get_label(): line for line in coverage.lines}
    for way in ("frozen", "live"):
        seen = lines[way].get_ydata()
        np.testing.assert_array_equal(seen, rolling(found.ways[way].held, window_of(400))[0])
    assert list(lines["alarm"].get_xdata()) == [123, 123]
    assert "alarm" not in {line.get_label() for line in drawn(stream(None), 1).lines}


def test_the_page_holds_the_table_and_text_is_escaped() -> None:
    found = stream(alarm=None)
    page = replay_page("<y>", "a & b", found)
    assert "<h1>&lt;y&gt;</h1>" in page
    assert "a &amp; b" in page
    for row in replay_table(found).rows:
        for cell in row:
            assert cell in page
    assert "dotted line" not in page
    assert replay_table(found).rows[-1] == ["alarm", "-", "none"]
    assert "http" not in page.replace("http://www.w3.org", "")


def test_times_are_at_the_axis_and_beside_the_alarm() -> None:
    days = np.datetime64("2024-01-01T00:00:00") + np.arange(400) * np.timedelta64(1, "D")
    found = replace(stream(alarm=123), times=days, timed_by="day")
    axes = drawn(found, 0)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["2024-01-01", "2024-05-13", "2024-09-23", "2025-02-03"]
    assert axes.get_xlabel().startswith("day; ")
    assert replay_table(found).rows[-1] == ["alarm", "-", "row 123 (2024-05-02)"]


def test_charts_follow_a_dark_scheme() -> None:
    page = replay_page("y", "", stream(alarm=None))
    assert "var(--blue)" in page
    assert "prefers-color-scheme: dark" in page
    assert "#0072b2" not in page[page.index("<svg") :].lower()
