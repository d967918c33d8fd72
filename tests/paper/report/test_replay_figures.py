"""Charts of a replayed stream: means over the latest rows, and a page of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rdeepsense.live.replay import WAYS, Outcome, Replayed
from rdeepsense.reporting.replay import (
    replay_page,
    replay_picture,
    replay_table,
    replay_verdict,
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
        ways[way] = Outcome(error, held, np.full(400, 2.0 + number), error / 2)
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


@pytest.mark.parametrize(
    ("step", "unit", "wanted"),
    [
        (6, "h", ["2024-01-01", "2024-02-03", "2024-03-07", "2024-04-09"]),
        (8, "m", ["01-01 00:00", "01-01 17:44", "01-02 11:28", "01-03 05:12"]),
        (1, "m", ["00:00:00", "02:13:00", "04:26:00", "06:39:00"]),
    ],
)
def test_times_are_as_short_as_they_differ(step: int, unit: Any, wanted: list[str]) -> None:
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(400) * np.timedelta64(step, unit)
    axes = drawn(replace(stream(alarm=None), times=times, timed_by="t"), 0)
    found = [label.get_text() for label in axes.get_xticklabels()]
    assert found == wanted


def with_gain(gain: NDArray[np.float64], classes: bool = False) -> Replayed:
    """The live model's NLL is lower by so much, row by row."""
    rows = len(gain)
    ones, held = np.ones(rows), (np.arange(rows) % 10 > 0).astype(float)
    frozen = Outcome(0.5 * ones, 0 * held, ones, gain)
    ways = dict.fromkeys(WAYS, frozen) | {"live": Outcome(0.25 * ones, held, ones, 0 * gain)}
    return Replayed(ways, 0.9, ones > 0, ones > 0, 7, classes)


def test_the_verdict_by_hand(rng: np.random.Generator) -> None:
    # Means of ten blocks of 40 rows are 0, 1, ..., 9: mean 4.5, std 3.03, standard error 0.96.
    said = replay_verdict(with_gain(np.repeat(np.arange(10.0), 40)), "ppm")
    assert said.headline == "Learning from labels helped"
    assert said.sentences == (
        "NLL 4.5 ± 0.96 nats lower for the live model.",
        "MAE 0.25 ppm (frozen: 0.5 ppm).",
        "90 % intervals contain the value of 90 % of the rows (frozen: 0 %).",
        "Drift alarm at row 7.",
    )
    said = replay_verdict(with_gain(-np.repeat(np.arange(10.0), 40)))
    assert (said.headline, said.tone) == ("Learning from labels did harm", "bad")
    assert said.sentences[0] == "NLL 4.5 ± 0.96 nats higher for the live model."
    one_block = np.where(np.arange(400) < 40, 5.0, 0.0)  # many rows, but only one block of ten
    said = replay_verdict(with_gain(one_block), "ppm")
    assert said.headline == "Learning from labels made no clear difference"
    said = replay_verdict(with_gain(np.ones(29), classes=True))
    assert said.headline == "Too few labeled rows to tell whether learning helps"
    assert said.sentences[0] == "Accuracy 75.0 % (frozen: 50.0 %)."


def test_units_are_in_the_table_and_at_the_axes() -> None:
    found = stream(alarm=None)
    names = [row[0] for row in replay_table(found, unit="ppm").rows]
    assert names[:3] == [
        "mean absolute error (ppm)",
        "coverage of 90 % intervals",
        "mean width (ppm)",
    ]
    labels = []
    for panel in replay_picture(found, "ppm").panels:
        axes = Figure().subplots()
        panel.draw(axes)
        labels.append(axes.get_ylabel())
    assert labels == ["share of rows", "mean absolute error, ppm", "mean width, ppm"]
    page = replay_page("y", "", found, "ppm")
    assert '<div class="banner ' in page
    assert ".banner {" in page


def test_charts_follow_a_dark_scheme() -> None:
    page = replay_page("y", "", stream(alarm=None))
    white, scheme = (
        page.index("background: #ffffff"),
        page.index("figure { background: var(--card)"),
    )
    assert white < scheme
    assert "var(--blue)" in page
    assert "prefers-color-scheme: dark" in page
    assert "#0072b2" not in page[page.index("<svg") :].lower()
