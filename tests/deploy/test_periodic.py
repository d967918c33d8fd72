"""Networks that read periodic embeddings: every form of one says what torch does."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.folded_models import finished, forward
from deploy.random_models import Drawn, draw
from torch import nn

import rdeepsense as rds
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold, is_dense, save
from rdeepsense.deploy.folded.file import load_folded
from rdeepsense.deploy.onnx import nodes
from rdeepsense.deploy.onnx.export import OnnxRunner
from rdeepsense.deploy.quantise import prepare
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.networks import Periodic
from rdeepsense.networks.periodic import PeriodicEmbedding

SMALL: dict[str, Any] = {"epochs": 1, "random_state": 0, "verbose": False}
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def told(drawn: Drawn, X: Any) -> Any:
    """What torch says in float64: (2, rows, outputs), or (rows, classes)."""
    if hasattr(drawn.estimator, "classes_"):
        return drawn.estimator.predict_proba(X)
    pair = drawn.estimator.predict(X, return_std=True)
    return np.stack([part.reshape(len(X), -1) for part in pair])


def apart(found: Any, wanted: Any) -> float:
    """The greatest distance in probability, or in stds."""
    scale = 1.0 if wanted.ndim == 2 else wanted[1]
    return float(np.abs((found - wanted) / scale).max())


def near(found: Any, wanted: Any, bound: float, of_mean: float = 1e-6) -> bool:
    """Whether this many stds apart at most; of a mean far out floats hold no more than they do."""
    return bool((np.abs(found - wanted) <= bound * wanted[1] + of_mean * np.abs(wanted)).all())


def rows_of(drawn: Drawn) -> Any:
    """Rows of the training, as floats of 32 bits."""
    return drawn.X[:24].astype(np.float32)


@pytest.mark.parametrize("seed", range(6))
def test_folded_layers_predict_what_torch_does(seed: int, tmp_path: Path) -> None:
    drawn = draw(seed, widest=60, most=9, periodic=True)
    folded = fold(drawn.estimator)
    assert folded.layers.embedding is not None
    far = drawn.X.mean(0) + drawn.X.std(0) * np.array([[99.0], [-101], [1e5], [-1e9]])
    for X in (drawn.X, far):
        assert apart(forward(folded, X), told(drawn, X)) < 1e-9, drawn.name
    save(folded, tmp_path / "m")
    loaded = load_folded(tmp_path / "m")
    assert np.array_equal(forward(loaded, drawn.X), forward(folded, drawn.X))
    assert loaded.facts.source == folded.facts.source


def test_many_rows_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw(0, widest=9, most=5, periodic=True)
    folded = fold(drawn.estimator)
    whole = forward(folded, drawn.X)
    monkeypatch.setattr("rdeepsense.deploy.folded.model.NUMBERS", 1)
    np.testing.assert_allclose(forward(folded, drawn.X), whole, rtol=1e-12)
    assert forward(folded, drawn.X[:0]).shape[-2] == 0


def test_the_trained_numbers_are_all_in_the_digest() -> None:
    drawn = draw(0, widest=9, most=5, periodic=True)
    before = fold(drawn.estimator).facts.source
    with torch.no_grad():
        drawn.estimator.network_.body[0].frequency[0, 0] += 0.5
    assert fold(drawn.estimator).facts.source != before


def test_what_cannot_be_folded() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    for layers, words in [
        ([PeriodicEmbedding(2, 3, 2, 0.3), nn.Linear(6, 1)], "only the last layer reads"),
        ([nn.Identity(), PeriodicEmbedding(2, 3, 2, 0.3), nn.Linear(6, 1)], "PeriodicEmbedding"),
    ]:
        network = nn.Sequential(*layers)
        assert not is_dense(network)
        model = rds.RDeepSenseRegressor(network=network, **SMALL, effort="quick").fit(X, X[:, 0])
        with pytest.raises(InputError, match=words):
            fold(model)
    model = rds.RDeepSenseRegressor(network=Periodic((4,)), **SMALL, effort="quick").fit(X, X[:, 0])
    with torch.no_grad():
        model.network_.body[0].frequency[0, 0] = 2e4
    with pytest.raises(InputError, match="up to 20000 periods per standard deviation"):
        fold(model)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("frequency", lambda a: a[:, :1], "embedding.weight does not fit"),
        ("frequency", lambda a: a * np.inf, "embedding.frequency holds"),
        ("frequency", lambda a: a + 1e5, "accepted: -10000 to 10000"),
        ("weight", lambda a: a[:-1], "embedding.weight does not fit the layers"),
        ("bias", lambda a: a.ravel(), "embedding.bias is no matrix"),
        ("bias", lambda a: a[:, :-1], "layer 0 does not fit"),
        ("bias", lambda a: np.full_like(a, np.nan), "embedding.bias holds nan"),
    ],
)
def test_garbled_files(name: str, change: Any, words: str, tmp_path: Path) -> None:
    folded = fold(draw(1, widest=9, most=5, periodic=True).estimator)
    embedding = folded.layers.embedding
    assert embedding is not None
    with np.errstate(invalid="ignore"):
        garbled = replace(embedding, **{name: change(getattr(embedding, name))})
    save(replace(folded, layers=replace(folded.layers, embedding=garbled)), tmp_path / "m")
    with pytest.raises(ModelFileError, match=words):
        load_folded(tmp_path / "m")


def c_says(drawn: Drawn, dtype: str, X: Any, folder: Path, *flags: str) -> tuple[Source, Any]:
    folded = fold(drawn.estimator)
    source = Source(folded, prepare(folded, dtype, drawn.X.astype(np.float32)))
    write(source, folder, drawn.X)
    cc = COMPILERS[len(drawn.name) % len(COMPILERS)]
    run_cc(folder, cc, *STRICT, "-Wundef", "-O2", "selftest.c", "model.c", "weights.c", "-o", "st")
    run_cc(folder, folder / "st")
    status, found = predict(library(folder, cc, *flags), source, X)
    assert set(status) == {0}
    return source, found


@pytest.mark.everyday(1, "compilers")
@needs_cc
@pytest.mark.parametrize("seed", range(30 if LONG else 3))
def test_c_says_what_torch_does(seed: int, tmp_path: Path) -> None:
    drawn = draw(seed, widest=60, most=9, periodic=True)
    X = rows_of(drawn)
    wanted = told(drawn, X)
    for dtype, bound in (("float32", 1e-5), ("float16", 5e-3)):
        _, found = c_says(drawn, dtype, X, tmp_path / dtype, "-O3")
        assert apart(found, wanted) < bound, (drawn.name, dtype)
    # The arithmetic of bytes is that of numpy to the bit, the embedding before it too.
    source, found = c_says(drawn, "int8", X, tmp_path / "int8", "-O3", "-ffp-contract=off")
    assert apart(found, finished(source.folded, source.network.raw(X))) < 1e-5, drawn.name


@pytest.mark.parametrize("seed", range(30 if LONG else 3))
def test_onnx_says_what_torch_does(seed: int) -> None:
    pytest.importorskip("onnxruntime")
    drawn = draw(seed, widest=60, most=9, periodic=True)
    folded, X = fold(drawn.estimator), rows_of(drawn)
    for dtype, wanted, bound in (
        ("float32", told(drawn, X), 1e-5),
        ("int8", None, 0.1),  # a byte may fall on the other side of a half
    ):
        network = prepare(folded, dtype, drawn.X.astype(np.float32))
        if wanted is None:
            wanted = finished(folded, network.raw(X))
        proto = nodes.model(folded, network)
        running = OnnxRunner.of(folded.facts, proto.SerializeToString())
        assert apart(forward(running, X), wanted) < bound, (drawn.name, dtype)
        assert forward(running, X[:0]).shape[-2] == 0


@pytest.fixture(scope="module")
def waves() -> Any:
    """A model that was trained until its sines matter, of a sensor far from 0 and one with gaps."""
    rng = np.random.default_rng(0)
    X = rng.normal((1e4, 0), (1.0, 1e-3), (600, 2))
    y = np.sin(4 * (X[:, 0] - 1e4)) + 1e3 * X[:, 1] + 0.1 * rng.normal(size=600)
    X[::7, 1] = np.nan
    spec = Periodic((16, 8), frequencies=6, width=4)
    arguments = {**SMALL, "epochs": 60, "missing": "mean"}
    return Drawn(
        rds.RDeepSenseRegressor(network=spec, **arguments, effort="quick").fit(X, y), X, "waves"
    )


def test_the_embedding_counts(waves: Drawn) -> None:
    folded = fold(waves.estimator)
    assert folded.layers.embedding is not None
    silent = replace(folded.layers.embedding, weight=0 * folded.layers.embedding.weight)
    without = replace(folded, layers=replace(folded.layers, embedding=silent))
    assert apart(forward(without, waves.X), forward(folded, waves.X)) > 1


@needs_cc
def test_all_forms_agree_on_rows_near_far_and_missing(waves: Drawn, tmp_path: Path) -> None:
    """Beyond the reach, and where the mean is filled in, as well as 32 bits hold that mean."""
    steps = np.array([[0.5, 1], [2, -2], [30, 0], [-99, 99], [101, 0], [0, -1e5], [1e9, 1e30]])
    folded = fold(waves.estimator)
    X = (folded.layers.centre + folded.layers.scale * steps).astype(np.float32)
    X = np.vstack([waves.X[:20], [[1e4, np.nan], [np.nan, 0]], X]).astype(np.float32)
    wanted, status = told(waves, X), waves.estimator.status(X)
    assert set(status) == {0, 1, 2}
    for dtype, bound in (("float32", 2e-3), ("float16", 5e-3), ("int8", None)):
        network = prepare(folded, dtype, waves.X.astype(np.float32))
        source = Source(folded, network)
        found = predict(library(write(source, tmp_path / dtype), "gcc", "-O2"), source, X)
        own = folded.finish(network.raw(folded.facts.inside(X)), X)
        assert near(found[1], own.stacked(), 1e-4)
        assert np.array_equal(own.status, status)
        if bound is not None:
            of_mean = 1e-6 if dtype == "float32" else 2e-3
            assert near(found[1], wanted, bound, of_mean), dtype
            assert found[0] == status.tolist()


def test_onnx_agrees_on_rows_near_far_and_missing(waves: Drawn) -> None:
    pytest.importorskip("onnxruntime")
    folded = fold(waves.estimator)
    steps = np.array([[0.5, 1], [2, -2], [30, 0], [-99, 99], [101, 0], [0, -1e5], [1e9, np.nan]])
    X = (folded.layers.centre + folded.layers.scale * steps).astype(np.float32)
    network = prepare(folded, "float32", X)
    running = OnnxRunner.of(folded.facts, nodes.model(folded, network).SerializeToString())
    assert near(forward(running, X), told(waves, X), 2e-3)
    assert np.array_equal(running.run(X).status, waves.estimator.status(X))


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_exports_count_the_embedding(waves: Drawn, dtype: str, tmp_path: Path) -> None:
    report = rds.export(waves.estimator, tmp_path / "m", to="c99", dtype=dtype, max_nll_change=0.1)
    dense = 10 * 16 + 16 * 8 + 8 * 2
    angles, products = 2 * 6 * 11, 2 * 4 * 12
    assert report.multiply_adds == dense + angles + products
    assert report.embedding.bytes_in_flash == 4 * (2 * 6 + 2 * 4 * 12 + 2 * 4)
    assert report.to_json()["embedding"]["frequencies"] == 6
    assert report.bytes.tables_in_flash > report.embedding.bytes_in_flash
    assert "4 numbers more" in (tmp_path / "m" / "README.md").read_text()


def test_an_export_as_onnx_agrees(waves: Drawn, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for dtype in ("float32", "int8"):
        report = rds.export(
            waves.estimator, tmp_path / dtype, to="onnx", dtype=dtype, max_nll_change=0.1
        )
        assert report.quality is not None
        assert abs(report.quality.nll_change) < (1e-3 if dtype == "float32" else 0.1)
