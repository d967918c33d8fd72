"""`rds.Stream` and the stream in C say the same of every log, however untidy."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS, write
from streaming.sampled_models import SAMPLES, compiled, model, run, untidy

import rdeepsense as rds
from rdeepsense.deploy.c.graph import GraphSource, Sampled
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.windowing.stream import Sampler, Sampling

pytestmark = [
    pytest.mark.compilers,
    pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang"),
]
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
LOGS = tuple(range(300)) if LONG else (0, 4, 6, 9, 13)
SANITISED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BUILDS = [(cc, ("-O2",)) for cc in COMPILERS] + [("gcc", tuple(SANITISED))] * ("gcc" in COMPILERS)
KINDS = [("classes", "exact"), ("classes", "window"), ("numbers", "exact")]
EACH = [(*kind, *build) for kind in KINDS for build in BUILDS]
NEAR = 1e-4  # of a probability: that near to a bound, float32 may decide


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The C of a model and a way, each written once; `running` has a factor of 2."""
    made: dict[tuple[str, str], Path] = {}

    def folder_of(kind: str, way: str) -> Path:
        if (kind, way) not in made:
            folded = folded_model(kind)
            network, facts = as_stored(folded, "float32"), folded.facts
            own = Sampled.of(Sampling.of(facts.recipe), facts.smoothing, network.stream, way)
            source = GraphSource(folded, network, running=2.0, sampled=own)
            made[kind, way] = write(source, tmp_path_factory.mktemp("c") / "m")
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


@pytest.mark.parametrize(("kind", "way", "cc", "flags"), EACH if LONG else EACH[::2], ids=str)
def test_they_agree(kind: str, way: str, cc: str, flags: Any, folder: Any) -> None:
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
    """With the states of the intervals before, and a factor of its own: 2."""
    program = compiled(folder(kind, "running"), COMPILERS[0], kind, "-O2")
    folded, (times, values) = folded_model(kind), untidy(7)
    found, _ = run(program, times, values)
    stream, whole = rds.Stream(folded, running=2.0), rds.Stream(folded)
    told, plain = (
        [d for t, x in zip(times.tolist(), values, strict=True) for d in one.push(t / 1e6, x)]
        for one in (stream, whole)
    )
    assert [round(one.start * 1e6) for one in told] == found["start"].tolist()
    assert [int(one.status) for one in told] == found["status"].tolist()
    wanted = np.array([numbers(one) for one in told])
    np.testing.assert_allclose(found["numbers"], wanted, rtol=1e-4, atol=1e-4)
    unlike = np.abs(wanted - [numbers(one) for one in plain])
    assert np.nanmax(unlike) > 0.01


def test_exact_has_the_bits_of_the_window(folder: Any) -> None:
    programs = [compiled(folder("classes", way), COMPILERS[0], "classes", "-O2")
                for way in ("exact", "window")]  # fmt: skip
    for seed in LOGS:
        times, values = untidy(seed)
        exact, whole = (run(program, times, values)[0] for program in programs)
        for name in ("start", "end", "status", "label", "numbers"):
            assert np.array_equal(exact[name], whole[name], equal_nan=name == "numbers")


@pytest.mark.compilers
@pytest.mark.parametrize("way", ["exact", "window"])
def test_windows_that_nobody_asks_for_are_lost_and_counted(way: str, folder: Any) -> None:
    flags = SANITISED if way == "window" and "gcc" in COMPILERS else ["-O2"]
    built = folder("classes", way)
    lazy, eager = (compiled(built, COMPILERS[0], "classes", *flags, f"-DPUSHES={k}")
                   for k in (25, 1))  # fmt: skip
    for seed in (7, 15):
        times, values = untidy(seed)
        found, (_, _, lost) = run(lazy, times, values)
        wanted, (_, _, none) = run(eager, times, values)
        decided = [one[one["status"] != 64] for one in (found, wanted)]
        assert none == 0
        assert 0 < lost <= len(decided[1]) - len(decided[0])
        # Those that are left are what they were.
        at = np.searchsorted(decided[1]["start"], decided[0]["start"])
        for name in ("start", "end", "status"):
            assert np.array_equal(decided[0][name], decided[1][name][at])
        assert np.array_equal(decided[0]["numbers"][:, :3], decided[1]["numbers"][at, :3])


@pytest.mark.compilers
def test_no_time_breaks_it(folder: Any) -> None:
    """The ends of 64 bits, and jumps between any times."""
    flags = SANITISED if "gcc" in COMPILERS else ["-O2"]
    program = compiled(folder("classes", "window"), COMPILERS[0], "classes", *flags)
    rng = np.random.default_rng(0)
    ends = np.iinfo(np.int64)
    far = rng.integers(ends.min, ends.max, 3_000) >> rng.integers(0, 60, 3_000)
    values = rng.normal(size=(3_000, 5)).astype(np.float32)
    times = np.where(rng.random(3_000) < 0.3, far, 50_000 * np.arange(3_000))
    times[:4] = ends.min, ends.max, 1 << 61, -(1 << 61)
    found, (late, _, _) = run(program, times, values)
    assert late > 1_000
    assert set(found["status"]) <= {0, 2, 64}


@pytest.mark.parametrize("seed", range(30) if LONG else (1, 2, 4))
def test_any_rate_hop_and_gap(seed: int, tmp_path: Path) -> None:
    """Points to the bit, for recipes that the network itself knows nothing of."""
    rng, folded = np.random.default_rng(seed), folded_model("classes")
    rate = float([48, 33.3, 100 / 3, 7.77, 250, 19.99][seed % 6])
    own = replace(
        folded.facts.recipe, rate=rate, window=SAMPLES / rate, gap=float(rng.choice([4, 9]) / rate),
        hop=float(rng.integers(1, 70) / rate),
    )  # fmt: skip
    network, sampling = as_stored(folded, "float32"), Sampling.of(own)
    sampled = Sampled.of(sampling, folded.facts.smoothing, network.stream, "window")
    built = write(GraphSource(folded, network, sampled=sampled), tmp_path / "m")
    program, made = compiled(built, COMPILERS[seed % len(COMPILERS)], "classes", "-O2"), 0
    for k in range(4):
        times, values = untidy(4 * seed + k)
        times = times[0] + ((times - times[0]) * (20 / rate)).astype(np.int64)
        found, _ = run(program, times, values)
        sampler, wanted = Sampler(sampling), []
        for time, sample in zip(times.tolist(), values, strict=True):
            sampler.push(time, sample)
            while (window := sampler.window()) is not None:
                wanted.append(window)
        real = found[found["status"] != 64]
        assert real["start"].tolist() == [one[0] for one in wanted]
        assert real["end"].tolist() == [one[1] for one in wanted]
        made += len(wanted)
        if wanted:
            assert np.array_equal(real["points"], np.array([one[2] for one in wanted]))
    assert made > 5
