"""Links as C: any expression over any number of columns, in every type of weights."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc

from rdeepsense.deploy.c import inputs
from rdeepsense.deploy.c.emit import Source, header, macros
from rdeepsense.deploy.folded.model import (
    DenseLayer,
    Facts,
    Folded,
    LastLayerLaplace,
    Layers,
    Output,
    triangular,
)
from rdeepsense.deploy.quantise import FloatLayer, as_float32, integers, standardised
from rdeepsense.errors import InputError
from rdeepsense.link import (
    Column,
    Expression,
    Link,
    LocationWidth,
    add,
    evaluate,
    exp,
    multiply,
    softplus,
    sqrt,
    square,
)

FIRST, SECOND, THIRD = Column(0), Column(1), Column(2)
LINKS: dict[str, Link] = {
    "gaussian": LocationWidth(FIRST, sqrt(add(softplus(SECOND), 1e-4))),
    "student": LocationWidth(FIRST, add(softplus(SECOND), 1e-3)),
    "log width": LocationWidth(FIRST, exp(multiply(0.5, SECOND))),
    "three columns": LocationWidth(
        add(FIRST, multiply(-0.25, THIRD)), sqrt(add(exp(SECOND), square(add(THIRD, 2.0))))
    ),
    "point": LocationWidth(FIRST, None),
}


def test_macros_of_the_gaussian_head() -> None:
    text, used = macros(LINKS["gaussian"], "MODEL_OUTPUTS", laplace=False)  # type: ignore[arg-type]
    assert text == (
        "#define LOCATION(raw, k) raw[k]\n"
        "#define WIDTH(raw, k) root(softplus(raw[MODEL_OUTPUTS + k]) + 9.99999975e-05f)\n"
    )
    assert used == {"softplus", "sqrt"}


def test_a_laplace_part_asks_for_the_variance_without_a_root() -> None:
    text, used = macros(LINKS["gaussian"], "N", laplace=True)  # type: ignore[arg-type]
    assert text.endswith("#define VARIANCE(raw, k) (softplus(raw[N + k]) + 9.99999975e-05f)\n")
    assert used == {"softplus"}
    text, used = macros(LINKS["student"], "N", laplace=True)  # type: ignore[arg-type]
    assert text.endswith("#define VARIANCE(raw, k) square(softplus(raw[N + k]) + 0.00100000005f)\n")
    assert used == {"softplus", "square"}


def test_nested_sums_and_products_keep_their_order() -> None:
    link = LocationWidth(multiply(add(FIRST, -1.0), add(SECOND, THIRD)), square(exp(FIRST)))
    text, used = macros(link, "N", laplace=False)
    assert text == (
        "#define LOCATION(raw, k) ((raw[k] + -1.0f) * (raw[N + k] + raw[2 * N + k]))\n"
        "#define WIDTH(raw, k) square(exp_of(raw[k]))\n"
    )
    assert used == {"exp", "square"}


@pytest.mark.parametrize("value", [1e39, -1e39, float("nan"), float("inf")])
def test_a_number_that_float32_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=re.escape(f"the link holds {value}, which")):
        macros(LocationWidth(FIRST, value), "N", laplace=False)


class Numpy:
    """The link's operations in float64."""

    def __init__(self, raw: Any, outputs: int) -> None:
        self.raw = raw.reshape(len(raw), -1, outputs)

    def column(self, number: int) -> Any:
        return self.raw[:, number]

    def constant(self, value: float) -> Any:
        return np.float64(value)

    def apply(self, operation: str, *arguments: Any) -> Any:
        known: dict[str, Any] = {
            "add": np.add, "multiply": np.multiply, "exp": np.exp, "sqrt": np.sqrt,
            "square": np.square, "softplus": lambda a: np.logaddexp(0, a),
        }  # fmt: skip
        return known[operation](*arguments)


def model(link: LocationWidth, outputs: int, laplace: bool) -> tuple[Folded, Any]:
    rng = np.random.default_rng(0)
    widths = (3, 12, link.columns * outputs)
    layers = tuple(
        DenseLayer(rng.normal(size=(n, m)) / m**0.5, 0.1 * rng.normal(size=n))
        for m, n in pairwise(widths)
    )
    centre = rng.normal(size=3)
    last = None
    if laplace:
        root = triangular(rng.normal(size=(16, 16)) / 16)
        last = LastLayerLaplace(root, rng.uniform(1, 2, outputs), rng.uniform(1, 2, outputs))
    output = Output(link, rng.uniform(1, 2, outputs), rng.normal(size=outputs), last)
    folded = Folded(Facts(3, outputs), Layers(centre, np.ones(3), layers), output)
    return folded, (centre + rng.normal(size=(200, 3))).astype(np.float32)


def network_of(folded: Folded, dtype: str, X: Any) -> Any:
    """Without the choices of an export, which would ask the folded model for its predictions."""
    if dtype == "int8":
        return integers(X, standardised(folded.layers), [np.full(12, 0.02)], 8.0)
    wide = as_float32(folded)
    if dtype == "float32":
        return wide
    halves = [FloatLayer((8 * w.weight).astype(np.float16), w.bias, 0.125) for w in wide.layers]
    return replace(wide, dtype="float16", layers=tuple(halves))


def built(source: Source, folder: Path) -> Any:
    """Without a self-test, for which the folded model would have to know the link."""
    texts = {"model.h": header(source), "model.c": source.code(), "weights.c": source.weights()}
    for file, text in texts.items():
        (folder / file).write_text(text)
    return library(folder, COMPILERS[0], "-O2")


FORMS = [
    ("float32", False),
    ("float32", True),
    ("float16", False),
    ("float16", True),
    ("int8", False),
]
CASES = [(name, dtype, laplace) for dtype, laplace in FORMS for name in LINKS]


@pytest.mark.everyday(len(LINKS), "compilers")
@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
@pytest.mark.parametrize(("name", "dtype", "laplace"), CASES)
def test_c_computes_the_link(name: str, dtype: str, laplace: bool, tmp_path: Path) -> None:
    link, outputs = LINKS[name], 2
    assert isinstance(link, LocationWidth)
    folded, X = model(link, outputs, laplace)
    source = Source(folded, network_of(folded, dtype, X))
    status, found = predict(built(source, tmp_path), source, X)
    assert set(status) == {0}
    raw = source.network.raw(X)
    size = raw[:, -1:] if laplace else np.zeros((len(X), 1))
    columns = Numpy(raw[:, :-1] if laplace else raw, outputs)
    width: Expression = 0.0 if link.width is None else link.width
    gain = folded.output.laplace.gain if folded.output.laplace is not None else np.zeros(outputs)
    std = folded.output.spread * np.sqrt(evaluate(width, columns) ** 2 + gain * size**2)
    np.testing.assert_allclose(found[1], std, rtol=2e-6, atol=1e-30)
    mean = evaluate(link.location, columns) + folded.output.shift * std
    np.testing.assert_allclose(found[0], mean, rtol=1e-5, atol=1e-5)
    if folded.output.laplace is not None:
        np.testing.assert_allclose(found[2], folded.output.laplace.std * size, rtol=2e-6)
    for compiler in COMPILERS[1:]:
        run_cc(tmp_path, compiler, *STRICT, "-O1", "-c", "model.c")


@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
def test_a_width_of_exp_is_finite_for_any_input(tmp_path: Path) -> None:
    link = LocationWidth(FIRST, exp(SECOND))
    folded, X = model(link, 2, laplace=False)
    source = Source(folded, as_float32(folded))
    far = np.concatenate([1e30 * X, -1e30 * X]).astype(np.float32)
    status, found = predict(built(source, tmp_path), source, far)
    assert set(status) == {2}
    assert np.isfinite(found).all()
    assert (found[1] > 0).all()
    assert found[1].max() == pytest.approx(folded.output.spread.max() * np.exp(87), rel=1e-5)  # type: ignore[union-attr]


def test_no_head_is_named_where_c_is_written() -> None:
    """Every head is its link; only the options of an export name heads, to refuse them."""
    for path in Path(inputs.__file__).parent.rglob("*.*"):
        if path.name != "export.py" and path.suffix in (".py", ".c", ".h"):
            text = path.read_text()
            assert not re.search(r"['\"](gaussian|student|point|categorical)['\"]", text), path.name
