"""The demo's picture: three panels that say what they show, and files that are whole."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import rdeepsense as rds
from rdeepsense.datasets import simulate
from rdeepsense.pages.pictures import save
from rdeepsense.plot.figures import Slice, known_truth


def picture() -> Figure:
    task = simulate(500, 0)
    order = np.argsort(task.X[:, 0])
    truth, x = task.truth[order], task.X[order, 0]
    wide = truth.widened(1.5)
    return known_truth(Slice(x, truth, wide, task.y[order], "input x0"), truth, wide, task.y[order])


@pytest.fixture
def figure() -> Figure:
    return picture()


def test_panels_are_labelled(figure: Figure) -> None:
    assert "simulated" in figure.get_suptitle()
    assert len(figure.axes) == 3
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_title(loc="left")
        assert axes.get_legend() is not None
    titles = [axes.get_legend().get_title().get_text() for axes in figure.axes]
    assert titles[1] == "RMSE of log std 0.405"  # log 1.5
    assert f"floor at this n {rds.metrics.deviation_floor(500):.4f}" in titles[2]


def test_intervals_too_wide_are_above_the_diagonal(figure: Figure) -> None:
    observed = next(line for line in figure.axes[2].lines if line.get_label() == "predicted")
    levels, shares = observed.get_data()
    assert (shares[:9] > levels[:9]).all()


def test_no_text_overlaps_the_next_panel(figure: Figure) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert boxes[0].x1 <= boxes[1].x0
    assert boxes[1].x1 <= boxes[2].x0


def test_saved_whole_and_the_same_each_time(tmp_path: Path) -> None:
    png, svg = save(picture(), tmp_path / "picture")
    assert (png.name, svg.name) == ("picture.png", "picture.svg")
    assert int.from_bytes(png.read_bytes()[16:20], "big") >= 1_500  # pixels wide
    ET.fromstring(svg.read_text())
    again = save(picture(), tmp_path / "again")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]


def test_a_failed_save_leaves_nothing(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        save(figure, tmp_path / "picture")
    assert not list(tmp_path.iterdir())
