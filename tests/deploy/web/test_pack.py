"""The files of a page: one script out of many, the policy, the worker, the section of the model."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.web.conftest import FIT

import rdeepsense as rds
from rdeepsense.deploy.web.export import (
    FILES,
    HEADER,
    PAGE,
    WebReport,
    leb128,
    packed,
    script,
    with_section,
)
from rdeepsense.errors import InputError
from rdeepsense.networks import DeepSense

FACES = ("table", "windows", "wave")


def test_lengths_are_leb128() -> None:
    assert [leb128(n) for n in (0, 127, 128, 624485)] == [
        b"\0",
        b"\x7f",
        b"\x80\1",
        b"\xe5\x8e\x26",
    ]
    assert with_section(HEADER, "ab", b"xyz") == HEADER + b"\0\6\2abxyz"
    with pytest.raises(ValueError, match="no WebAssembly"):
        with_section(b"\x7fELF", "ab", b"")


@pytest.mark.parametrize("face", FACES)
def test_scripts_are_one_module_without_imports(face: str, node: str, tmp_path: Path) -> None:
    text = script([f"faces/{face}.js", "start.js"])
    path = tmp_path / "rdeepsense.mjs"
    path.write_text(text)
    subprocess.run([node, "--check", str(path)], check=True)
    assert "import {" not in text.replace("import { load } from", "")  # that of the description
    assert re.findall(r"^export (?:async )?\w+ (\w+)", text, re.M) == ["Status", "load", "Model"]
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    others = [one for one in FACES if one != face]
    assert not any(f"faces.{other} =" in text for other in others)


def test_no_source_has_markup_from_text() -> None:
    for path in PAGE.rglob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", path.read_text()
        )


def test_a_hostile_title_is_text_and_styles_have_their_hash() -> None:
    files = packed("table", '"><script>alert(1)</script>', b"", {"recording.csv": b"t\n"})
    html = files["index.html"].decode()
    assert "<script>alert" not in html
    style = re.search(r"<style>(.*)</style>", html, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in html
    assert "unsafe-inline" not in html
    assert json.loads(files["manifest.webmanifest"])["start_url"] == "./"
    worker = files["worker.js"].decode()
    assert (
        '"./ index.html rdeepsense.js model.wasm manifest.webmanifest icon.svg recording.csv"'
        in worker
    )
    other = packed("table", "t", b"x", {})["worker.js"]
    assert re.findall(r"rdeepsense-\w+-\w+", worker) != re.findall(
        r"rdeepsense-\w+-\w+", other.decode()
    )


def test_a_small_dense_page_has_at_most_60_kb(compiler: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 16))
    model = rds.RDeepSenseRegressor(**(FIT | {"hidden": (64, 64), "epochs": 1}))
    model.fit(X, X[:, :2] + 0.1 * rng.normal(size=(300, 2)))
    report = rds.export(model, tmp_path / "page", to="web", dtype="int8", max_nll_change=5.0)
    assert isinstance(report, WebReport)
    whole = sum(path.stat().st_size for path in (tmp_path / "page").iterdir())
    assert whole <= 60_000
    assert report.bytes == whole - (tmp_path / "page/report.json").stat().st_size
    assert json.loads((tmp_path / "page/report.json").read_text()) == report.to_json()
    assert {path.name for path in (tmp_path / "page").iterdir()} < set(FILES)


@pytest.mark.slow
def test_deepsense_s_page_has_at_most_250_kb(compiler: Any, tmp_path: Path) -> None:
    from rdeepsense.paper.demo import cut
    from rdeepsense.paper.tasks.hhar import simulate_log

    train = cut(simulate_log(range(1), 6.0, 0))
    model = rds.RDeepSenseClassifier(**(FIT | {"epochs": 1}), network=DeepSense())
    model.fit(train, train.y)
    rds.export(model, tmp_path / "page", to="web", dtype="int8", max_nll_change=5.0)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "page").iterdir()}
    assert sum(sizes.values()) <= 250_000, sizes


def test_a_page_is_replaced_and_a_stranger_s_folder_refused(
    models: dict[str, Any], page_of: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds 'thesis.tex', which is no part of an export"):
        rds.export(models["classes"], folder, to="web", max_nll_change=5.0)
    os.remove(folder / "thesis.tex")
    rds.export(models["classes"], folder, to="web", max_nll_change=5.0)
    rds.export(models["classes"], folder, to="web", max_nll_change=5.0)
    assert (folder / "model.wasm").exists()
    with pytest.raises(
        InputError, match=r"name='gait' is not for to='web'; accepted there: dtype="
    ):
        rds.export(models["classes"], folder, to="web", name="gait")
