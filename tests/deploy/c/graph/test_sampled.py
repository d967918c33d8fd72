"""Exports that take samples: the way they compute, what they cost, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c.runtime.configured import FILES, sections
from deploy.c_models import COMPILERS, STRICT, run_cc
from streaming.sampled_models import HOP, RATE, SAMPLES, model, windows

import rdeepsense as rds
from rdeepsense.deploy.c.graph import GraphSource, Sampled
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.errors import InputError
from rdeepsense.windowing.grid import Ticks
from rdeepsense.windowing.stream import Sampling

pytestmark = pytest.mark.compilers


def sampling(hop: int) -> Sampling:
    return Sampling(Ticks.of(RATE), RATE, SAMPLES, hop, 150_000, (3, 2))


def test_the_cheapest_way_that_equals_the_window_is_taken() -> None:
    folded = fold_graph(model("classes").fitted_)
    for hop, way in ((5, "exact"), (HOP, "exact"), (7, "window"), (40, "window"), (60, "window")):
        found = Sampled.of(sampling(hop), None, folded.stream)
        assert (found.way, found.read) == (way, 5 if way == "exact" else SAMPLES), hop
    assert Sampled.of(sampling(60), None, folded.stream, "running").way == "running"
    for hop, way, words in (
        (
            7,
            "exact",
            "a hop of 7 samples is no multiple of 5, an interval; hop=0.25 is one; accepted",
        ),
        (HOP, "fast", "stream='fast' is unknown; accepted: 'exact', 'running', 'window'"),
    ):
        with pytest.raises(InputError, match=words):
            Sampled.of(sampling(hop), None, folded.stream, way)
    with pytest.raises(InputError, match="the network has no intervals"):
        Sampled.of(sampling(HOP), None, None, "running")


@pytest.mark.everyday(2, "compilers")
@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("way", ["exact", "running", "window"])
def test_the_report_says_what_it_costs(kind: str, way: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    report: Any = rds.export(model(kind), folder, to="c99", stream=way, name="gait")
    found = report.samples
    assert (found.way, found.samples, found.hop, found.rate) == (way, SAMPLES, HOP, RATE)
    assert found.gap_in_microseconds == 150_000
    work = found.multiply_adds
    assert work["window"] == report.multiply_adds
    assert work["running"] < work["exact"] < work["window"]
    (folder / "size.c").write_text(
        f'#include "model.h"\ntypedef char same[sizeof(gait_stream) == {found.ram_stream[way]} '
        "? 1 : -1];\nint none;\n"
    )
    run_cc(folder, COMPILERS[0], *STRICT, "-c", "size.c")
    words = (folder / "README.md").read_text()
    assert "gait_push(&stream, microseconds, sample, scratch);" in words
    assert f"| {way} (this one) | {work[way]:,} | {found.ram_stream[way]:,} |" in words
    assert ("Not judged: there were no" in words) == (kind == "classes")
    content = json.loads((folder / "report.json").read_text())
    assert content["samples"] == asdict(found)
    run_cc(folder, COMPILERS[-1], *STRICT, "selftest.c", "model.c", "weights.c", "-o", "selftest")
    run_cc(folder, folder / "selftest")


def test_smoothing_is_fitted_on_windows_in_order(tmp_path: Path) -> None:
    cut = windows()
    report: Any = rds.export(model("classes"), tmp_path / "m", to="c99", rows=(cut, cut.y))
    found, judged = report.samples.smoothing, report.samples.decided
    believed = rds.Smoothing.unseen(cut.recipe)
    # Each recording is of one activity: nobody can tell how long one lasts.
    assert found.change == pytest.approx(believed.change)
    assert found.evidence != believed.evidence
    assert judged.windows == len(cut) // 2
    assert judged.together["accuracy"] >= judged.alone["accuracy"]
    assert judged.changes_of_truth == 0
    assert "On 342 windows that did not choose them" in (tmp_path / "m/README.md").read_text()
    text = (tmp_path / "m/model.c").read_text()
    assert f"#define EVIDENCE {np.float32(found.evidence):.9g}f" in text
    # An array has no order; what the model learnt from recordings that were left out remains.
    report = rds.export(model("classes"), tmp_path / "n", to="c99", rows=(cut[:], cut.y))
    assert report.samples.smoothing == model("classes").fitted_.smoothing != believed
    assert report.samples.decided is None
    given = rds.Smoothing(0.5, 0.1, at=0.9)
    report = rds.export(model("classes"), tmp_path / "o", to="c99", smoothing=given)
    assert report.samples.smoothing == given
    assert "#define MODEL_CHANGE_AT 0.899999976f" in (tmp_path / "o/model.h").read_text()
    rds.export(model("classes"), tmp_path / "p.folded", smoothing=given)
    assert rds.Stream(tmp_path / "p.folded").smoothing == given


def test_another_hop_than_the_model_has(tmp_path: Path) -> None:
    own, there = model("classes").fitted_, tmp_path / "m"
    believed = own.smoothing
    report: Any = rds.export(model("classes"), there, to="c99", hop="0.7s")
    found = report.samples
    assert (found.hop, found.way) == (14, "window")
    assert found.advice.startswith("hop=0.75 is a multiple of an interval: its exact way would")
    assert f"`{found.advice}`" in (there / "README.md").read_text()
    assert found.smoothing.change == pytest.approx(believed.change * 0.7 / 0.5)
    assert found.smoothing.evidence == pytest.approx(believed.evidence * 0.7 / 0.5)
    rds.export(model("classes"), tmp_path / "m.folded", hop=0.7)
    for stream in (rds.Stream(tmp_path / "m.folded"), rds.Stream(model("classes"), hop="0.7s")):
        assert stream.smoothing == found.smoothing
        assert stream.recipe.step == 14
    given = rds.Smoothing(0.3, 0.2)
    assert rds.Stream(model("classes"), given, hop=2).smoothing == given
    assert rds.Smoothing(0.5, 0.1).spaced(20) == rds.Smoothing(1.0, 1.0)
    with pytest.raises(InputError, match="hop = 'often' is no duration"):
        rds.export(model("classes"), there, to="c99", hop="often")


def test_what_takes_no_samples_is_refused(tmp_path: Path) -> None:
    cut = windows()
    fit: dict[str, Any] = {"random_state": 0, "verbose": False, "effort": "quick"}
    plain = rds.RDeepSenseClassifier(network=rds.networks.Flattened((4,)), epochs=1, **fit).fit(
        cut[:], cut.y
    )
    with pytest.raises(InputError, match="stream='window' is for models of windows that"):
        rds.export(plain, tmp_path / "m", to="c99", stream="window")
    with pytest.raises(InputError, match="hop=1 is for models of windows that"):
        rds.export(plain, tmp_path / "m", hop=1)
    smoothing = rds.Smoothing(0.5, 0.1)
    for one in (plain, model("numbers")):
        for to in ("c99", "folded"):
            with pytest.raises(InputError, match="smoothing= is for classes of windows"):
                rds.export(one, tmp_path / "m", to=to, smoothing=smoothing)
    with pytest.raises(InputError, match="smoothing=.* is not for to='onnx'"):
        rds.export(plain, tmp_path / "m", to="onnx", smoothing=smoothing)
    assert not list(tmp_path.iterdir())


@pytest.mark.everyday(1, "compilers")
@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
@pytest.mark.parametrize("way", ["exact", "running", "window"])
def test_the_runtime_compiles_as_it_lies(way: str, tmp_path: Path) -> None:
    for kind, dtype in (("classes", "float32"), ("numbers", "float32"), ("classes", "int8")):
        folded = fold_graph(model(kind).fitted_)
        network, recipe = as_stored(folded, dtype), folded.facts.recipe
        assert recipe is not None
        own = Sampled.of(Sampling.of(recipe), folded.facts.smoothing, network.stream, way)
        source = GraphSource(folded, network, sampled=own)
        folder = tmp_path / f"{kind}{dtype}"
        folder.mkdir()
        parts = sections(source, windows()[:2]) | {"steps.h": source.steps.text}
        for name, text in parts.items():
            (folder / name).write_text(text)
        run_cc(folder, COMPILERS[-1], *STRICT, "-Wundef", "-O1", "-I.", *FILES, "-o", "selftest")
        run_cc(folder, folder / "selftest")
