"""Every head's link says what its forward computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rdeepsense import link
from rdeepsense.errors import InputError
from rdeepsense.heads import HEADS
from rdeepsense.link import Column, LocationWidth, Softmax, evaluate, from_json, to_json

OUTPUTS = 3


class Numbers:
    """Plain numpy arithmetic, as a second opinion."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def column(self, number: int) -> Any:
        return self.raw[:, number * OUTPUTS : (number + 1) * OUTPUTS]

    def constant(self, value: float) -> Any:
        return value

    def apply(self, operation: str, *arguments: Any) -> Any:
        functions: dict[str, Any] = {
            "add": np.add,
            "multiply": np.multiply,
            "softplus": lambda a: np.logaddexp(0.0, a),
            "exp": np.exp,
            "sqrt": np.sqrt,
            "square": np.square,
        }
        return functions[operation](*arguments)


@pytest.mark.parametrize("name", HEADS)
def test_links_are_what_heads_compute(name: str) -> None:
    head = HEADS[name](OUTPUTS).double()
    raw = torch.randn(50, head.columns, dtype=torch.float64) * 4
    dist: Any = head(raw).numpy()
    if isinstance(head.link, Softmax):
        assert head.is_classifier
        odds = np.exp(raw.numpy())
        np.testing.assert_allclose(dist.probs, odds / odds.sum(1, keepdims=True))
        return
    numbers = Numbers(raw.numpy())
    np.testing.assert_array_equal(evaluate(head.link.location, numbers), dist.mean)
    if head.link.width is not None:
        width = evaluate(head.link.width, numbers)
        np.testing.assert_allclose(width * head.unit().std, dist.std, rtol=1e-12)
        variance = head.link.variance
        assert variance is not None
        np.testing.assert_allclose(evaluate(variance, numbers), width**2, rtol=1e-12)


@pytest.mark.parametrize("name", HEADS)
def test_links_survive_a_file(name: str) -> None:
    assert from_json(to_json(HEADS[name].link)) == HEADS[name].link


def test_columns_are_counted_through_expressions() -> None:
    deep = link.multiply(link.exp(Column(2)), link.add(link.square(Column(1)), 3.0))
    assert LocationWidth(Column(0), deep).columns == 3
    assert LocationWidth(Column(0), None).columns == 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        "softmin",
        {"location": ["column", 0]},
        {"location": ["column", 0], "width": ["log", 1.0]},
        {"location": ["column", 0], "width": ["add", 1.0]},
        {"location": ["column", "0"], "width": None},
        {"location": ["column", True], "width": None},
        {"location": True, "width": None},
    ],
)
def test_strange_links_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="link"):
        from_json(value)


def test_a_link_that_is_too_deep_is_refused() -> None:
    deep: Any = 1.0
    for _ in range(10_000):
        deep = ["exp", deep]
    with pytest.raises(InputError, match="more than 16 deep"):
        from_json({"location": deep, "width": None})
