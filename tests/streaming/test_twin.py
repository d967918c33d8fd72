"""`rds.Stream` and the stream in C say the same of every log, however untidy."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS
from streaming.sampled_models import SAMPLES, compiled, model, run, untidy

import rdeepsense as rds
from rdeepsense.deploy.fold_graph import fold_graph
from rdeepsense.windowing.sampler import Sampler
from rdeepsense.windowing.sampling import Sampling

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
LOGS = tuple(range(300)) if LONG else (0, 4, 6, 9, 13, 15)
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BUILDS = [(cc, ("-O2",)) for cc in COMPILERS] + [("gcc", tuple(SANITISED))] * ("gcc" in COMPILERS)
NEAR = 1e-4  # of a probability: that near to a bound, float32 may decide


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of an export, each made once."""
    made: dict[tuple[str, str | None], Path] = {}

    def folder_of(kind: str, way: str | None) -> Path:
        if (kind, way) not in made:
            made[kind, way] = tmp_path_factory.mktemp("c") / "m"
            rds.export(model(kind), made[kind, way], to="c99", stream=way)
        return made[kind, way]

    return folder_of


@functools.cache
def said(kind: str, seed: int) -> tuple[rds.Stream, list[rds.Decision]]:
    """What Python says of a log, and the stream after it."""
    times, values = untidy(seed)
    stream = rds.Stream(folded_model(kind))
    log = zip(times.tolist(), values, strict=True)
    return stream, [one for t, x in log for one in stream.push(t / 1e6, x)]


@functools.cache
def folded_model(kind: str) -> Any:
    return fold_graph(model(kind).fitted_)


def numbers(decision: rds.Decision) -> list[float]:
    if decision.probs is not None:
        return [*decision.probs, decision.probability]
    assert decision.mean is not None
    return [*decision.mean, *decision.std, *decision.low, *decision.high]


@pytest.mark.parametrize(("cc", "flags"), BUILDS, ids=str)
@pytest.mark.parametrize(
    ("kind", "way"), [("classes", None), ("classes", "window"), ("numbers", None)]
)
def test_they_agree(kind: str, way: str | None, cc: str, flags: Any, folder: Any) -> None:
    program = compiled(folder(kind, way), cc, kind, *flags)
    decided = 0
    for seed in LOGS:
        times, values = untidy(seed)
        found, (late, repeated, lost) = run(program, times, values)
        stream, wanted = said(kind, seed)
        assert [round(one.start * 1e6) for one in wanted] == found["start"].tolist(), seed
        assert [round(one.end * 1e6) for one in wanted] == found["end"].tolist()
        assert [int(one.status) for one in wanted] == found["status"].tolist()
        assert (stream.late, stream.repeated, 0) == (late, repeated, lost)
        table = np.array([numbers(one) for one in wanted]).reshape(-1, 4)
        np.testing.assert_allclose(found["numbers"], table, rtol=1e-4, atol=1e-4)
        decided += int(np.sum(found["status"] == 0))
        if kind == "classes":
            check_labels(stream, wanted, found)
        if way == "window":
            check_points(folded_model(kind), times, values, found)
    assert decided > 10 * len(LOGS)


def check_labels(stream: rds.Stream, wanted: list[rds.Decision], found: Any) -> None:
    classes, at = list(stream.facts.classes), stream.smoothing.at
    told = [-1 if one.label is None else classes.index(one.label) for one in wanted]
    unlike = [one.probability for k, one in enumerate(wanted) if told[k] != found["label"][k]]
    assert all(min(abs(p - at), abs(p - 1 + at)) < NEAR for p in unlike)


def check_points(folded: Any, times: Any, values: Any, found: Any) -> None:
    """The resampled windows, to the bit."""
    sampler, windows = Sampler(Sampling.of(folded.facts.recipe)), []
    for time, sample in zip(times.tolist(), values, strict=True):
        sampler.push(time, sample)
        while (window := sampler.window()) is not None:
            windows.append(window[2])
    points = found["points"][found["status"] != 64]
    assert np.array_equal(points, np.array(windows).reshape(-1, SAMPLES, 5))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_running_goes_on_through_a_stretch(kind: str, folder: Any) -> None:
    """Its decisions are those of all intervals since the stretch began, with its own factor."""
    program = compiled(folder(kind, "running"), COMPILERS[0], kind, "-O2")
    whole = compiled(folder(kind, "window"), COMPILERS[0], kind, "-O2")
    folded, (times, values) = folded_model(kind), untidy(7)
    found, _ = run(program, times, values)
    plain, _ = run(whole, times, values)
    for name in ("start", "end", "status"):
        assert np.array_equal(found[name], plain[name])
    assert not np.allclose(found["numbers"], plain["numbers"], equal_nan=True, atol=1e-3)
    # The first window of a stretch has no past: its columns are the window's own.
    stream = folded.stream
    assert stream is not None
    begins = np.flatnonzero(found["status"] == 64) + 1
    begins = begins[(begins < len(found)) & (found["status"][begins % len(found)] == 0)]
    X = plain["points"][begins]
    raw = stream.raw(stream.found(folded.graph.read(X)))
    if kind == "numbers":
        np.testing.assert_allclose(found["numbers"][begins, 0], raw[:, 0], rtol=1e-4)
    else:
        odds = np.log(found["numbers"][begins, :3])
        factor = np.ptp(odds, axis=1) / np.ptp(raw, axis=1)
        assert np.ptp(factor) < 1e-3


def test_exact_has_the_bits_of_the_window(folder: Any) -> None:
    programs = [compiled(folder("classes", way), COMPILERS[0], "classes", "-O2")
                for way in ("exact", "window")]  # fmt: skip
    for seed in LOGS:
        times, values = untidy(seed)
        exact, whole = (run(program, times, values)[0] for program in programs)
        for name in ("start", "end", "status", "label", "numbers"):
            assert np.array_equal(exact[name], whole[name], equal_nan=name == "numbers")
