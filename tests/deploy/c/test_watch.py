"""UNSURE and UNLIKE in C: Python's own numbers, on any model, compiler and level."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.random_models import draw
from deploy.random_windows import draw_deepsense, draw_own
from deploy.watched import ROUNDING, strange, surprises, watched

from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.quantise import NetworkRunner
from rdeepsense.status import Status

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
MODELS = range(30) if LONG else range(2)
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def table(seed: int) -> Any:
    return draw(seed, widest=40, most=30)


@pytest.mark.everyday(3, "compilers")
@pytest.mark.parametrize("drawn", [table, draw_deepsense, draw_own], ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", MODELS)
def test_c_flags_what_python_flags(drawn: Callable[[int], Any], seed: int, tmp_path: Path) -> None:
    model = drawn(seed)
    folded, source = watched(model.estimator, model.X)
    novelty, rows = folded.facts.novelty, strange(model.X[:12], seed)
    wanted = novelty.surprise(rows)
    said = NetworkRunner(folded, source.network).run(rows)
    told = said.status
    # The novelty of a few random windows may find nothing in range strange.
    for flag in (Status.UNSURE, Status.UNLIKE) if rows.ndim == 2 else (Status.UNSURE,):
        assert 0 < (told & flag > 0).mean() < 1
    score = said.std / folded.facts.refusal.spread if hasattr(said, "std") else 1 - said.probs
    score = score.mean(1) if hasattr(said, "std") else score.min(1)
    limit = folded.facts.refusal.threshold[0]
    near = np.abs(wanted - novelty.threshold[0]) <= ROUNDING * (1 + np.abs(wanted))
    near |= np.abs(score - limit) <= 1e-4 * limit
    folder = write(source, tmp_path / "m", model.X[:4])
    every = [(cc, level) for cc in COMPILERS for level in ("-O0", "-O3")]
    for cc, level in every if LONG else every[seed % 2 :: 2]:
        built = library(folder, cc, level)
        apart = np.abs(surprises(built, rows) - wanted) / (1 + np.abs(wanted))
        assert apart.max() < ROUNDING, f"{model.name} {cc} {level}"
        status, _ = predict(built, source, rows)
        agree = (np.array(status) == told) | near
        assert agree.all(), f"{model.name} {cc} {level}"
    if LONG or seed == 0:
        run_cc(folder, "gcc", *STRICT, *SANITISED, "selftest.c", "model.c", "weights.c", "-o", "s")
        run_cc(folder, folder / "s")


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("seed", [2, 3])
def test_a_stream_is_told_what_its_window_is_told(seed: int, tmp_path: Path) -> None:
    model = draw_deepsense(seed)
    folded, source = watched(model.estimator, model.X)
    assert isinstance(source, GraphSource)
    stream = source.stream
    assert stream is not None
    rows = strange(model.X[:6], seed)
    built = library(write(source, tmp_path / "m"), COMPILERS[0], "-O2")
    wanted, _ = predict(built, source, rows)
    assert len({told & 24 for told in wanted}) > 1
    kept = 7 * source.model.channels
    for way, begin, numbers in (
        ("push_interval", "begin_window", stream.sizes[0]),
        ("run_interval", "begin_run", stream.states + stream.sizes[1]),
    ):
        state = np.zeros(stream.count * (numbers + kept + 1) + 8, np.float32)
        scratch = np.zeros(source.scratch_bytes() // 4 + 1, np.float32)
        out = np.zeros((2, source.model.outputs), np.float32)
        parts = out[: len(source.model.results)]
        getattr(built, f"model_{begin}")(pointer(state))
        for row, told in zip(rows, wanted, strict=True):
            status = 0
            for part in np.split(row.reshape(-1), stream.count):
                arguments = (state, np.ascontiguousarray(part), *parts, scratch)
                status = getattr(built, f"model_{way}")(*map(pointer, arguments))
            flags = 31 if way == "push_interval" else 31 - Status.UNSURE
            assert status & flags == told & flags, way
    assert folded.facts.novelty is not None


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_tables_stay_within_eight_kilobytes() -> None:
    for seed in range(3):
        for drawn in (table(seed), draw_deepsense(seed)):
            _, source = watched(drawn.estimator, drawn.X)
            own = [t for t in source.tables if "_novelty_" in t.name and "centre" not in t.name]
            assert source.model.novelty is not None
            assert sum(t.layout.bytes for t in own) == source.model.novelty.bytes <= 8_192


def test_a_row_without_an_answer_is_unsure_and_not_unlike(tmp_path: Path) -> None:
    model = table(0)
    folded, source = watched(model.estimator, model.X)
    assert folded.facts.missing == "refuse"
    row = model.X[:1].astype(np.float32)
    row[0, 0] = np.nan
    built = library(write(source, tmp_path / "m"), COMPILERS[0], "-O2")
    assert predict(built, source, row)[0] == [Status.MISSING | Status.UNSURE]
    assert folded.run(row).status.tolist() == [Status.MISSING | Status.UNSURE]
