"""The picture of a selection shows every candidate and marks the chosen one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rdeepsense import InputError, RDeepSenseRegressor, plot_selection
from rdeepsense.datasets import simulate


def selection(**changes: Any) -> SimpleNamespace:
    trials = [
        {"likelihood": head, "alpha": alpha, "drop_prob": drop, "nll": nll, "deviation_area": 0.1}
        for nll, (head, alpha, drop) in enumerate(
            [("student", a, d) for a in (0.0, 0.5) for d in (0.0, 0.1, 0.2)]
            + [("gaussian", a, 0.1) for a in (0.0, 0.5)]
        )
    ]
    grid = {"by": "nll", "how": "validation rows", "chosen": 1, "trials": trials}
    return SimpleNamespace(selection_={**grid, **changes})


def test_a_line_for_each_head_and_alpha_and_a_ring_around_the_chosen() -> None:
    figure = plot_selection(selection())
    nll, area = figure.axes
    *lines, ring = nll.get_lines()
    assert [line.get_label() for line in lines] == [
        "student, alpha 0",
        "student, alpha 0.5",
        "gaussian, alpha 0",
        "gaussian, alpha 0.5",
    ]
    assert [list(line.get_ydata()) for line in lines] == [[0, 1, 2], [3, 4, 5], [6], [7]]
    assert [list(line.get_xdata()) for line in lines] == [[0, 1, 2], [0, 1, 2], [1], [1]]
    assert (list(ring.get_xdata()), list(ring.get_ydata())) == ([1], [1])
    assert [text.get_text() for text in nll.get_xticklabels()] == ["0", "0.1", "0.2"]
    assert area.get_lines()[0].get_ydata()[0] == 0.1
    assert "8 candidates (validation rows), chosen by NLL" in figure.get_suptitle()


def test_longer_trainings_have_a_panel_and_classes_no_deviation_area() -> None:
    lengths = [{"steps": 100, "nll": 1.0}, {"steps": 300, "nll": 0.9}]
    assert len(plot_selection(selection(lengths=lengths)).axes) == 3
    classes = selection()
    for trial in classes.selection_["trials"]:
        trial |= {"likelihood": "categorical", "deviation_area": None}
    assert len(plot_selection(classes).axes) == 1


def test_a_fitted_estimator() -> None:
    task = simulate(120, seed=0)
    options: dict[str, Any] = {"hidden": (8,), "epochs": 2, "random_state": 0, "device": "cpu"}
    model = RDeepSenseRegressor(
        **options, alpha="paper", drop_prob=0.05, likelihood="gaussian"
    ).fit(task.X, task.y)
    nll = plot_selection(model).axes[0]
    assert [text.get_text() for text in nll.get_xticklabels()] == [
        "0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "0.9",
    ]
    with pytest.raises(InputError, match="nothing was chosen"):
        plot_selection(RDeepSenseRegressor(**options, effort="quick").fit(task.X, task.y))
