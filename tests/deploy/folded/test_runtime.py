"""The folded file: read by numpy alone, refused when it is not what it should be."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.folded_models import forward
from deploy.random_models import Drawn, draw
from safetensors.numpy import save_file

from rdeepsense.deploy import load
from rdeepsense.deploy.fold import fold, save
from rdeepsense.deploy.folded.file import load_folded
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.modelfile import tensors as model_file

HEADS = {"gaussian": 0, "student": 1, "categorical": 2}


@pytest.fixture(scope="module", params=HEADS)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return draw(HEADS[request.param], widest=20, most=5)


@pytest.fixture
def path(drawn: Drawn, tmp_path: Path) -> Path:
    save(fold(drawn.estimator), tmp_path / "model.folded")
    return tmp_path / "model.folded"


def test_a_file_gives_back_every_bit(drawn: Drawn, path: Path) -> None:
    before, after = fold(drawn.estimator), load_folded(path)
    assert np.array_equal(forward(before, drawn.X), forward(after, drawn.X))
    assert before.output.link == after.output.link
    for name in ("head", "features", "missing", "one_output", "version", "source"):
        assert getattr(before.facts, name) == getattr(after.facts, name)
    if before.facts.intervals is not None and after.facts.intervals is not None:
        assert np.array_equal(before.facts.intervals.low, after.facts.intervals.low)
    else:
        assert np.array_equal(before.facts.classes, after.facts.classes)


FLOORS = {"gaussian": 1e-4, "student": 1e-3, "categorical": 0.0}


def test_files_of_before_there_were_links(drawn: Drawn, path: Path) -> None:
    """They name a head and its floor."""
    header, tensors = model_file.read(path)
    del header["link"]
    model_file.write(path, {**header, "floor": FLOORS[header["head"]]}, tensors)
    assert np.array_equal(
        forward(load_folded(path), drawn.X), forward(fold(drawn.estimator), drawn.X)
    )
    model_file.write(path, {**header, "head": "cauchy", "floor": 0.0}, tensors)
    with pytest.raises(ModelFileError, match="has the head 'cauchy', unknown here"):
        load(path)


def test_a_link_that_is_none_or_does_not_fit_is_refused(path: Path) -> None:
    header, tensors = model_file.read(path)
    for link, message in (
        ({"location": ["tan", ["column", 0]], "width": 1.0}, "the link holds .*'tan'"),
        ("hardmax", "link = 'hardmax' is unknown"),
        ({"location": ["column", 400], "width": 1.0}, "the link does not fit|do not fit"),
        ({"location": 1.0, "width": 1.0} if header["classes"] else "softmax", "does not fit"),
    ):
        model_file.write(path, {**header, "link": link}, tensors)
        with pytest.raises(ModelFileError, match=message):
            load(path)


def test_numpy_is_all_it_needs(path: Path) -> None:
    program = (
        "import sys, rdeepsense.deploy as r, numpy as np\n"
        f"m = r.load({str(path)!r}); m.predict(np.zeros((1, m.facts.inputs)))\n"
        "heavy = ('torch', 'scipy', 'sklearn', 'safetensors', 'polars', 'rdeepsense.deploy.c')\n"
        "print([n for n in heavy if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_damaged_files_are_refused(path: Path) -> None:
    data = path.read_bytes()
    for cut in (0, 5, 8, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(ModelFileError, match="truncated|no model file|no rdeepsense model"):
            load(path)
    rng = np.random.default_rng(0)
    for at in rng.integers(8, len(data), 60):
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        refusal = "corrupted|no rdeepsense|no folded|truncated|the tensor"
        with pytest.raises(ModelFileError, match=refusal):
            load(path)


def test_foreign_files_are_refused(drawn: Drawn, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no such file"):
        load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)
    drawn.estimator.save(tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match="is a model, not a folded model; .*to='folded'"):
        load(tmp_path / "model.safetensors")
    save_file({"a": np.zeros(3)}, tmp_path / "foreign")
    with pytest.raises(ModelFileError, match="but no rdeepsense model"):
        load(tmp_path / "foreign")
    (tmp_path / "text").write_text("not at all a model")
    with pytest.raises(ModelFileError, match="is not an rdeepsense model file"):
        load(tmp_path / "text")


def test_bad_inputs_are_named(path: Path) -> None:
    model = load(path)
    rows = np.zeros((2, model.facts.inputs))
    with pytest.raises(InputError, match=r"the model takes \(rows, "):
        model.predict(rows[:, :-1])
    rows[1, 0] = np.nan
    with pytest.raises(InputError, match="X holds nan in row 1, column 0"):
        model.predict(rows)
    if model.facts.is_classifier:
        with pytest.raises(InputError, match="use predict_proba"):
            model.predict_interval(rows[:1])
    else:
        with pytest.raises(InputError, match="0.42 is not stored here; stored: 0.5, 0.8"):
            model.predict_interval(rows[:1], 0.42)
        with pytest.raises(InputError, match="folded without conformal"):
            model.predict_interval(rows[:1], method="conformal")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rdeepsense"


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.mark.everyday(1, "compilers")
@needs_cc
def test_compiled_predicts_the_same_and_is_built_once(
    drawn: Drawn, path: Path, cache: Path
) -> None:
    model = load(path, compile=True)
    compiled: Any = model.runner
    X = drawn.X.astype(np.float32)
    wanted, found = forward(load(path).runner, X), forward(compiled, X)
    scale = 1.0 if model.facts.is_classifier else wanted[1]
    assert np.abs((found - wanted) / scale).max() < 1e-5
    built = list(cache.iterdir())
    assert [p.suffix for p in built] == [".so"]
    stamp = built[0].stat().st_mtime_ns
    load(path, compile=True)
    assert [p.stat().st_mtime_ns for p in cache.iterdir()] == [stamp]

    x, out = X[0].copy(), np.empty(wanted[..., 0, :].shape, dtype=np.float32)
    call = compiled.caller(x, out)
    assert call() == 0
    assert np.array_equal(out, found[..., 0, :])
    x[:] = X[1]
    assert call() == 0
    assert np.array_equal(out, found[..., 1, :])
    x[0] = np.nan
    assert call() == 1
    with pytest.raises(InputError, match="contiguous float32"):
        compiled.caller(x.astype(np.float64), out)
    with pytest.raises(InputError, match="X holds nan in row 0, column 0"):
        model.predict(x[None])
    # float64 holds it, the float32 of C does not
    with pytest.raises(InputError, match="X holds inf in row 0, column 0"):
        model.predict(np.full((1, len(x)), 1e300))


@needs_cc
def test_without_a_compiler_it_says_so(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="needs a C compiler"):
        load(path, compile=True)


def test_widths_must_fit(drawn: Drawn, tmp_path: Path) -> None:
    folded = fold(drawn.estimator)
    layers = dataclasses.replace(folded.layers, centre=np.append(folded.layers.centre, 0.0))
    save(dataclasses.replace(folded, layers=layers), tmp_path / "broken")
    with pytest.raises(ModelFileError, match="layer 0 does not fit"):
        load(tmp_path / "broken")
