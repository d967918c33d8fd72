"""`rdeepsense export`: what it writes, and what it refuses before it writes anything."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.web.export import wasm_compiler
from rdeepsense.errors import InputError

FILES = ["README.md", "model.c", "model.h", "report.json", "selftest.c", "weights.c"]
FIT: dict[str, Any] = {"hidden": (16, 16), "epochs": 20, "random_state": 0, "verbose": False}
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def model(tmp_path: Path, csv: Path) -> Path:
    frame = pl.read_csv(csv)
    X = frame.select("a", "b [V]")
    model = rds.RDeepSenseRegressor(**FIT, likelihood="gaussian", effort="quick")
    model.fit(X, frame["y"].to_numpy()).save(tmp_path / "model")
    return tmp_path / "model"


def test_folded_runs_without_the_model(run: Any, model: Path, csv: Path) -> None:
    result = run("export", model, "--to", "folded", "-o", "small.folded")
    assert result.code == 0, result.err
    assert "wrote small.folded" in result.out
    X = pl.read_csv(csv).select("a", "b [V]").to_numpy()
    estimator = rds.load(model)
    wanted = estimator.predict(pl.DataFrame(X, schema=["a", "b [V]"]), return_std=True)
    np.testing.assert_allclose(load("small.folded").predict(X, return_std=True), wanted, rtol=1e-9)


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_c99_passes_its_self_test(run: Any, model: Path, dtype: str) -> None:
    result = run("export", model, "--to", "c99", "--dtype", dtype, "--name", "Tank 7", "-o", "out")
    assert result.code == 0, result.err
    assert result.err == ""
    assert sorted(p.name for p in Path("out").iterdir()) == FILES
    report = json.loads(Path("out/report.json").read_text())
    assert report["name"] == "tank_7"
    assert report["multiply_adds"] == 2 * 16 + 16 * 16 + 16 * 2
    assert [layer["multiply_adds"] for layer in report["layers"]] == [32, 256, 32]
    assert report["features"] == ["a", "b [V]"]
    quality = report["quality"]
    assert abs(quality["nll_change"]) <= 0.02
    assert set(quality["before"]) == {"nll", "coverage_90", "deviation_area", "mae"}
    assert quality["rows"] == (40 if dtype == "int8" else 80)
    header = Path("out/model.h").read_text()
    assert "#define TANK_7_INPUTS 2\n" in header
    assert "#define TANK_7_HIGH_90 (1.64485359f)\n" in header
    assert "x[1]: b [V]" in header
    assert "| 1 | b [V] |" in Path("out/README.md").read_text()
    command = ["cc", "-std=c99", "selftest.c", "model.c", "weights.c", "-o", "selftest"]
    subprocess.run(command, cwd="out", check=True)
    done = subprocess.run(["./selftest"], cwd="out", capture_output=True, text=True)
    assert done.stdout == "self-test passed\n"
    assert done.returncode == 0


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_c99_that_learns_on_passes_its_self_test(run: Any, model: Path, dtype: str) -> None:
    options = ["--dtype", dtype, "--name", "Tank 7", "--live", "--coverage", "0.8"]
    result = run("export", model, "--to", "c99", *options, "-o", "out")
    assert result.code == 0, result.err
    assert "learning on    728 bytes of state, 92 a row that waits" in result.out
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([*command, "selftest.c", "model.c", "weights.c"], cwd="out", check=True)
    done = subprocess.run(["./a.out"], cwd="out", capture_output=True, text=True)
    assert done.stdout == "self-test passed\n"
    report = json.loads(Path("out/report.json").read_text())["live"]
    assert report["coverage"] == 0.8
    assert "tank_7_observe(&state, &row, y);" in Path("out/README.md").read_text()
    sizes = '#include "model.h"\nint sizes[2] = {sizeof(tank_7_state), sizeof(tank_7_row)};\n'
    check = f"typedef char same[sizeof(tank_7_state) == {report['state_bytes']} ? 1 : -1];\n"
    Path("out/sizes.c").write_text(sizes + check)
    subprocess.run([*command, "-c", "sizes.c"], cwd="out", check=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "onnx", "--live"], "is not for"),
        (["--to", "c99", "--coverage", "0.8"], "--coverage 0.8 is for --live"),
        (["--to", "c99", "--live", "--coverage", "1.5"], "between 0 and 1"),
        (["--to", "c99", "--live", "--epistemic", "laplace"], "leave one of them out"),
    ],
)
def test_what_cannot_learn_on_is_refused(
    run: Any, model: Path, options: list[str], said: str
) -> None:
    result = run("export", model, *options, "-o", "out")
    assert result.code == 1
    assert said in " ".join(result.err.split())
    assert not Path("out").exists()


def test_the_chosen_share_of_the_rows_is_accepted(run: Any, model: Path) -> None:
    assert run("export", model, "--to", "c99", "-o", "out", "--reject", "0.75").code == 0
    threshold = json.loads(Path("out/report.json").read_text())["reject"]["threshold"]
    estimator = rds.load(model)
    X = pl.DataFrame(estimator.fitted_.kept_rows[0], schema=["a", "b [V]"])
    std = estimator.predict(X, return_std=True)[1]
    assert np.mean(std <= threshold * (1 + 1e-6)) == pytest.approx(0.75, abs=0.02)
    assert "#define MODEL_UNSURE 8" in Path("out/model.h").read_text()
    assert run("export", model, "--to", "c99", "-o", "plain").code == 0
    assert "UNSURE" not in Path("plain/model.h").read_text()


def test_classes(run: Any, tmp_path: Path, csv: Path) -> None:
    frame = pl.read_csv(csv)
    X, y = frame.select("a", "b [V]"), frame["label"].to_numpy().astype(str)
    rds.RDeepSenseClassifier(**FIT, effort="quick").fit(X, y).save(tmp_path / "model")
    arguments = ("--to", "c99", "--dtype", "int8", "--data", csv, "--target", "label")
    result = run("export", tmp_path / "model", *arguments, "-o", "out")
    assert result.code == 0, result.err
    report = json.loads(Path("out/report.json").read_text())
    assert report["classes"] == ["high", "low", "mid"]
    assert report["quality"]["rows_from"] == "rows given"
    assert report["quality"]["rows"] == 200
    header = Path("out/model.h").read_text()
    assert "int model_predict(const float *x, float *probs, void *scratch);" in header
    assert "probs[1]: low" in header


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_onnx(run: Any, model: Path, csv: Path, dtype: str) -> None:
    result = run("export", model, "--to", "onnx", "--dtype", dtype, "-o", "m.onnx")
    assert result.code == 0, result.err
    assert result.err == ""
    size = f"{Path('m.onnx').stat().st_size:,}"
    assert f"wrote m.onnx: {size} bytes, opset 17" in result.out
    assert ("differs from the model by " in result.out) == (dtype == "float32")
    assert f"Figures on {40 if dtype == 'int8' else 80} rows" in result.out
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["features"]) == ["a", "b [V]"]
    X = pl.read_csv(csv).select("a", "b [V]")
    mean, std = session.run(["mean", "std"], {"x": X.to_numpy().astype(np.float32)})
    wanted = rds.load(model).predict(X, return_std=True)
    apart = np.abs([(mean[:, 0] - wanted[0]) / wanted[1], std[:, 0] / wanted[1] - 1])
    assert apart.max() < 1e-5 if dtype == "float32" else apart.mean() < 0.05


@needs_cc
def test_epistemic_is_exported_in_every_form(run: Any, model: Path, csv: Path) -> None:
    arguments = ("--epistemic", "laplace", "--to")
    X = pl.read_csv(csv).select("a", "b [V]")
    far = X.select(pl.all() * 9)
    estimator = rds.load(model)
    estimator.fitted_ = replace(estimator.fitted_, unlike=None)  # as an export unasked
    wanted = estimator.predict_dist(far, epistemic="laplace"), estimator.epistemic_std(far)

    assert run("export", model, *arguments, "folded", "-o", "m.folded").code == 0
    folded: Any = load("m.folded")
    np.testing.assert_allclose(folded.predict(far.to_numpy(), True)[1], wanted[0].std, rtol=1e-9)
    np.testing.assert_allclose(folded.epistemic_std(far.to_numpy()), wanted[1], rtol=1e-9)

    assert run("export", model, *arguments, "onnx", "-o", "m.onnx").code == 0
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    found = session.run(["std", "epistemic"], {"x": far.to_numpy().astype(np.float32)})
    np.testing.assert_allclose(found[0][:, 0], wanted[0].std, rtol=1e-4)
    np.testing.assert_allclose(found[1][:, 0], wanted[1], rtol=1e-4)

    result = run("export", model, *arguments, "c99", "--name", "tank", "-o", "out")
    assert result.code == 0, result.err
    # 16 hidden numbers, 2 inputs and a constant: 19 * 20 / 2 numbers, and 2 for the output.
    assert (
        "of them        209 and 768 bytes of flash for the epistemic part (laplace)" in result.out
    )
    assert "#define TANK_EPISTEMIC 1\n" in Path("out/model.h").read_text()
    command = ["cc", "-std=c99", "selftest.c", "model.c", "weights.c", "-o", "selftest"]
    subprocess.run(command, cwd="out", check=True)
    assert subprocess.run(["./selftest"], cwd="out").returncode == 0


def test_web_is_a_folder_of_static_files(run: Any, model: Path) -> None:
    try:
        wasm_compiler()
    except InputError as error:
        pytest.skip(str(error))
    result = run("export", model, "--to", "web", "-o", "page", "--live")
    assert result.code == 0, result.err
    assert "wrote page: " in result.out
    assert "python -m http.server -d page" in result.out
    report = json.loads(Path("page/report.json").read_text())
    sizes = {path.name: path.stat().st_size for path in Path("page").iterdir()}
    assert report["files"] == {k: v for k, v in sizes.items() if k != "report.json"}
    again = run("export", model, "--to", "web", "-o", "page")
    assert "--output page: is there already; --overwrite replaces it" in again.err
    assert run("export", model, "--to", "web", "-o", "page", "--overwrite").code == 0
    named = run("export", model, "--to", "web", "-o", "other", "--name", "gait")
    assert "--name gait is not for --to web" in " ".join(named.err.split())


def test_epistemic_refusals(run: Any, model: Path, tmp_path: Path) -> None:
    def error(path: Path, *arguments: object) -> str:
        result = run("export", path, "-o", "out", *arguments)
        assert result.code != 0
        assert not Path("out").exists()
        return " ".join(str(result.err).split())

    assert "laplace" in error(model, "--to", "c99", "--epistemic", "delta")
    int8 = ("--dtype", "int8", "--epistemic", "laplace")
    for form in ("c99", "onnx"):
        assert "int8 cannot be exported with --epistemic laplace" in error(
            model, "--to", form, *int8
        )
    estimator = rds.load(model)
    estimator.fitted_ = replace(
        estimator.fitted_, epistemic=None
    )  # as files of the first versions have it
    estimator.save(tmp_path / "old")
    for form in ("folded", "c99", "onnx"):
        said = error(tmp_path / "old", "--to", form, "--epistemic", "laplace")
        assert "the model's file is older than epistemic uncertainty; fit the model again" in said


def test_onnx_refusals(run: Any, model: Path, csv: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("export", model, "--to", "onnx", *arguments)
        assert result.code == 1
        assert sorted(p.name for p in Path().iterdir()) == ["data.csv", "model"]
        return str(result.err)

    assert "--dtype float16 is not for --to onnx; accepted: 'float32', 'int8'" in error(
        "--dtype", "float16", "-o", "m.onnx"
    )
    assert "there is no folder none" in error("-o", "none/m.onnx")
    assert "would overwrite" in error("-o", model)
    data = ("--data", csv, "--target", "y")
    assert "would overwrite" in error("-o", csv, *data)
    change = ("--dtype", "int8", "--max-nll-change", "-1")
    assert "nothing was written" in error("-o", "m.onnx", *change, *data)
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    assert "is corrupted" in error("-o", "m.onnx")
    model.write_text("something else")
    assert "model: " in error("-o", "m.onnx")


def test_too_large_a_change_writes_nothing(run: Any, model: Path, csv: Path) -> None:
    arguments = ("--to", "c99", "--dtype", "int8", "--max-nll-change", "-1")
    result = run("export", model, *arguments, "-o", "out")
    assert result.code == 1
    assert "int8 moves the NLL from " in result.err
    assert "by more than --max-nll-change -1; nothing was written" in result.err
    assert not Path("out").exists()
    assert sorted(p.name for p in Path().iterdir()) == ["data.csv", "model"]


@pytest.mark.slow
@needs_cc
def test_fine_tuning_brings_int8_within_the_bound(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = 10 * np.tanh(3 * X[:, 0]) + X[:, 1] ** 3 + 0.01 * rng.normal(size=4000)
    settings: dict[str, Any] = {**FIT, "epochs": 30, "drop_prob": 0.0, "likelihood": "gaussian"}
    rds.RDeepSenseRegressor(**settings, effort="quick").fit(X[:2000], y[:2000]).save(
        tmp_path / "precise"
    )
    frame = pl.DataFrame({**{f"x{k}": X[2000:, k] for k in range(3)}, "y": y[2000:]})
    frame.write_csv(tmp_path / "rows.csv")
    common = ("export", tmp_path / "precise", "--dtype", "int8", "--data", "rows.csv")
    common += ("--target", "y", "-o", "out", "--overwrite", "--to")
    assert run(*common, "c99", "--max-nll-change", "10").code == 0
    rise = json.loads(Path("out/report.json").read_text())["quality"]["nll_change"]
    bound = ("--max-nll-change", f"{rise - 0.02:.6f}")
    result = run(*common, "c99", *bound)
    assert result.code == 1
    assert "You can try --fine-tune, accept a larger change or take a wider --dtype" in result.err
    result = run(*common, "c99", *bound, "--fine-tune")
    assert result.code == 0, result.err
    assert f"without it the NLL rises by {rise:.4f}" in result.out
    quality = json.loads(Path("out/report.json").read_text())["quality"]
    assert quality["nll_change"] < rise - 0.02
    assert quality["fine_tuned"]["nll_change_without"] == pytest.approx(rise)
    assert quality["fine_tuned"]["rows"] == quality["rows"] == 1000
    assert f"the NLL rises by {rise:.4f}" in Path("out/README.md").read_text()
    command = ["cc", "-std=c99", "selftest.c", "model.c", "weights.c", "-o", "selftest"]
    subprocess.run(command, cwd="out", check=True)
    assert subprocess.run(["./selftest"], cwd="out").returncode == 0
    # ONNX runs the same network; both stop when even that is not enough.
    shutil.rmtree("out")
    result = run(*common, "onnx", *bound, "--fine-tune")
    assert result.code == 0, result.err
    assert f"without it the NLL rises by {rise:.4f}" in result.out
    session = onnxruntime.InferenceSession("out", providers=["CPUExecutionProvider"])
    stored = json.loads(session.get_modelmeta().custom_metadata_map["quality"])
    assert stored["nll_change"] == pytest.approx(quality["nll_change"], abs=0.005)
    assert stored["fine_tuned"] == quality["fine_tuned"]
    Path("out").unlink()
    result = run(*common, "c99", "--max-nll-change", "-1", "--fine-tune")
    assert result.code == 1
    assert "You can give --data with more rows to fine-tune on, accept" in result.err
    assert not Path("out").exists()


@pytest.mark.parametrize("to", ["c99", "onnx"])
def test_only_int8_is_fine_tuned(run: Any, model: Path, to: str) -> None:
    result = run("export", model, "--to", to, "-o", "out", "--fine-tune")
    assert result.code == 1
    assert "--fine-tune is for --dtype int8; float32 is exported as it was trained" in result.err
    result = run("export", model, "--to", "folded", "-o", "out", "--fine-tune")
    assert result.code == 1
    assert "--fine-tune is not for --to folded; accepted there: --dtype, --ep" in result.err
    assert not Path("out").exists()


def test_refusals(run: Any, model: Path, csv: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("export", model, "--to", "c99", *arguments)
        assert result.code == 1
        assert not Path("out").exists()
        return str(result.err)

    assert "--data needs --target" in error("-o", "out", "--data", csv)
    assert "there is no such column" in error("-o", "out", "--data", csv, "--target", "none")
    assert "--name *** has no letter" in error("-o", "out", "--name", "***")
    assert "--reject 1.5; accepted" in error("-o", "out", "--reject", "1.5").replace("=", " ")
    assert "there is no folder" in error("-o", "none/out")
    assert "is a file" in error("-o", csv)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "main.c").touch()
    assert "holds 'main.c', which is no part of an export" in error("-o", "mine")


def test_an_earlier_export_is_replaced_where_asked(run: Any, model: Path) -> None:
    command = ("export", model, "--to", "c99", "-o", "out", "--quiet", "--name")
    assert (run(*command, "one").out, run(*command, "two").code) == ("", 1)
    assert "ONE_INPUTS" in Path("out/model.h").read_text()
    assert run(*command, "two", "--overwrite").code == 0
    assert "TWO_INPUTS" in Path("out/model.h").read_text()
    assert sorted(p.name for p in Path("out").iterdir()) == FILES


def test_a_package(run: Any, model: Path) -> None:
    command = ("export", model, "--to", "package", "-o", "tank", "--name", "tank")
    result = run(*command, "--package-version", "2.1.0")
    assert result.code == 0, result.err
    assert "wrote tank: tank 2.1.0, 21 files; README.md first" in result.out
    assert "\nversion=2.1.0\n" in Path("tank/library.properties").read_text()
    result = run(*command)
    assert (result.code, "--overwrite replaces it" in result.err) == (1, True)
    result = run(*command, "--overwrite", "--package-version", "two")
    assert "--package-version two is no semantic version" in result.err
    assert run(*command, "--overwrite").code == 0
    assert "2.1.0" not in Path("tank/library.properties").read_text()
    result = run("export", model, "--to", "c99", "-o", "c", "--package-version", "2.1.0")
    assert "--package-version 2.1.0 is not for --to c99" in result.err


def test_a_model_without_rows(run: Any, tmp_path: Path, csv: Path) -> None:
    frame = pl.read_csv(csv)
    estimator = rds.RDeepSenseRegressor(keep_rows=0, **FIT, effort="quick")
    estimator.fit(frame.select("a", "b [V]"), frame["y"].to_numpy()).save(tmp_path / "model")
    result = run("export", tmp_path / "model", "--to", "c99", "-o", "out")
    assert result.code == 0, result.err
    assert "not measured" in result.out
    result = run("export", tmp_path / "model", "--to", "c99", "--dtype", "int8", "-o", "int8")
    assert result.code == 1
    assert "int8 needs rows to calibrate" in result.err
