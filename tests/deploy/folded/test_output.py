"""Links in numpy: worked out by hand, whatever the expression and the number of columns."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import link
from rdeepsense.deploy.folded.model import LastLayerLaplace, MeanStd, Output, Probabilities, apart
from rdeepsense.link import Column, LocationWidth, Softmax

ONE, NONE = np.ones(2), np.zeros(2)
# Every operation, three columns for each output.
RICH = LocationWidth(
    link.multiply(2.0, Column(0)),
    link.sqrt(link.add(link.softplus(Column(1)), link.square(link.exp(Column(2))))),
)


def test_three_columns_by_hand() -> None:
    raw = np.array([[1.0, -1.0, 0.0, 3.0, 0.5, -0.5]])  # two outputs: a a, b b, c c
    mean, std, epistemic, _ = Output(RICH, np.array([3.0, 1.0]), np.array([0.0, 0.1])).finish(raw)
    wanted = [3 * np.sqrt(np.log(2) + np.e), np.sqrt(np.log1p(np.exp(3)) + 1 / np.e)]
    np.testing.assert_allclose(std, [wanted], rtol=1e-14)
    np.testing.assert_allclose(mean, [[2.0, -2.0 + 0.1 * wanted[1]]], rtol=1e-14)
    assert epistemic is None


def test_softplus_does_not_overflow() -> None:
    steep = LocationWidth(Column(0), link.add(link.softplus(Column(1)), 1e-3))
    raw = np.array([[0.0, 0.0, -800.0, 800.0]])
    found = Output(steep, ONE, NONE).finish(raw)
    assert isinstance(found, MeanStd)
    assert found.std.tolist() == [[1e-3, 800.001]]


def test_a_point_has_no_spread() -> None:
    found = Output(LocationWidth(Column(0), None)).finish(np.array([[4.0, 5.0]]))
    assert isinstance(found, MeanStd)
    assert (found.mean.tolist(), found.std.tolist()) == ([[4.0, 5.0]], [[0.0, 0.0]])


@pytest.mark.parametrize("root", [True, False])
def test_a_laplace_widens_the_variance(root: bool) -> None:
    """The width 3, or the variance 9, becomes the root of 9 + 4 * 2^2."""
    width = link.sqrt(Column(1)) if root else Column(1)
    laplace = LastLayerLaplace(np.eye(1), np.array([4.0]), np.array([7.0]))
    output = Output(LocationWidth(Column(0), width), np.array([2.0]), np.zeros(1), laplace)
    mean, std, epistemic, _ = output.finish(np.array([[1.0, 9.0 if root else 3.0, 2.0]]))
    assert (mean.item(), epistemic.item()) == (1.0, 14.0)  # type: ignore[union-attr]
    assert std.item() == pytest.approx(10.0, rel=1e-15)


def test_a_laplace_flattens_classes() -> None:
    laplace = LastLayerLaplace(np.eye(1), np.array([0.75, 0.75]), np.ones(2))
    found = Output(Softmax(), laplace=laplace).finish(np.array([[6.0, 2.0, 2.0]]))
    assert isinstance(found, Probabilities)
    # Logits 2 and -2, divided by sqrt(1 + 0.75 * 4) = 2.
    np.testing.assert_allclose(found.probs, [[1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))]])
    assert found.epistemic.tolist() == [[2.0, 2.0]]  # type: ignore[union-attr]


def test_apart_is_in_stds_or_in_probability() -> None:
    one, other = (
        MeanStd(np.array([[1.0]]), np.array([[2.0]])),
        MeanStd(*np.array([[[2.0]], [[3.0]]])),
    )
    assert apart(one, other).tolist() == [[[0.5]], [[0.5]]]
    half = Probabilities(np.array([[0.5, 0.5]]))
    assert apart(half, Probabilities(np.array([[0.25, 0.75]]))).tolist() == [[0.25, 0.25]]
