"""Eight bits: exact sums, honest predictions, no overflow whatever the inputs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, library, predict, write
from deploy.folded_models import finished, forward, hand_made, with_layers
from deploy.random_models import draw

from rdeepsense.datasets import simulate
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import DenseLayer, Folded
from rdeepsense.deploy.quality import Quality, quality
from rdeepsense.deploy.quantise import (
    LEVELS,
    Int8Layer,
    Int8Network,
    NetworkRunner,
    _paired,
    best_units,
    integers,
    quantise,
    reach_of,
    standardised,
    to_bytes,
)
from rdeepsense.errors import InputError
from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.estimators.base import fitted_model


def quantised(folded: Folded, X: Any) -> Int8Network:
    return quantise(folded, np.asarray(X, dtype=np.float32))


def judged(model: Any, folded: Folded, network: Int8Network, X: Any, y: Any) -> Quality:
    return quality(NetworkRunner(folded, network), fitted_model(model), X, y)


@pytest.fixture(scope="module")
def regressor() -> RDeepSenseRegressor:
    task = simulate(3000, 0)
    arguments: dict[str, Any] = {"epochs": 15, "random_state": 0, "verbose": False}
    return RDeepSenseRegressor(hidden=(48, 48), drop_prob=0.02, **arguments, effort="quick").fit(
        task.X, task.y
    )


def test_int8_keeps_nll_and_coverage(regressor: RDeepSenseRegressor) -> None:
    test = simulate(5000, 1)
    folded = fold(regressor)
    network = quantised(folded, regressor.fitted_.kept_rows[0])
    found = judged(regressor, folded, network, test.X, test.y)
    assert abs(found.nll_change) < 0.02
    assert abs(found.after["coverage_90"] - found.before["coverage_90"]) < 0.01
    assert found.rows == 5000


def test_int8_keeps_class_probabilities() -> None:
    task, test = simulate(2000, 0), simulate(3000, 1)
    classes, truth = (np.digitize(t.y, [40.0, 60.0]) for t in (task, test))
    model = RDeepSenseClassifier(epochs=10, random_state=0, verbose=False, effort="quick").fit(
        task.X, classes
    )
    folded = fold(model)
    found = judged(model, folded, quantised(folded, model.fitted_.kept_rows[0]), test.X, truth)
    assert abs(found.nll_change) < 0.02


def test_a_coarser_network_would_be_seen(regressor: RDeepSenseRegressor) -> None:
    """The figures can fail: three bits less, and the NLL moves."""
    test = simulate(2000, 1)
    folded = fold(regressor)
    network = quantised(folded, regressor.fitted_.kept_rows[0])
    coarse = [
        dataclasses.replace(layer, weight=(layer.weight // 32 * 32).astype(np.int8))
        for layer in network.layers
    ]
    worse = dataclasses.replace(network, layers=tuple(coarse))
    assert judged(regressor, folded, worse, test.X, test.y).nll_change > 0.02


def test_heads_are_never_clipped(regressor: RDeepSenseRegressor) -> None:
    """Rows that push the output past all that calibration saw still move it."""
    folded = fold(regressor)
    *others, last = folded.layers.dense
    stretched = with_layers(folded, *others, DenseLayer(100 * last.weight, last.bias))
    rows = regressor.fitted_.kept_rows[0]
    network = quantised(stretched, rows[:50])
    exact, found = stretched.raw(rows), network.raw(rows)
    assert np.abs(exact).max() > 100
    assert np.abs(found - exact).max() < 0.05 * np.ptp(exact)


def bent(rows: int = 101) -> tuple[Folded, Any]:
    """The mean is 10 x up to bends at -2 and 2 and 40 x beyond them, the std always 0.3."""
    layers = (
        DenseLayer(np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.array([0.0, 0.0, -2.0, -2.0])),
        DenseLayer(np.array([[10.0, -10, 30, -30], [0, 0, 0, 0]]), np.array([0.0, -2.4])),
    )
    return hand_made("gaussian", np.zeros(1), layers), np.linspace(-2.5, 2.5, rows)[:, None]


def test_rows_beyond_the_calibration_are_not_clipped() -> None:
    folded, X = bent()
    network = quantised(folded, X)
    far = (3 * X).astype(np.float32)
    mean, _ = forward(folded, far)
    found = finished(folded, network.raw(far))
    assert mean.max() > 225 - 60
    # Half a step of each unit, whose step is a 255th of the row's largest.
    assert (np.abs(found[0] - mean) <= 80 * np.abs(far) / 255 / 2 + 0.01).all()
    np.testing.assert_allclose(found[1], forward(folded, far)[1], rtol=0.01)


def test_small_activations_are_not_rounded_coarsely() -> None:
    """A row's step is a 255th of its own largest activation, not of the calibration's."""
    folded, X = bent()
    network = quantised(folded, X)
    small = (X / 100).astype(np.float32)
    error = np.abs(finished(folded, network.raw(small))[0] - forward(folded, small)[0])
    assert error.max() < 0.004  # of means up to 0.25; steps of the calibration would be 0.1


def test_a_step_is_never_so_small_that_biases_overflow(tmp_path: Path) -> None:
    """Rows on which almost nothing fires, before a layer with large biases."""
    folded, X = bent()
    first, last = folded.layers.dense
    middle = DenseLayer(np.eye(4) * 1e-4, np.array([5.0, -7.0, 0.0, 3e3]))
    same = DenseLayer(np.eye(4), np.zeros(4))
    folded = with_layers(folded, first, same, middle, last)
    network = quantised(folded, X)
    tiny = np.concatenate([X * 1e-12, 0 * X, X]).astype(np.float32)
    q, step = network.inputs(tiny), np.ones((303, 1), np.float32)
    for layer in network.layers[:2]:
        q, step = to_bytes(layer, q, step)
        assert (step >= 0.99 * layer.least).all()
    assert np.abs(network.layers[2].sums(q, step)).max() < 2**30
    assert network.layers[1].least <= 1 / 16  # large biases beside small weights leave room
    found = finished(folded, network.raw(tiny))
    np.testing.assert_allclose(found[0], forward(folded, tiny)[0], rtol=0.02)
    if COMPILERS:
        source = Source(folded, network)
        flags = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
        built = library(write(source, tmp_path / "m", tiny), "gcc", *flags)
        np.testing.assert_allclose(predict(built, source, tiny)[1], found, rtol=2e-6)


def test_biases_make_the_mean_output_right() -> None:
    """Rounded weights shift what a unit says on average; its bias takes that out again."""
    drawn = draw(4, widest=40, most=6)
    folded = fold(drawn.estimator)
    X = (drawn.X + 3 * drawn.X.std(0)).astype(np.float32)  # far from 0, where the shift is largest
    ready = standardised(folded.layers)
    units, reach = best_units(folded, X, ready), reach_of(folded, X, ready)
    network = integers(X, ready, units, reach)
    z, one = (X - ready.centre) * ready.per_scale, np.ones((len(X), 1), np.float32)
    wanted = ((z @ ready.dense[0].weight.T + ready.dense[0].bias) / units[0]).mean(0)

    def mean_of(layer: Int8Layer) -> Any:
        return (layer.sums(network.inputs(X), one) * layer.factor).mean(0)

    precision = 0.01 * np.abs(wanted).max() / 127
    np.testing.assert_allclose(mean_of(network.layers[0]), wanted, atol=precision)
    plain = integers(X, ready, units, reach, corrected=False)
    assert np.abs(mean_of(plain.layers[0]) - wanted).max() > 10 * precision
    np.testing.assert_allclose(network.raw(X).mean(0), folded.raw(X).mean(0), rtol=1e-4, atol=1e-4)


def test_a_network_without_biases_gets_corrected_ones() -> None:
    rng = np.random.default_rng(0)
    folded, _ = bent()
    dense = [
        DenseLayer(rng.normal(size=shape), np.zeros(shape[0])) for shape in ((8, 1), (8, 8), (2, 8))
    ]
    folded = with_layers(folded, *dense)
    X = rng.uniform(1, 3, (200, 1))
    network = quantised(folded, X)
    assert np.abs(network.layers[1].bias).max() > 1
    np.testing.assert_allclose(network.raw(X).mean(0), folded.raw(X).mean(0), rtol=1e-4, atol=1e-4)


@pytest.mark.everyday(2, "compilers")
@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O3", "-mavx2"], ["-O3", "-march=native"]])
@pytest.mark.parametrize("seed", [0, 4, 5])
def test_c_agrees_to_the_bit(seed: int, flags: list[str], tmp_path: Path) -> None:
    drawn = draw(seed, widest=150, most=9)
    folded = fold(drawn.estimator)
    source = Source(folded, quantised(folded, drawn.X))
    folder = write(source, tmp_path / "m", drawn.X)
    try:
        built = library(folder, COMPILERS[0], *flags)
    except AssertionError as error:
        if "unrecognized" in str(error):
            pytest.skip("the compiler is for another processor")
        raise
    status, found = predict(built, source, drawn.X)
    assert set(status) == {0}
    wanted = finished(folded, source.network.raw(drawn.X.astype(np.float32)))
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
def test_no_sum_overflows(tmp_path: Path) -> None:
    """300 inputs, all weights and inputs at their largest, of either sign."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (8, 300))
    signs[0] = 1
    layers = (
        DenseLayer(signs, rng.normal(size=8)),
        DenseLayer(rng.choice([-1.0, 1.0], (2, 8)), np.array([1e5, -1.0])),
    )
    folded = hand_made("gaussian", np.zeros(300), layers)
    X = np.concatenate([8 * signs, -8 * signs, rng.normal(size=(50, 300))]).astype(np.float32)
    network = quantised(folded, X)
    assert network.levels < LEVELS  # fewer steps, so that the sums fit
    q, step = network.inputs(X), np.ones((len(X), 1), np.float32)
    for layer in network.layers:
        largest = q @ np.abs(layer.weight.astype(np.int64)).T
        assert largest.max() < 2**31
        assert np.abs(layer.sums(q, step)).max() < 2**31
        q, step = to_bytes(layer, q, step)
    source = Source(folded, network)
    flags = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    built = library(write(source, tmp_path / "m", X), "gcc", *flags)
    status, found = predict(built, source, X)
    assert set(status) == {0}
    np.testing.assert_allclose(found, finished(folded, network.raw(X)), rtol=2e-6)


def test_weights_that_vanish_beside_their_bias() -> None:
    """A dead unit's bias must fit 32 bits whatever its weights."""
    layers = (
        DenseLayer(np.array([[1e-20, 0], [0, 0], [1, 1]]), np.array([3.0, 2.0, 0.0])),
        DenseLayer(np.ones((2, 3)), np.zeros(2)),
    )
    folded = hand_made("gaussian", np.zeros(2), layers)
    X = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_allclose(quantised(folded, X).raw(X), folded.raw(X), atol=0.1)


def test_packing_by_hand() -> None:
    weight = np.arange(65 * 5).reshape(65, 5) % 100
    layer = Int8Layer(weight.astype(np.int8), *np.zeros((2, 65), np.float32), 1.0)
    packed = layer.packed()
    assert packed.size == 65 * 8
    assert packed[:8].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]  # outputs 0 and 1, inputs 0 to 3
    assert packed[64 * 4 : 64 * 4 + 4].tolist() == [4, 0, 0, 0]  # output 0, input 4, then padding
    assert packed[64 * 8 :].tolist() == [*weight[64, :4], weight[64, 4], 0, 0, 0]


def test_int8_needs_rows(regressor: RDeepSenseRegressor) -> None:
    with pytest.raises(InputError, match="int8 needs rows to calibrate"):
        quantised(fold(regressor), np.zeros((0, 4)))


def test_inputs_are_rounded_and_held_in_range(regressor: RDeepSenseRegressor) -> None:
    folded = fold(regressor)
    network = quantised(folded, regressor.fitted_.kept_rows[0])
    far = folded.layers.centre + folded.layers.scale * np.array([[0.0], [1e9], [-1e9], [1.0]])
    q = network.inputs(far)
    assert q[0].tolist() == [network.levels] * 4
    assert q[1].tolist() == [2 * network.levels] * 4
    assert q[2].tolist() == [0] * 4
    one = (q[3] - network.levels) * network.reach / network.levels
    np.testing.assert_allclose(one, 1.0, atol=0.51 * network.reach / network.levels + 1e-6)


def test_units_that_are_large_together_are_no_neighbours() -> None:
    """Neither 0 and 1, nor 5 and any but 4, with which it is 258 at most; 8 and 9 are no four."""
    q = np.array([[200, 100, 0, 9, 3, 255, 90, 30, 0, 0], [255, 255, 1, 3, 0, 255, 0, 9, 0, 0]])
    found = _paired(q, np.array([0, 1, 2, 3, 7, 5, 4, 6, 9, 8]))
    assert found.tolist() == [0, 2, 1, 3, 7, 6, 5, 4, 9, 8]
    assert _paired(q[:, :3], np.array([2, 0, 1])).tolist() == [2, 0, 1]
