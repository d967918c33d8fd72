"""What a model does not know of a row travels with every export, and changes none without it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from deploy.c.test_c99 import SANITISED, STRANGE, selftest
from deploy.c_models import COMPILERS, STRICT, library, predict, run_cc, write
from deploy.folded_models import with_facts
from deploy.random_models import Drawn, draw, give_laplace
from torch import nn

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.emit import Source, header
from rdeepsense.deploy.fold import COVERAGES, fold, save
from rdeepsense.deploy.folded.deployed import DeployedModel
from rdeepsense.deploy.folded.model import Folded, Runner, triangular
from rdeepsense.deploy.onnx import export
from rdeepsense.deploy.onnx.export import OnnxRunner
from rdeepsense.deploy.onnx.nodes import model
from rdeepsense.deploy.quantise import prepare
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.networks import DeepSense

needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
SMALL: dict[str, Any] = {"epochs": 2, "random_state": 0, "verbose": False, "device": "cpu"}
BOUND = 1e-4
PLAIN = "int model_predict(const float *x, float *mean, float *std, void *scratch);"
DOUBTFUL = (
    "int model_predict(const float *x, float *mean, float *std, float *epistemic, void *scratch);"
)


def rows_near_and_far(drawn: Drawn) -> Any:
    X = drawn.X[:24]
    return np.vstack([X, X.mean(0) + 20 * (X - X.mean(0))]).astype(np.float32)


def told(estimator: Any, X: Any) -> Any:
    """(3, rows, outputs) with mean, std and epistemic std, or (2, rows, classes)."""
    dist = estimator.predict_dist(X, epistemic="laplace")
    parts = [dist.mean] if dist.is_categorical else [dist.mean, dist.std]
    return np.stack([p.reshape(len(X), -1) for p in (*parts, estimator.epistemic_std(X))])


def agree(found: Any, wanted: Any, bound: float, what: str = "") -> None:
    assert np.abs(found[-1] / wanted[-1] - 1).max() < bound, what
    if len(wanted) == 2:
        assert np.abs(found[0] - wanted[0]).max() < bound, what
    else:
        assert np.abs((found[0] - wanted[0]) / wanted[1]).max() < bound, what
        assert np.abs(found[1] / wanted[1] - 1).max() < bound, what


def by_runner(runner: Runner, X: Any) -> Any:
    return np.stack([part for part in runner.run(X)[:3] if part is not None and part.ndim > 1])


def by_c(folded: Folded, X: Any, dtype: str, folder: Path) -> Any:
    source = Source(folded, prepare(folded, dtype, X))
    status, found = predict(library(write(source, folder, X), COMPILERS[0], "-O2"), source, X)
    assert set(status) == {0}
    return found


def by_onnx(folded: Folded, X: Any) -> Any:
    proto = model(folded, prepare(folded, "float32", X))
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = ["probs"] if folded.facts.is_classifier else ["mean", "std"]
    assert [o.name for o in session.get_outputs()][: len(names) + 1] == [*names, "epistemic"]
    return np.stack(session.run([*names, "epistemic"], {"x": X}))


@pytest.mark.everyday(3, "compilers")
@pytest.mark.parametrize("seed", range(12))
def test_random_models_say_what_torch_does(seed: int, tmp_path: Path) -> None:
    drawn = give_laplace(draw(seed, widest=60, most=12, periodic=seed >= 9), seed)
    X = rows_near_and_far(drawn)
    wanted, folded = told(drawn.estimator, X), fold(drawn.estimator, "laplace")
    agree(by_runner(folded, X), wanted, 1e-9, drawn.name)
    agree(by_onnx(folded, X), wanted, BOUND, drawn.name)
    if COMPILERS:
        agree(by_c(folded, X, "float32", tmp_path / "f32"), wanted, BOUND, drawn.name)
        agree(by_c(folded, X, "float16", tmp_path / "f16"), wanted, 5e-3, drawn.name)


def table(outputs: int, inputs: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(1e3, 1, (300, inputs)).astype(np.float32)
    y = 5 + (X[:, :1] - 1e3) * np.arange(1, outputs + 1) + rng.normal(size=(300, outputs))
    return X, y[:, 0] if outputs == 1 else y


def fitted(likelihood: str, outputs: int, **more: Any) -> tuple[Any, Any]:
    X, y = table(outputs)
    arguments = {"hidden": (12, 9), **SMALL, **more}
    if likelihood == "categorical":
        labels = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
        return RDeepSenseClassifier(**arguments, effort="quick").fit(X, labels), X
    return RDeepSenseRegressor(likelihood=likelihood, **arguments, effort="quick").fit(X, y), X


@pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [("gaussian", 1), ("gaussian", 3), ("student", 1), ("student", 3), ("categorical", 3)],
)
def test_fitted_models_say_what_the_estimator_does(
    likelihood: str, outputs: int, tmp_path: Path
) -> None:
    estimator, X = fitted(likelihood, outputs)
    estimator.fitted_ = replace(estimator.fitted_, guard=None)
    X = np.vstack([X[:40], X[:40] + 30])
    wanted, folded = told(estimator, X), fold(estimator, "laplace")
    assert np.median(wanted[-1][40:]) > 5 * np.median(wanted[-1][:40])
    agree(by_onnx(folded, X), wanted, BOUND)
    if COMPILERS:
        agree(by_c(folded, X, "float32", tmp_path / "m"), wanted, BOUND)
    save(folded, tmp_path / "file")
    read: Any = load(tmp_path / "file")
    assert np.array_equal(by_runner(read.runner, X), by_runner(folded, X))
    np.testing.assert_allclose(read.epistemic_std(X), estimator.epistemic_std(X), rtol=1e-9)
    dist = estimator.predict_dist(X, epistemic="laplace")
    if likelihood == "categorical":
        assert np.array_equal(read.predict(X), estimator.classes_[dist.mode])
        return
    assert read.predict(X).shape == dist.mean.shape
    for coverage in COVERAGES:
        for end, true in zip(
            read.predict_interval(X, coverage), dist.interval(coverage), strict=True
        ):
            assert np.abs((end - true) / dist.std).max() < 1e-9


NETWORKS = {
    "no hidden layer": (4, nn.Sequential(nn.Linear(4, 2))),
    "two layers that become one": (4, nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))),
    "a narrow one after the last ReLU": (
        4,
        nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3), nn.Linear(3, 2)),
    ),
    "many inputs": (1030, nn.Sequential(nn.Linear(1030, 5), nn.ReLU(), nn.Linear(5, 2))),
    "many inputs, no hidden layer": (1030, nn.Sequential(nn.Linear(1030, 2))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_what_stands_before_the_last_layer_does_not_matter(name: str, tmp_path: Path) -> None:
    inputs, network = NETWORKS[name]
    X, y = table(2, inputs)
    estimator = RDeepSenseRegressor(network=network, **SMALL, effort="quick").fit(X, y)
    X, folded = X[:30], fold(estimator, "laplace")
    assert folded.output.laplace is not None
    assert not np.tril(folded.output.laplace.root, -1).any()
    wanted = told(estimator, X)
    agree(by_runner(folded, X), wanted, 1e-7)
    agree(by_onnx(folded, X), wanted, BOUND)
    if (
        COMPILERS and len(folded.output.laplace.root) < 100
    ):  # a larger table takes compilers seconds
        agree(by_c(folded, X, "float32", tmp_path / "f32"), wanted, BOUND)
        agree(by_c(folded, X, "float16", tmp_path / "f16"), wanted, 2e-2)


@pytest.mark.parametrize("shape", [(5, 5), (5, 8), (8, 5)])
def test_triangular_keeps_every_length(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape)
    root = triangular(matrix)
    assert root.shape == (shape[0], shape[0])
    np.testing.assert_allclose(root @ root.T, matrix @ matrix.T, atol=1e-12)
    assert not np.tril(root, -1).any()
    assert triangular(root) is root


def test_conformal_thresholds_are_not_those_of_the_wider_std() -> None:
    estimator, X = fitted("gaussian", 1, calibrate="conformal")
    assert fold(estimator).facts.intervals.conformal is not None  # type: ignore[union-attr]
    with pytest.raises(InputError, match="folded without conformal thresholds"):
        DeployedModel(fold(estimator, "laplace")).predict_interval(X, 0.9, method="conformal")


@pytest.fixture(scope="module")
def gaussian() -> tuple[Any, Any]:
    return fitted("gaussian", 1)


def test_without_the_option_nothing_is_said_of_it(gaussian: Any, tmp_path: Path) -> None:
    estimator, X = gaussian
    plain, doubtful = (tmp_path / name for name in ("plain", "doubtful"))
    rds.export(estimator, plain, to="c99")
    for path in plain.iterdir():
        text = path.read_text()
        assert not any(word in text.lower() for word in ("epistemic", "doubt", "laplace"))
        assert "@" not in text
    assert PLAIN in (plain / "model.h").read_text()
    report: Any = rds.export(estimator, doubtful, to="c99", epistemic="laplace").to_json()
    assert DOUBTFUL in (doubtful / "model.h").read_text()
    assert "#define MODEL_EPISTEMIC 1\n" in (doubtful / "model.h").read_text()
    assert "a matrix of 14 x 14" in (doubtful / "README.md").read_text()
    before = json.loads((plain / "report.json").read_text())
    found = report["epistemic"]
    assert found == {
        "method": "laplace", "matrix": 14, "bytes_in_flash": 4 * (105 + 2), "multiply_adds": 119
    }  # fmt: skip
    assert report["multiply_adds"] == before["multiply_adds"] + 119
    size, less = report["bytes"], before["bytes"]
    assert size["tables_in_flash"] == less["tables_in_flash"] + found["bytes_in_flash"]
    assert size["ram_scratch"] == less["ram_scratch"] + 4 * 14
    assert abs(report["quality"]["nll_change"]) < 1e-5
    dist = estimator.predict_dist(estimator.fitted_.kept_rows[0], epistemic="laplace")
    nll = -np.mean(dist.log_prob(estimator.fitted_.kept_rows[1]))
    assert report["quality"]["before"]["nll"] == pytest.approx(nll)
    classes, X = fitted("categorical", 3)
    said = header(Source(fold(classes), prepare(fold(classes), "float32", X)))
    assert "int model_predict(const float *x, float *probs, void *scratch);" in said
    folded = fold(classes, "laplace")
    said = header(Source(folded, prepare(folded, "float32", X)))
    assert "int model_predict(const float *x, float *probs, float *epistemic, void *" in said


@pytest.mark.compilers
@pytest.mark.everyday(1, "compilers")
@needs_cc
@pytest.mark.parametrize(("seed", "dtype"), [(0, "float32"), (2, "float16"), (4, "float32")])
def test_sanitisers_find_nothing(seed: int, dtype: str, tmp_path: Path) -> None:
    drawn = give_laplace(draw(seed, widest=40, most=7))
    folded = fold(drawn.estimator, "laplace")
    folder = write(Source(folded, prepare(folded, dtype, drawn.X)), tmp_path / "m", drawn.X)
    epistemic = "c" if not folded.facts.is_classifier else "b"
    text = STRANGE.replace("a, scratch)", "a, b, scratch)").replace("memcpy(b, a,", "memcpy(c, b,")
    text = text.replace(
        "model_predict(x, a, b, scratch);\n#endif", "model_predict(x, a, b, c, scratch);\n#endif"
    )
    text = text.replace("int main(void)", "static float c[MODEL_OUTPUTS];\nint main(void)")
    text = text.replace("|| b[i] == b[i]", f"|| b[i] == b[i] || {epistemic}[i] == {epistemic}[i]")
    text = text.replace(
        "a[i] - a[i] == 0", f"a[i] - a[i] == 0 && {epistemic}[i] > 0 && c[i] - c[i] == 0"
    )
    (folder / "strange.c").write_text(text)
    kind = ["-DCLASSES"] if folded.facts.is_classifier else []
    flags = ["-std=c99", *SANITISED, "-fno-sanitize=float-divide-by-zero", *kind]
    run_cc(folder, "gcc", *flags, "strange.c", "model.c", "weights.c", "-o", "strange")
    run_cc(folder, folder / "strange")
    run_cc(folder, "gcc", *STRICT, *SANITISED, "selftest.c", "model.c", "weights.c", "-o", "test")
    run_cc(folder, folder / "test")
    for compiler in COMPILERS:
        run_cc(folder, compiler, *STRICT, "-O3", "-march=native", "-c", "model.c")


@needs_cc
@pytest.mark.parametrize("likelihood", ["gaussian", "categorical"])
def test_the_self_test_sees_a_wrong_doubt(likelihood: str, tmp_path: Path) -> None:
    estimator, X = fitted(likelihood, 1)
    folded = fold(estimator, "laplace")
    folder = write(Source(folded, prepare(folded, "float32", X)), tmp_path / "m", X)
    assert selftest(folder).stdout == "self-test passed\n"
    code = (folder / "model.c").read_text()
    for line, other in (
        ("total += sums[j] * sums[j]", "total += sums[j]"),
        ("j = i;", "j = i + 1;"),
    ):
        assert line in code
        (folder / "model.c").write_text(code.replace(line, other))
        assert "FAILED: epistemic" in selftest(folder).stdout


@needs_cc
def test_missing_inputs(tmp_path: Path) -> None:
    estimator, X = fitted("gaussian", 1)
    gaps, mean = X[:4].copy(), X[:4].copy()
    gaps[::2, 1], mean[::2, 1] = np.nan, estimator.fitted_.inputs.scaler.shift[1]
    refusing = fold(estimator, "laplace")
    source = Source(refusing, prepare(refusing, "float32", X))
    status, found = predict(
        library(write(source, tmp_path / "a", X), COMPILERS[0], "-O1"), source, gaps
    )
    assert status == [1, 0, 1, 0]
    assert np.isnan(found[:, ::2]).all()
    assert np.isfinite(found[:, 1::2]).all()
    assert np.array_equal(np.isnan(by_onnx(refusing, gaps)), np.isnan(found))
    known = replace(refusing.facts.guard, missing=np.ones(4))
    filling = with_facts(refusing, missing="mean", guard=known)
    wanted = by_runner(filling, mean.astype(np.float64))
    agree(by_runner(filling, gaps), wanted, 1e-5)
    agree(by_onnx(filling, gaps), wanted, BOUND)
    agree(by_c(filling, gaps, "float32", tmp_path / "b"), wanted, BOUND)


@pytest.mark.everyday(1, "compilers")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("likelihood", ["student", "categorical"])
def test_compiled(likelihood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    estimator, X = fitted(likelihood, 2)
    save(fold(estimator, "laplace"), tmp_path / "file")
    plain, compiled = load(tmp_path / "file"), load(tmp_path / "file", compile=True)
    agree(by_runner(compiled.runner, X), by_runner(plain.runner, X), BOUND)
    np.testing.assert_allclose(compiled.epistemic_std(X), plain.epistemic_std(X), rtol=BOUND)
    out = np.empty((2 if likelihood == "categorical" else 3, plain.facts.outputs), dtype=np.float32)
    assert compiled.runner.caller(X[0].copy(), out)() == 0  # type: ignore[attr-defined]
    assert np.array_equal(out, by_runner(compiled.runner, X[:1])[:, 0])


def test_numpy_is_all_it_needs(gaussian: Any, tmp_path: Path) -> None:
    save(fold(gaussian[0], "laplace"), tmp_path / "file")
    program = (
        "import sys, rdeepsense.deploy as r, numpy as np\n"
        f"m = r.load({str(tmp_path / 'file')!r}); assert m.epistemic_std(np.ones((1, 4)))[0] > 0\n"
        "print([n for n in ('torch', 'scipy', 'sklearn', 'safetensors') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_refusals(gaussian: Any, tmp_path: Path) -> None:
    estimator, X = gaussian
    folded: Any = fold(estimator, "laplace")
    with pytest.raises(InputError, match="exported without its epistemic part.*epistemic='lap"):
        DeployedModel(fold(estimator)).epistemic_std(X)
    with pytest.raises(InputError, match="'delta' cannot be exported; accepted: 'laplace'"):
        fold(estimator, "delta")
    old, _ = fitted("gaussian", 1)
    old.fitted_ = replace(old.fitted_, epistemic=None)
    for form in (
        lambda: fold(old, "laplace"),
        lambda: rds.export(old, tmp_path / "m", to="onnx", epistemic="laplace"),
        lambda: rds.export(old, tmp_path / "m", to="c99", epistemic="laplace"),
    ):
        with pytest.raises(InputError, match="older than epistemic uncertainty; fit the model aga"):
            form()
    for to in ("onnx", "c99"):
        with pytest.raises(InputError, match="int8' cannot be exported with epistemic='laplace'"):
            rds.export(estimator, tmp_path / "m", to=to, dtype="int8", epistemic="laplace")
    laplace = folded.output.laplace
    short = dataclasses.replace(laplace, root=laplace.root[:-1, :-1])
    output = dataclasses.replace(folded.output, laplace=short)
    save(dataclasses.replace(folded, output=output), tmp_path / "short")
    with pytest.raises(ModelFileError, match="the epistemic matrix does not fit the layers"):
        load(tmp_path / "short")
    rng = np.random.default_rng(0)
    windows, y = rng.normal(size=(60, 16, 3)), rng.normal(size=60)
    spec = DeepSense((3,), interval=8, filters=4, hidden=4)
    wave = RDeepSenseRegressor(network=spec, **SMALL, effort="quick").fit(windows, y)
    with pytest.raises(InputError, match="epistemic='laplace' is for fully-connected networks"):
        rds.export(wave, tmp_path / "m", to="onnx", epistemic="laplace")
    for to in ("c99", "folded"):
        with pytest.raises(InputError, match="epistemic='laplace' is for fully-connected networks"):
            rds.export(wave, tmp_path / "m", to=to, epistemic="laplace")
    assert [p.name for p in tmp_path.iterdir()] == ["short"]


def test_onnx_is_checked_and_says_what_it_is(
    gaussian: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    estimator, X = gaussian
    made = rds.export(estimator, tmp_path / "m.onnx", to="onnx", epistemic="laplace")
    assert made.quality is not None
    assert abs(made.quality.nll_change) < 1e-5
    facts = fold(estimator).facts
    running = OnnxRunner.of(facts, (tmp_path / "m.onnx").read_bytes())
    assert running.session.get_modelmeta().custom_metadata_map["epistemic"] == "laplace"
    np.testing.assert_allclose(
        DeployedModel(running).epistemic_std(X), estimator.epistemic_std(X), rtol=BOUND
    )
    rds.export(estimator, tmp_path / "plain.onnx", to="onnx")
    about = OnnxRunner.of(facts, (tmp_path / "plain.onnx").read_bytes()).session.get_modelmeta()
    assert "epistemic" not in about.custom_metadata_map
    (tmp_path / "plain.onnx").unlink()

    def wrong(folded: Any, network: Any, *more: Any) -> Any:
        laplace = folded.output.laplace
        laplace = dataclasses.replace(laplace, std=1.001 * laplace.std)
        output = dataclasses.replace(folded.output, laplace=laplace)
        return model(dataclasses.replace(folded, output=output), network, *more)

    monkeypatch.setattr(export, "model", wrong)
    with pytest.raises(InputError, match="epistemic std differs .* nothing was written"):
        rds.export(estimator, tmp_path / "other.onnx", to="onnx", epistemic="laplace")
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
