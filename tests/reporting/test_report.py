"""The page as a whole: its verdict, what it tells of the model's own names, what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_predictions import KINDS
from matplotlib.figure import Figure

import rdeepsense as rds
from rdeepsense import InputError
from rdeepsense.distributions import Categorical
from rdeepsense.pages.pictures import Picture
from rdeepsense.reporting.figures import residuals
from rdeepsense.reporting.report import ModelReport
from rdeepsense.reporting.subject import Subject

STRANGE = '<i a="$d$">'
WORDS = {"good": ("strong", "right"), "useless": ("none", "too narrow")}
SECTIONS = ["verdict", "calibration", "parts", "errors", "surprises", "inputs", "peers", "model"]


@pytest.mark.parametrize("kind", KINDS)
def test_five_models_made_on_purpose(pages: dict[str, ModelReport], kind: str) -> None:
    found = pages[kind]
    verdict = found.verdicts["heat"]
    skill, calibration = WORDS.get(kind, ("strong", kind))
    assert (verdict.skill, verdict.calibration) == (skill, calibration)
    assert [part.name for part in found.sections] == SECTIONS
    headline = f"skill {skill}, calibration {calibration}"
    assert found.sections[0].blocks[0].word == f"S{headline[1:]}"  # the verdict comes first
    assert repr(found) == f"ModelReport(heat: {headline})"
    assert headline in found._repr_html_()


def test_the_page_needs_nothing_but_itself(
    pages: dict[str, ModelReport], html: dict[str, str], tmp_path: Path
) -> None:
    page = pages["good"].save(tmp_path / "page.html").read_text()
    assert "<h1>&lt;good&gt;</h1>" in page
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert page == html["good"]  # the same bits


def test_names_units_and_labels_come_from_the_model(html: dict[str, str]) -> None:
    page = html["good"]
    for words in ("mean absolute error (kW)", "temp (°C)", "coverage by user", "coverage by when"):
        assert words in page
    table = re.search(r"<h3>The most surprising rows</h3>.*?</table>", page, re.S)
    assert table is not None
    header = re.findall(r"<th scope=\"col\">(.*?)</th>", table[0])
    assert header[:8] == ["row", "truth", "predicted", "90 % interval", "NLL", "status", "user",
                          "when"]  # fmt: skip
    assert set(header[8:]) == {"temp (°C)", "load", "site"}
    assert "roof" in table[0]


def test_every_figure_has_words_for_those_who_cannot_see_it(html: dict[str, str]) -> None:
    page = html["drifting"]
    labels = re.findall(r'<svg role="img" aria-label="([^"]*)"', page)
    assert len(labels) == page.count("<svg") == 12
    assert any("heat: coverage by when From 9" in label and "A change was found." in label
               for label in labels)  # fmt: skip
    assert any(
        re.search(r"\d+\.\d % of the values lie in the 90 % intervals", label) for label in labels
    )


def drawn(picture: Picture) -> list[Any]:
    """The axes of each panel, drawn."""
    found = []
    for panel in picture.panels:
        axes = Figure(figsize=panel.size).subplots()
        panel.draw(axes)
        axes.figure.draw_without_rendering()
        found.append(axes)
    return found


def test_no_legend_lies_over_the_data(pages: dict[str, ModelReport]) -> None:
    blocks = [block for section in pages["drifting"].sections for block in section.blocks]
    every = [axes for one in blocks if isinstance(one, Picture) for axes in drawn(one)]
    legends = [(axes, axes.get_legend()) for axes in every if axes.get_legend() is not None]
    assert len(legends) >= 5  # calibration, risk, residuals, intervals, time
    for axes, legend in legends:
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def test_the_confusion_matrix_by_hand() -> None:
    probs = np.eye(3)[[0, 0, 1, 1, 0, 1, 1, 1]]
    dist = Categorical(probs, classes=np.array(["lie", "sit", "walk"]))
    actual = np.array(["lie", "lie", "lie", "lie", "sit", "sit", "sit", "sit"])
    (axes,) = drawn(residuals(Subject("pose", "", dist, actual), "a"))
    cells = {one.get_position(): one.get_text() for one in axes.texts}
    assert cells == {(0, 0): "50 %\n2", (1, 0): "50 %\n2", (0, 1): "25 %\n1", (1, 1): "75 %\n3"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "actual class [rows]")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["lie [4]", "sit [4]", "walk [0]"]


def test_surprises_are_the_rows_of_the_largest_nll(
    model: Any, rows: Any, html: dict[str, str]
) -> None:
    nll = -model.predict_dist(rows.X).log_prob(rows.y)
    table = html["good"][html["good"].index("The most surprising rows") :]
    found = [int(n) for n in re.findall(r'<th scope="row">(\d+)</th>', table)[:10]]
    assert found == np.argsort(-nll, kind="stable")[:10].tolist()


def test_several_targets(rows: Any) -> None:
    X, y = rows.X, np.column_stack([rows.y, -rows.y])
    model = rds.RDeepSenseRegressor(
        effort="quick", hidden=(4,), epochs=2, random_state=0, verbose=False
    ).fit(X[:200], y[:200])
    found = rds.report(model.describe(target_names=["up", STRANGE]), X[200:500], y[200:500])
    assert list(found.verdicts) == ["up", STRANGE]
    html = found.html()
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    assert '<h3 class="part">&lt;i a=&quot;$d$&quot;&gt;</h3>' in html
    assert STRANGE not in html  # in no table, heading or figure
    assert "Nobody compared it with simple models" in html


def test_classes_and_windows() -> None:
    rng = np.random.default_rng(0)
    windows = rng.normal(size=(400, 8, 2)).astype(np.float32)
    labels = np.where(windows[:, :, 0].mean(1) > 0, "up", "down")
    model = rds.RDeepSenseClassifier(
        network=rds.networks.Flattened((8,)), epochs=30, drop_prob=0.0, alpha=0.0,
        calibrate=True, random_state=0, verbose=False,
    ).fit(windows[:200], labels[:200])  # fmt: skip
    found = rds.report(model, windows[200:], labels[200:], train=(windows[:200], labels[:200]))
    html = found.html()
    assert "confusion matrix" in html
    assert "mean of input 0" in html  # of the windows' channels
    assert "are not shown: a channel has no single value that could be moved" in html
    assert "predictions along" not in html
    assert "boosted trees" in html
    assert "on the training rows given" in html
    assert "coverage by" not in html


def test_refusals(model: Any, rows: Any) -> None:
    with pytest.raises(InputError, match="X has 19 rows; a report needs 20 or more"):
        rds.report(model, rows.X[:19], rows.y[:19])
    with pytest.raises(InputError, match="time is of <U1"):
        rds.report(model, rows.X[:30], rows.y[:30], time=["a"] * 30)
    with pytest.raises(InputError, match="time lacks a value in row 3 "):
        rds.report(model, rows.X[:30], rows.y[:30], time=[0.0, 1, 2, np.nan, *range(26)])
    with pytest.raises(InputError, match="groups"):
        rds.report(model, rows.X[:30], rows.y[:30], groups=[1, 2])
    with pytest.raises(InputError, match="accepted: an estimator"):
        rds.report("model.safetensors", rows.X, rows.y)  # type: ignore[arg-type]
