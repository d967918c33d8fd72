"""The picture of what a budget was spent on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rdeepsense import InputError, plot_front


def tried(name: str, nll: float, flash: int, sums: int, chosen: bool = False) -> dict[str, Any]:
    need = {"flash": 1024 * flash, "ram": 1, "multiply_adds": sums}
    return {"name": name, "nll": nll, "need": need, "chosen": chosen}


def model(**limits: Any) -> Any:
    all_tried = [
        tried("Dense", 1.0, 4, 100),
        tried("Dense", 1.2, 8, 200),
        tried("Periodic", 0.5, 16, 900, chosen=True),
    ]
    front = [all_tried[0], all_tried[2]]
    selection = {"architectures": all_tried, "front": front, "how": "validation rows"}
    return SimpleNamespace(selection_=selection, training_={"budget": limits})


def test_points_front_choice_and_limits() -> None:
    figure = plot_front(model(flash=20_480, multiply_adds=None, dtype="int8"))
    flash, sums = figure.axes
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in flash.get_lines()]
    steps, good, beaten, periodic, ring, limit = drawn
    assert steps == ([4, 16], [1.0, 0.5])
    assert (good, beaten) == (([4], [1.0]), ([8], [1.2]))
    assert periodic == ring == ([16], [0.5])
    assert limit[0] == [20, 20]
    assert [list(line.get_xdata()) for line in sums.get_lines()] == [
        [100, 900], [100], [200], [900], [900]
    ]  # fmt: skip
    assert "3 networks within the budget, as int8 (validation rows)" in figure.get_suptitle()


def test_without_a_budget() -> None:
    with pytest.raises(InputError, match=r'needs an estimator fitted with hidden="auto" and'):
        plot_front(SimpleNamespace(selection_=None, training_={}))
