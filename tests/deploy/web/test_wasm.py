"""A page's WebAssembly beside the same C on this machine, and beside the estimator."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS
from deploy.web.calls import call, predicted
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.deploy.c.build import CompiledRunner
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.web import export
from rdeepsense.errors import InputError

ROWS = 1_000
CASES = [("student", "int8"), ("classes", "float32")]
if os.environ.get("RDEEPSENSE_LONG"):
    CASES = list(product(("gaussian", "student", "classes"), ("int8", "float16", "float32")))
# The folder's own files, with rows.c of the runtime beside them.
HOST = ["-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "model.c", "weights.c"]


def host(model: Any, folder: Path, facts: Facts, **options: Any) -> CompiledRunner:
    rds.export(model, folder, to="c99", max_nll_change=5.0, **options)
    given = "out + r * N" if facts.is_classifier else "out + r * N, out + apart + r * N"
    (folder / "rows.c").write_text(
        '#include "model.h"\n#include <stddef.h>\n#include <stdint.h>\n#define N MODEL_OUTPUTS\n'
        "static float scratch[MODEL_SCRATCH_BYTES / 4 + 1];\n"
        "int model_predict_many(const float *x, float *out, size_t apart, uint8_t *status, "
        "size_t rows)\n{\n    int all = (int)(0 * apart);\n"
        "    for (size_t r = 0; r < rows; ++r) {\n"
        f"        const int told = model_predict(x + r * MODEL_INPUTS, {given}, scratch);\n"
        "        status[r] = (uint8_t)told;\n        all |= told;\n    }\n    return all;\n}\n"
    )
    subprocess.run([COMPILERS[0], *HOST, "rows.c", "-o", "m.so"], cwd=folder, check=True)
    return CompiledRunner.of(folder / "m.so", facts)


def columns(found: list[Any], *names: str) -> NDArray[Any]:
    return np.array([[one[name] for one in found] for name in names], dtype=np.float64)


@pytest.mark.everyday(2, "compilers")
@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_wasm_is_the_host_s_c(
    kind: str,
    dtype: str,
    models: dict[str, Any],
    page_of: Callable[..., Path],
    node: str,
    tmp_path: Path,
) -> None:
    model = models[kind]
    rng = np.random.default_rng(1)
    X = rng.normal((5, 100, 0, 3), (2, 60, 0.02, 4), (ROWS, 4)).astype(np.float32)
    found = predicted(node, page_of(kind, model, dtype=dtype), X)
    runner = host(model, tmp_path / "c", fold(model).facts, dtype=dtype)
    told = runner.run(X)
    assert told.status is not None
    assert [one["status"] for one in found] == told.status.tolist()
    assert 0 < np.count_nonzero(told.status) < ROWS
    names = ("probs",) if kind == "classes" else ("mean", "std")
    got = columns(found, *names).astype(np.float32)
    wanted = np.array([getattr(told, name) for name in names])
    if dtype == "int8":
        assert np.array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_intervals_are_those_of_the_model(
    models: dict[str, Any], table: Any, page_of: Callable[..., Path], node: str
) -> None:
    X, model = table[0][:50], models["student"]
    for coverage in (0.5, 0.99):
        found = predicted(node, page_of("student", model), X, coverage)
        low, high = columns(found, "low", "high")
        wanted = np.reshape(model.predict_interval(X, coverage), (2, len(X), -1))
        std = np.reshape(model.predict(X, return_std=True)[1], (len(X), -1))
        assert np.abs((low - wanted[0]) / std).max() < 1e-5
        assert np.abs((high - wanted[1]) / std).max() < 1e-5


def test_observing_is_the_live_model(
    models: dict[str, Any], table: Any, page_of: Callable[..., Path], node: str
) -> None:
    X, y = table
    model = models["gaussian"]
    live, calls, wanted = model.live(), [], []
    for row, truth in zip(X[:40], y[:40] + 3.0, strict=True):
        prediction = live.predict(row)
        wanted.append(float(np.ravel(prediction.distribution.mean)[0]))
        live.observe(truth)
        calls += [["predict", row.tolist()], ["observe", truth]]
    found = call(node, page_of("gaussian", model, live=True), calls)
    assert all(found[1::2])
    means = np.array([one["mean"][0] for one in found[::2]])
    scale = model.predict(X[:40], return_std=True)[1]
    assert np.abs((means - wanted) / scale).max() < 1e-3
    assert abs(means[-1] - model.predict(X[39:40])[0]) > 1.0  # it has learnt the shift


def test_a_state_comes_back_and_a_stranger_s_is_refused(
    models: dict[str, Any], table: Any, page_of: Callable[..., Path], node: str
) -> None:
    folder, row = page_of("gaussian", models["gaussian"], live=True), table[0][0].tolist()
    calls = [["predict", row], ["observe", 9.0], ["predict", row], ["reset"], ["predict", row]]
    first, _, taught, _, again = call(node, folder, calls)
    assert first == again
    assert abs(taught["mean"][0] - first["mean"][0]) > 0.01


def test_damaged_weights_fail_the_self_test(
    models: dict[str, Any], page_of: Callable[..., Path], node: str, tmp_path: Path
) -> None:
    folder = page_of("gaussian", models["gaussian"])
    code = bytearray((folder / "model.wasm").read_bytes())
    weight = fold(models["gaussian"]).layers.dense[1].weight[0, 0]
    at = code.index(np.float32(weight).tobytes())
    code[at] ^= 1  # the last bit of one weight
    (tmp_path / "rdeepsense.js").write_bytes((folder / "rdeepsense.js").read_bytes())
    (tmp_path / "model.wasm").write_bytes(bytes(code))
    with pytest.raises(AssertionError, match="the self-test failed"):
        call(node, tmp_path, [])


def test_without_a_compiler_it_is_said_how_to_get_one(
    models: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(export.shutil, "which", lambda name: None)
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    export.wasm_compiler.cache_clear()
    with pytest.raises(InputError, match=r"install rdeepsense\[web\], which brings one, or clang"):
        rds.export(models["gaussian"], tmp_path / "page", to="web")
    export.wasm_compiler.cache_clear()
    assert not (tmp_path / "page").exists()


@pytest.mark.compilers
def test_ziglang_builds_what_clang_builds(
    models: dict[str, Any],
    table: Any,
    page_of: Callable[..., Path],
    node: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("ziglang", reason="ziglang is not installed: pip install rdeepsense[web]")
    X = table[0][:200]
    wanted = predicted(node, page_of("classes", models["classes"], dtype="int8"), X)
    monkeypatch.setattr(export.shutil, "which", lambda name: None)
    export.wasm_compiler.cache_clear()
    try:
        assert "ziglang" in export.wasm_compiler()
        options: dict[str, Any] = {"dtype": "int8", "max_nll_change": 5.0}
        rds.export(models["classes"], tmp_path / "page", to="web", **options)
    finally:
        export.wasm_compiler.cache_clear()
    assert predicted(node, tmp_path / "page", X) == wanted
