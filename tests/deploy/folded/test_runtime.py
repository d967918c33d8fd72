"""The folded file: read by numpy alone, refused when it is not what it should be."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.random_models import Drawn, draw
from safetensors.numpy import save_file

from rdeepsense.deploy.fold import fold, save
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runtime import load
from rdeepsense.errors import InputError, ModelFileError

HEADS = {"gaussian": 0, "student": 1, "categorical": 2}


@pytest.fixture(scope="module", params=HEADS)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return draw(HEADS[request.param], widest=20, most=5)


@pytest.fixture
def path(drawn: Drawn, tmp_path: Path) -> Path:
    save(fold(drawn.estimator), tmp_path / "model.folded")
    return tmp_path / "model.folded"


def test_a_file_gives_back_every_bit(drawn: Drawn, path: Path) -> None:
    before, after = fold(drawn.estimator), load(path)
    assert np.array_equal(before.forward(drawn.X), after.forward(drawn.X))
    for name in ("head", "features", "missing", "one_output", "version", "source", "floor"):
        assert getattr(before, name) == getattr(after, name)
    if before.intervals is not None and after.intervals is not None:
        assert np.array_equal(before.intervals.low, after.intervals.low)
    else:
        assert np.array_equal(before.predict(drawn.X), after.predict(drawn.X))


def test_numpy_is_all_it_needs(path: Path) -> None:
    program = (
        "import sys, rdeepsense.deploy.folded.runtime as r, numpy as np\n"
        f"m = r.load({str(path)!r}); m.forward(m.check(np.zeros((1, m.inputs))))\n"
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
        with pytest.raises(ModelFileError, match="truncated|no model file|no folded model"):
            load(path)
    rng = np.random.default_rng(0)
    for at in rng.integers(8, len(data), 60):
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="corrupted|no rdeepsense|no folded|truncated"):
            load(path)


def test_foreign_files_are_refused(drawn: Drawn, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no such file"):
        load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)
    drawn.estimator.save(tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match="is a model, not a folded model; .* --to folded"):
        load(tmp_path / "model.safetensors")
    save_file({"a": np.zeros(3)}, tmp_path / "foreign")
    with pytest.raises(ModelFileError, match="but no rdeepsense model"):
        load(tmp_path / "foreign")
    (tmp_path / "text").write_text("not at all a model")
    with pytest.raises(ModelFileError, match="is not a safetensors file"):
        load(tmp_path / "text")


def test_bad_inputs_are_named(path: Path) -> None:
    model = load(path)
    rows = np.zeros((2, model.inputs))
    with pytest.raises(InputError, match=r"the model takes \(rows, "):
        model.forward(model.check(rows[:, :-1]))
    rows[1, 0] = np.nan
    with pytest.raises(InputError, match="X holds nan in row 1, column 0"):
        model.forward(model.check(rows))
    if model.is_classifier:
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


@needs_cc
def test_compiled_predicts_the_same_and_is_built_once(
    drawn: Drawn, path: Path, cache: Path
) -> None:
    plain: Any = load(path)
    compiled: Any = load(path, compile=True)
    X = drawn.X.astype(np.float32)
    wanted, found = plain.forward(X), compiled.forward(X)
    scale = 1.0 if plain.is_classifier else wanted[1]
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
        compiled.forward(compiled.check(x[None]))


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
    broken = Folded(**{**vars(folded), "centre": folded.centre[:-1]})
    save(broken, tmp_path / "broken")
    with pytest.raises(ModelFileError, match="layer 0 does not fit"):
        load(tmp_path / "broken")
