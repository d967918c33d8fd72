"""Names and units in every export; in C and Markdown as harmless text."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from deploy.c_models import COMPILERS, STRICT, run_cc
from markdown import markdown
from markdown_it import MarkdownIt

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.inputs import remark
from rdeepsense.deploy.folded.file import TEXTS
from rdeepsense.errors import ModelFileError
from rdeepsense.modelfile import tensors as model_file

EVIL = [
    "*/ int evil(void); /*", "a\\", "??/", "x\n#error evil", '"); system("true', "@NAME@",
    "`<script>evil</script>|", "\uff0a\uff0f int evil; \uff0f\uff0a", "%s%n", "\u2028#error evil\r",
]  # fmt: skip
FIT: dict[str, Any] = {"hidden": (4,), "epochs": 2, "random_state": 0, "verbose": False}


def fitted(features: list[str], targets: list[str]) -> Any:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, len(features))), columns=features)
    y = pd.DataFrame(rng.normal(size=(80, len(targets))), columns=targets)
    return rds.RDeepSenseRegressor(**FIT, likelihood="gaussian", effort="quick").fit(X, y)


@pytest.fixture(scope="module")
def model() -> Any:
    named = fitted(["temp", "flow", "age"], ["load", "lift"])
    return named.describe(target_units=["N", "m/s²"], feature_units={"temp": "°C", "flow": "l/s"})


def test_folded_files_keep_them(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "m"
    rds.export(model, path)
    found = load(path).facts
    assert found.features == ("temp", "flow", "age")
    assert found.feature_units == ("°C", "l/s", "")
    assert (found.targets, found.target_units) == (("load", "lift"), ("N", "m/s²"))
    header, tensors = model_file.read(path)
    later = ("feature_units", "targets", "target_units")
    model_file.write(path, {k: v for k, v in header.items() if k not in later}, tensors)
    assert (load(path).facts.features, load(path).facts.targets) == (("temp", "flow", "age"), None)
    model_file.write(path, {**header, "targets": ["load"]}, tensors)
    with pytest.raises(ModelFileError, match="targets do not fit the layers"):
        load(path)


def test_onnx_metadata(model: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    rds.export(model, tmp_path / "m.onnx", to="onnx", max_nll_change=9.0)
    proto = onnx.load(tmp_path / "m.onnx")
    facts = {p.key: p.value for p in proto.metadata_props}
    found = {key: json.loads(facts[key]) for key in (*TEXTS, "intervals")}
    assert found["features"] == ["temp", "flow", "age"]
    assert found["feature_units"] == ["°C", "l/s", ""]
    assert found["targets"] == ["load", "lift"]
    assert found["target_units"] == ["N", "m/s²"]
    assert facts["calibration"] == "scale"
    assert found["intervals"]["0.9"]["high"] == pytest.approx([1.6448536] * 2)


def test_c_and_what_goes_with_it(model: Any, tmp_path: Path) -> None:
    report = rds.export(model, tmp_path / "m", to="c99")
    header, readme = ((tmp_path / "m" / n).read_text() for n in ("model.h", "README.md"))
    for line in ("x[0]: temp [degC]", "x[1]: flow [l/s]", "x[2]: age", "std[1]: lift [m/s2]"):
        assert f"{line}\n" in header or f"{line} */" in header
    assert "| 0 | temp [degC] |" in readme
    assert "| mean, std | name [unit] |\n|---|---|\n| 0 | load [N] |\n| 1 | lift [m/s2] |" in readme
    saved = json.loads((tmp_path / "m/report.json").read_text())
    assert saved["feature_units"] == ["°C", "l/s", ""]
    assert saved["targets"] == list(report.facts.targets) == ["load", "lift"]


def test_classes(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = pd.Series(np.where(X[:, 0] > 0, "walk", "sit"), name="activity")
    model = (
        rds.RDeepSenseClassifier(**FIT, effort="quick").fit(X, y).describe(feature_units=["g", ""])
    )
    rds.export(model, tmp_path / "m", to="c99")
    header, readme = ((tmp_path / "m" / n).read_text() for n in ("model.h", "README.md"))
    assert "x[0]: [g]\n   Classes of activity:\n   probs[0]: sit\n   probs[1]: walk */" in header
    assert "| probs | class of activity |\n|---|---|\n| 0 | sit |\n| 1 | walk |" in readme


def test_units_keep_their_sense() -> None:
    said = {
        "m/s²": "m/s2", "°C": "degC", "℃": "degC", "µV": "uV", "\u03bcV": "uV", "kΩ": "kohm",
        "s⁻¹": "s-1", "N·m": "N.m", "m/s^2": "m/s^2", "\uff05": "%", "\uff0a\uff0f": "_/",
    }  # fmt: skip
    assert {unit: remark(unit) for unit in said} == said
    assert len(remark("V" * 500)) == 80


def test_no_name_becomes_a_link(tmp_path: Path) -> None:
    evil = ["[x](javascript:evil)", "[y]: javascript:evil", "[z][y]", "b [V]"]
    named = fitted(evil, evil).describe(target_units=evil, feature_units=evil)
    rds.export(named, tmp_path / "m", to="c99", max_nll_change=9.0)
    text = (tmp_path / "m/README.md").read_text()
    assert r"| 0 | [x\](javascript:evil) [[x\](javascript:evil)] |" in text
    assert "| 3 | b [V] [b [V]] |" in text
    for html in (MarkdownIt("gfm-like", {"linkify": False}).render(text), markdown(text)):
        assert "href" not in html


@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
def test_no_name_or_unit_becomes_code(tmp_path: Path) -> None:
    model = fitted([f"{k}{text}" for k, text in enumerate(EVIL)], [f"{k}{t}" for k, t in
                   enumerate(EVIL)])  # fmt: skip
    model.describe(target_units=EVIL, feature_units=EVIL[::-1])
    folder = tmp_path / "evil"
    rds.export(model, folder, to="c99", max_nll_change=9.0)
    model.describe(target_names=["harmless"] * len(EVIL), target_units=[""] * len(EVIL))
    plain = tmp_path / "plain"
    rds.export(model, plain, to="c99", max_nll_change=9.0)
    for name in ("model.c", "weights.c", "selftest.c"):
        assert (folder / name).read_text() == (plain / name).read_text()
    about = (folder / "model.h").read_text().split("*/")[0]
    assert len(re.findall(r"(?m)^   x\[\d\]: .*\[.*\]$", about)) == len(EVIL)
    assert not re.search(r"[^\x20-\x7e\n]|[\\?*@`<>|\"]", about.removeprefix("/*"))
    assert not re.search(r"[^\x20-\x7e\n]|<script", (folder / "README.md").read_text())
    for compiler in COMPILERS:
        flags = ["-Wcomment", "-Wtrigraphs", "-E", "-P"]
        seen = [
            subprocess.run(
                [compiler, *STRICT, *flags, "model.h"], cwd=where, capture_output=True, text=True
            )
            for where in (folder, plain)
        ]
        assert seen[0].stderr == ""
        assert seen[0].stdout == seen[1].stdout
        assert "evil" not in seen[0].stdout
        run_cc(folder, compiler, *STRICT, "selftest.c", "model.c", "weights.c", "-o", "selftest")
        run_cc(folder, folder / "selftest")
