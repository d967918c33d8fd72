"""The tables of C are as long as the sizes in its configuration say, whatever made the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from deploy.folded_models import hand_made
from deploy.random_models import draw

from rdeepsense.deploy.c.build import compiled
from rdeepsense.deploy.c.emit import Source, Table, tables_of
from rdeepsense.deploy.c.inputs import CModel, c_model
from rdeepsense.deploy.c.layout import Dimensions, begins, column_floats, int8_sizes, tables
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.deployed import DeployedModel
from rdeepsense.deploy.folded.model import DenseLayer, Folded, LastLayerLaplace
from rdeepsense.deploy.quantise import Int8Layer, Int8Network, as_float32, prepare, quantise
from rdeepsense.errors import InputError
from rdeepsense.refusal import Refusal

OUTPUTS = 4


def model(**output: Any) -> Folded:
    """A Gaussian 3-5-8, with parts of its output replaced."""
    rng = np.random.default_rng(0)
    layers = [DenseLayer(rng.normal(size=(n, m)), rng.normal(size=n)) for m, n in ((3, 5), (5, 8))]
    folded = hand_made("gaussian", np.zeros(3), layers)
    return replace(folded, output=replace(folded.output, **output))


def laplace(rows: int, outputs: int) -> LastLayerLaplace:
    return LastLayerLaplace(np.eye(rows), np.ones(outputs), np.ones(outputs))


def made(model: CModel) -> list[Table]:
    return tables_of(model, Dimensions.of(model))


def assert_as_laid_out(model: CModel) -> None:
    """Every table has the name, the type and the count that its layout says."""
    found = [(t.name, t.kind, t.values.size, t.more, t.where) for t in made(model)]
    wanted = tables(Dimensions.of(model))
    assert found == [(f"m_{a.name}", a.kind, a.count, a.pad, a.align) for a in wanted]


BROKEN = {
    "spread": {"spread": np.ones(1)},
    "shift": {"shift": np.ones(OUTPUTS - 1)},
    "doubt.gain": {"laplace": laplace(9, 1)},
    "doubt.root": {"laplace": laplace(7, OUTPUTS)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_short_arrays_are_refused_by_everything_that_runs_a_model(name: str) -> None:
    folded, message = model(**BROKEN[name]), f"does not fit the layers: {name} has"
    with pytest.raises(InputError, match=message):
        compiled(folded)
    with pytest.raises(InputError, match=message):
        Source(folded, as_float32(model()))
    with pytest.raises(InputError, match=message):
        DeployedModel(folded)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_table_is_held_to_its_length(dtype: str) -> None:
    folded, X = model(), np.random.default_rng(1).normal(size=(50, 3))
    network: Any = as_float32(folded) if dtype == "float32" else quantise(folded, X)
    right = c_model(folded, network, "m")
    assert_as_laid_out(right)
    with pytest.raises(InputError, match="the table spread has 3 numbers where .* need 4"):
        made(replace(right, spread=np.ones(3)))
    with pytest.raises(InputError, match="the table refuse has 1 numbers where .* need 4"):
        made(replace(right, refusal=Refusal(np.ones(1), np.ones(1))))
    with pytest.raises(InputError, match="the first layer reads 2 numbers of 3 inputs"):
        made(replace(right, widths=(2, *right.widths[1:])))
    with pytest.raises(InputError, match="the network has 2 layers, the model 1"):
        made(replace(right, widths=(3, 8)))
    with pytest.raises(InputError, match="weights?(_0)? has [0-9]+ numbers where"):
        made(replace(right, widths=(3, 6, 8)))


def test_numbers_that_float32_cannot_hold_are_refused() -> None:
    folded = model(spread=np.full(OUTPUTS, 1e60))
    with pytest.raises(InputError, match="the table spread holds what float32 cannot"):
        Source(folded, as_float32(folded))
    DeployedModel(folded).predict(np.zeros((1, 3)))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_tables_of_an_embedding_are_held_to_theirs(dtype: str) -> None:
    drawn = draw(0, widest=9, most=5, periodic=True)
    folded = fold(drawn.estimator)
    right = c_model(folded, prepare(folded, dtype, drawn.X), "m", None)
    assert_as_laid_out(right)
    embedding = right.network.embedding
    assert embedding is not None
    for changes, words in [
        ({"frequency": embedding.frequency[1:]}, "the table frequency has"),
        ({"bias": embedding.bias[:, 1:]}, "the table embedding_bias has"),
        ({"weight": embedding.weight[:, :, 1:]}, "which are not . inputs and"),
    ]:
        network = replace(right.network, embedding=replace(embedding, **changes))
        with pytest.raises(InputError, match=words):
            made(replace(right, network=network))


def test_large_layers_begin_on_cache_lines() -> None:
    def layer(inputs: int, outputs: int) -> Int8Layer:
        weight = np.arange(inputs * outputs).reshape(outputs, inputs) % 100
        ones = np.ones(outputs, np.float32)
        return Int8Layer(weight.astype(np.int8), ones, ones, 1.0)

    zero, layers = np.zeros(3, np.float32), (layer(3, 5), layer(5, 900), layer(900, 2))
    network = Int8Network(zero, zero + 1, 1, 1.0, layers, zero[:2])
    dense = [DenseLayer(one.weight.astype(float), one.bias.astype(float)) for one in layers]
    source = Source(hand_made("gaussian", np.zeros(3), dense), network)
    starts, length = begins(int8_sizes(source.dimensions))
    assert starts == [0, 64, 64 + 8 * 900]  # 20 bytes, a gap; the last one is small
    (packed,) = (t.values for t in source.tables if t.name == "model_weights")
    assert len(packed) == length == 64 + 8 * 900 + 900 * 2
    assert packed[20:64].max() == 0
    for start, one in zip(starts, layers, strict=True):
        part = one.packed()
        assert np.array_equal(packed[start : start + part.size], part)
        assert f"model_weights + {start}," in source.code()


def test_columns_of_many_rows_lie_an_odd_number_of_lines_apart(rng: np.random.Generator) -> None:
    shapes = ((2, 63), (63, 500), (500, 2))
    dense = [DenseLayer(rng.normal(size=(n, m)), rng.normal(size=n)) for m, n in shapes]
    folded = hand_made("gaussian", np.zeros(2), dense)
    found = {t.name: t for t in Source(folded, as_float32(folded), many=True).tables}
    assert column_floats(500, many=True) == 528  # 33 lines
    assert column_floats(63, many=True) == 63
    wide = found["model_weight_1"]
    assert wide.values.shape == (63, 528)
    assert np.array_equal(wide.values[:, :500], dense[1].weight.T.astype(np.float32))
    assert wide.definition().startswith(f"ON_A_LINE const float model_weight_1[{63 * 528}]")
    assert found["model_weight_0"].values.shape == (2, 63)
    alone = Source(folded, as_float32(folded)).tables
    assert [t.values.shape for t in alone if t.name == "model_weight_1"] == [(63, 500)]
