"""`rdeepsense inspect` of model files of earlier versions, and of every kind of export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds

MODELS = sorted((Path(__file__).parents[1] / "golden" / "models").glob("*.safetensors"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_files_of_earlier_versions(run: Any, path: Path) -> None:
    done = run("inspect", path)
    if path.stem.startswith("own-"):
        assert "trained on a network of your own" in done.err
        return
    assert done.code == 0, done.err
    assert done.out.startswith("model     ")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    model = rds.RDeepSenseRegressor(
        effort="quick", hidden=(4,), epochs=2, likelihood="gaussian", random_state=0, verbose=False
    ).fit(X, X[:, 0] + 0.1 * rng.normal(size=120))
    model.describe(["heat"], ["kW"])
    folder = tmp_path_factory.mktemp("exported")
    rds.export(model, folder / "m.folded")
    rds.export(model, folder / "firmware", to="c99", dtype="int8", max_nll_change=9.0)
    rds.export(model, folder / "m.onnx", to="onnx")
    return folder


@pytest.mark.parametrize(
    ("name", "kind"), [("m.folded", "folded"), ("firmware", "c99"), ("m.onnx", "onnx")]
)
def test_every_kind_of_export(run: Any, exported: Path, name: str, kind: str) -> None:
    done = run("inspect", exported / name, "--json", "i.json")
    assert done.code == 0, done.err
    told = json.loads(Path("i.json").read_text())
    assert (told["format"], told["head"], told["calibration"]) == (kind, "gaussian", "scale")
    assert (told["targets"], told["target_units"]) == (["heat"], ["kW"])
    assert len(told["source"]) == 64
    assert f"{kind}, gaussian head" in done.out
    assert "target    heat [kW]" in done.out
    digests = {
        json.loads((exported / "firmware" / "report.json").read_text())["model_sha256"],
        told["source"],
    }
    assert len(digests) == 1  # of one and the same model


def test_what_is_no_export_is_refused(run: Any, exported: Path) -> None:
    done = run("inspect", exported)
    assert "is a folder without the report.json that export --to c99 writes" in done.err
    Path("firmware").mkdir()
    Path("firmware/report.json").write_text("[]")
    assert "is no report of export" in run("inspect", "firmware").err
    Path("bad.onnx").write_bytes(b"\xff" * 40)
    done = run("inspect", "bad.onnx")
    assert done.code == 1
    assert "bad.onnx" in done.err
    Path("text.safetensors").write_text("hello")
    assert "text.safetensors" in run("inspect", "text.safetensors").err
    damaged = bytearray((exported / "m.folded").read_bytes())
    damaged[-1] ^= 1
    Path("m.folded").write_bytes(damaged)
    assert run("inspect", "m.folded").code == 1
