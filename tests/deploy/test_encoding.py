"""Categories, unseen levels and missing values: the same in Python, folded, C and ONNX."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from deploy.c_models import COMPILERS, FAST, STRICT, library, predict, run_cc, write
from fuzz.folded_files import encoded_file

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.quantise import DTYPES, prepare
from rdeepsense.encoding import Category, Encoding
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.networks import Periodic

SMALL: dict[str, Any] = {
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
    "epochs": 8,
    "effort": "quick",
}
LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def table(rows: int, seed: int, holes: bool = True) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    colour, site = rng.choice(["red", "green", "blue"], rows), rng.integers(30, size=rows)
    a, b = rng.normal(size=(2, rows))
    y = a + 2.0 * (colour == "red") + np.cos(site) + 0.3 * rng.normal(size=rows)
    frame = pd.DataFrame({"a": a, "colour": colour, "b": b, "site": [f"s{k}" for k in site]})
    if holes:
        frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
        frame.loc[rng.random(rows) < 0.1, "colour"] = None
    return frame, y


FRAME, Y = table(400, 0)


def strange(rows: int = 40, holes: bool = True) -> pd.DataFrame:
    """Rows of the same kind; some with levels that were never seen, and numbers out of range."""
    frame, _ = table(rows, 3, holes)
    frame.loc[3, "colour"], frame.loc[[4, 7], "site"] = "violet", "s99"
    frame.loc[[5, 7], "b"] = 7.0
    return frame


@cache
def fitted(name: str) -> Any:
    return models()[name]()


def models() -> dict[str, Any]:
    full, y = table(400, 0, holes=False)
    network = Periodic((8,), 3, 2)
    labels = np.digitize(Y, [0.0, 1.5])
    regressor, classifier = rds.RDeepSenseRegressor, rds.RDeepSenseClassifier
    return {
        "both": lambda: regressor(hidden=(16, 16), **SMALL).fit(FRAME, Y),
        "classes": lambda: classifier(hidden=(16, 16), **SMALL).fit(FRAME, labels),
        "no holes": lambda: regressor(hidden=(16,), **SMALL).fit(full, y),
        "two outputs": lambda: regressor(hidden=(16,), **SMALL).fit(FRAME, np.c_[Y, -Y]),
        "categories alone": lambda: regressor(hidden=(8,), **SMALL).fit(FRAME[["site"]], Y),
        "holes alone": lambda: regressor(hidden=(8,), **SMALL).fit(FRAME[["b", "a"]], Y),
        "periodic": lambda: regressor(network=network, **SMALL).fit(FRAME, Y),
    }


def rows_of(model: Any) -> pd.DataFrame:
    holes = model.fitted_.inputs.missing == "indicator"
    return strange(holes=holes)[list(model.feature_names_in_)]


def told(model: Any, X: Any, epistemic: str | None = None) -> Any:
    """(2, rows, outputs) with mean and std, or (1, rows, classes)."""
    dist = model.predict_dist(X, epistemic=epistemic)
    parts = [dist.mean] if dist.is_categorical else [dist.mean, dist.std]
    return np.stack([np.reshape(part, (len(X), -1)) for part in parts])


def apart(found: Any, wanted: Any) -> float:
    """In stds of the model, or in probability."""
    found = np.asarray(found).reshape(wanted.shape)
    size = wanted[1] + 1e-2 * np.abs(wanted[0]) if len(wanted) == 2 else 1.0
    return float((np.abs(found - wanted) / size).max())


@pytest.mark.parametrize("name", models())
def test_every_form_says_what_python_says(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    X = rows_of(model)
    wanted, status = told(model, X), model.status(X)
    assert {0, 4} <= set(status.tolist()) or name == "holes alone"
    rds.export(model, tmp_path / "m.folded")
    folded = load(tmp_path / "m.folded")
    codes = model.fitted_.inputs.encoding
    for rows in (X, X.to_numpy(), X.astype(object).to_numpy().tolist()):
        found = folded.predict_proba(rows) if name == "classes" else folded.predict(rows, True)
        assert apart(found, wanted) < 1e-9
        np.testing.assert_array_equal(folded.status(rows), status)
        np.testing.assert_array_equal(folded.flagged_inputs(rows), model.flagged_inputs(X))
    numbers = codes_of(model, X)
    for dtype, bound in (("float32", 1e-4), ("int8", 0.3))[: 1 + (LONG or name == "both")]:
        rds.export(model, tmp_path / "m.onnx", to="onnx", dtype=dtype, max_nll_change=1.0)
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        *found, said, first = session.run(None, {"x": numbers})
        assert apart(np.stack(found), wanted) < bound
        np.testing.assert_array_equal(said, status)
        flagged = model.flagged_inputs(X)
        np.testing.assert_array_equal(first, np.where(flagged.any(1), flagged.argmax(1), -1))
    meta = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    if codes.categories:
        levels = {str(c.column): list(c.levels) for c in codes.categories}
        assert json.loads(meta["levels"]) == levels


def codes_of(model: Any, X: pd.DataFrame) -> Any:
    """Rows as C and ONNX take them, made without the library's own words."""
    columns = []
    for k, name in enumerate(X.columns):
        known = [c for c in model.fitted_.inputs.encoding.categories if c.column == k]
        if not known:
            columns.append(X[name].to_numpy(np.float32))
            continue
        number = {level: code for code, level in enumerate(known[0].levels)}
        columns.append([np.nan if v is None else number.get(v, -1) for v in X[name].astype(object)
                        .where(X[name].notna(), None)])  # fmt: skip
    return np.array(columns, np.float32).T


@pytest.mark.everyday(2, "compilers")
@needs_cc
@pytest.mark.parametrize("name", models())
def test_the_c_says_what_python_says(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    X = rows_of(model)
    wanted, status, codes = told(model, X), model.status(X), codes_of(model, X)
    folded, kept = fold(model), model.fitted_.kept_rows[0]
    for k, dtype in enumerate(DTYPES):
        if not LONG and dtype != DTYPES[list(models()).index(name) % 3]:
            continue
        network = prepare(folded, dtype, kept)
        source = Source(folded, network, "gait")
        cc, folder = COMPILERS[k % len(COMPILERS)], write(source, tmp_path / dtype, kept)
        flags = [*STRICT, "-Wundef", "-O2"]
        run_cc(folder, cc, *flags, "selftest.c", "model.c", "weights.c", "-o", "st")
        run_cc(folder, folder / "st")
        for flags in (["-O2"], FAST) if LONG or dtype == "float32" else (["-O2"],):
            found, out = predict(library(folder, cc, *flags), source, codes)
            np.testing.assert_array_equal(found, status)
            assert apart(out, wanted) < {"float32": 1e-4, "float16": 0.05, "int8": 0.3}[dtype]
            mine = folded.finish(network.raw(folded.facts.inside(codes)), codes)
            parts = [mine.probs] if name == "classes" else [mine.mean, mine.std]
            assert apart(out, np.stack(parts)) < (0.02 if name == "periodic" else 2e-4)


@pytest.mark.compilers
@needs_cc
def test_laplace_and_the_compiled_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model, X = fitted("both"), strange()
    wanted = told(model, X, "laplace")
    rds.export(model, tmp_path / "m", epistemic="laplace")
    for compiled in (False, True):
        form = load(tmp_path / "m", compile=compiled)
        assert apart(form.predict(X, True), wanted) < (1e-3 if compiled else 1e-9)
        std = model.epistemic_std(X)
        np.testing.assert_allclose(form.epistemic_std(X), std, rtol=1e-3)
    rds.export(model, tmp_path / "m.onnx", to="onnx", epistemic="laplace")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = session.run(None, {"x": codes_of(model, X)})
    assert apart(np.stack(found[:2]), wanted) < 1e-3


@needs_cc
def test_missing_values_that_were_not_trained_for(tmp_path: Path) -> None:
    model, X = fitted("both"), strange()
    X.loc[0, "b"], X.loc[1, "site"] = np.nan, None
    assert model.status(X)[:2].tolist() == [1, 1]
    rds.export(model, tmp_path / "m")
    form = load(tmp_path / "m")
    np.testing.assert_array_equal(form.status(X), model.status(X))
    with pytest.raises(InputError, match="X holds nan in row 0, column 'b'"):
        form.predict(X)
    folded = fold(model)
    source = Source(folded, prepare(folded, "float32", ()))
    status, out = predict(library(write(source, tmp_path / "c"), "gcc"), source, codes_of(model, X))
    assert status[:2] == [1, 1]
    assert (out[1, :2, 0] >= np.float32(model.fitted_.guard.fallback[0])).all()
    # A model that never saw a hole refuses all of them.
    model = fitted("no holes")
    X = strange(holes=False)
    X.loc[0, "b"], X.loc[1, "site"] = np.nan, None
    folded, codes = fold(model), codes_of(model, X)
    source = Source(folded, prepare(folded, "float32", ()))
    status, out = predict(library(write(source, tmp_path / "d"), "gcc"), source, codes)
    assert status[:2] == [1, 1]
    assert np.isnan(out[:, :2]).all()
    assert np.isfinite(out[:, 2:]).all()
    rds.export(model, tmp_path / "m.onnx", to="onnx")
    mean, _, said, _ = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": codes})
    assert np.isnan(mean[:2]).all()
    assert np.isfinite(mean[2:]).all()
    np.testing.assert_array_equal(said, status)


def test_the_header_names_levels(tmp_path: Path) -> None:
    model = fitted("both")
    X, y = table(60, 9)
    report = rds.export(
        model, tmp_path / "c", to="c99", dtype="int8", rows=(X, y), name="gait", max_nll_change=1.0
    )
    assert report.quality is not None
    text = (tmp_path / "c/model.h").read_text()
    for line in (
        "#define GAIT_INPUTS 4",
        "#define GAIT_LEVEL_COLOUR_BLUE 0 /* blue */",
        "#define GAIT_LEVEL_SITE_S29 22 /* s29 */",
        "#define GAIT_UNKNOWN_LEVEL 4 /* a category is none of the levels above */",
        "x[1]: colour, the number of its level, one of 3",
    ):
        assert line in text
    assert (
        "| 1 | colour | | | 3 levels, named in model.h |" in (tmp_path / "c/README.md").read_text()
    )
    assert report.to_json()["missing"] == "indicator"


@needs_cc
def test_hostile_names_of_levels_stay_comments(tmp_path: Path) -> None:
    names = ("*/ int x;", '"\\\n#error', "", "*/ int x;;", "ü", "a" * 90, "a" * 91, "1", "01")
    vectors = np.random.default_rng(0).normal(size=(len(names) + 2, 2))
    encoding = Encoding(2, (), (Category(1, names, vectors),))
    drawn = fold(
        rds.RDeepSenseRegressor(hidden=(4,), **SMALL).fit(np.eye(3).repeat(9, 0), range(27))
    )
    guard = replace(
        drawn.facts.guard,
        low=np.zeros(2), high=np.ones(2), missing=np.zeros(2), levels=encoding.counts,
    )  # fmt: skip
    facts = replace(drawn.facts, inputs=2, guard=guard, encoding=encoding, features=("a", "*/"))
    folded = replace(drawn, facts=facts, layers=replace(drawn.layers, encoding=encoding))
    source = Source(folded, prepare(folded, "float32", ()))
    folder = write(source, tmp_path / "c")
    library(folder, "gcc")
    text = (folder / "model.h").read_text()
    macros = [line.split()[1] for line in text.splitlines() if line.startswith("#define MODEL_LEV")]
    assert len(set(macros)) == len(names)
    assert max(map(len, macros)) <= 64


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(7, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    frame = FRAME[["a", "colour", "b"]]
    model = rds.RDeepSenseRegressor(network=network, **SMALL).fit(frame, Y)
    with pytest.raises(InputError, match="categories, and flags of missing values, are for fully"):
        rds.export(model, tmp_path / "m.onnx", to="onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.header.update(columns=2), "encoding.categories has columns"),
        (lambda f: f.header.update(columns=4), "the encoding does not fit the layers"),
        (lambda f: f.header.pop("columns"), "lacks the field columns"),
        (lambda f: f.header.update(encoding=3), "encoding = 3 is garbled"),
        (lambda f: f.header.update(encoding=None), "is no array of such a model|does not fit"),
        (lambda f: f.header["encoding"].update(flagged=[]), "the encoding does not fit the layers"),
        (lambda f: f.header["encoding"]["categories"][0]["levels"].pop(), "encoding.0 does not"),
        (lambda f: f.tensors.pop("encoding.1"), "encoding.1 has the shape"),
        (lambda f: f.tensors.pop("guard.levels"), "guard.levels is missing"),
        (lambda f: f.tensors["encoding.0"].fill(np.nan), "encoding.0 holds nan"),
        (lambda f: f.tensors["encoding.0"].fill(1e9), "encoding.0 holds 1e.09"),
        (lambda f: f.tensors["guard.levels"].fill(1.0), "guard.levels does not fit the encoding"),
        (lambda f: f.header.update(missing="auto"), "missing = 'auto' is garbled"),
    ],
)  # fmt: skip
def test_garbled_files(change: Any, said: str, tmp_path: Path) -> None:
    file = encoded_file(tmp_path)
    file.tensors = {name: np.array(values) for name, values in file.tensors.items()}
    change(file)
    file.write(tmp_path / "m")
    with pytest.raises(ModelFileError, match=said):
        load(tmp_path / "m")
