"""Distributions show themselves: a line of text, and HTML with the first entries."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rdeepsense.distributions import Categorical, Distribution, Gaussian, Mixture, StudentT


def test_a_line_of_text() -> None:
    assert repr(Gaussian([1.0, 3.0], [1.0, 2.0])) == "Gaussian(shape=(2,), mean=2, std=1.5)"
    assert repr(StudentT(0.0, 1.0, 4.0)).startswith("StudentT(shape=(), mean=0, std=1.414")
    assert repr(Gaussian(np.zeros(0), np.zeros(0))) == "Gaussian(shape=(0,))"


def test_numbers_by_hand() -> None:
    html = Gaussian(np.arange(100.0), np.ones(100))._repr_html_()
    assert "<td>2</td><td>2</td><td>1</td><td>0.3551 to 3.645</td>" in html
    assert "and 95 more" in html
    assert html.count("<circle") == 60
    assert 'aria-label="90 % intervals of the first 60 entries, from -1.645 to 60.64"' in html


def test_classes_by_hand() -> None:
    dist = Categorical([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]], ["<a>", "b", "c"])
    for one in (dist, Mixture([dist, dist])):
        html = one._repr_html_()
        assert "<td>&lt;a&gt; 50 %, b 30 %, c 20 %</td>" in html
        assert "<td>c 100 %, " in html


@pytest.mark.parametrize(
    "dist",
    [
        Gaussian(1.0, 2.0),
        Gaussian(np.zeros((3, 2)), np.ones((3, 2))),
        Gaussian(np.zeros(0), np.zeros(0)),
        Mixture([Gaussian(np.zeros(4), np.ones(4))] * 2),
        StudentT(np.zeros(2), np.ones(2), np.full(2, 3.0)),
    ],
    ids=repr,
)
def test_any_shape(dist: Distribution) -> None:
    html = dist._repr_html_()
    entries = int(np.prod(dist.shape))
    assert html.count("<tr>") == 1 + min(5, entries)
    assert not re.search("nan|inf", html)
