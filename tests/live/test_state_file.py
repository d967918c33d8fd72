"""Files of states: small, symmetric to the bit, and refused when they are not what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.errors import ModelFileError
from rdeepsense.live.state import packed, unpacked
from rdeepsense.modelfile import tensors as model_file


@pytest.fixture(scope="module")
def model() -> rds.RDeepSenseRegressor:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return rds.RDeepSenseRegressor(
        effort="quick", hidden=(64,), epochs=2, random_state=0, device="cpu", verbose=False
    ).fit(X, X[:, 0] + 0.2 * rng.normal(size=200))


@pytest.fixture(scope="module")
def written(model: rds.RDeepSenseRegressor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    live = model.live()
    for k in range(12):
        live.predict([k / 10, 0.0])
        if k % 2:
            live.observe(1.0)
    path = tmp_path_factory.mktemp("live") / "state"
    live.save(path)
    return path


def test_triangles_come_back() -> None:
    half = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32).astype(float)
    matrix = half + half.T
    matrix = matrix.astype(np.float32).astype(float)
    assert np.array_equal(unpacked(packed(matrix), 5), matrix)


def test_covariance_takes_8_6_kilobytes(written: Path) -> None:
    _, tensors = model_file.read(written)
    assert tensors["covariance"].nbytes == 8_580
    assert written.stat().st_size < 16_000


def changed(written: Path, tmp_path: Path, change: Any) -> Path:
    header, tensors = model_file.read(written)
    header.pop("sha256")
    change(header, tensors)
    model_file.write(tmp_path / "other", header, tensors)
    return tmp_path / "other"


def _set(name: str, value: Any) -> Any:
    return lambda header, tensors: tensors.update({name: value(tensors[name])})


@pytest.mark.parametrize(
    "change",
    [
        _set("covariance", lambda a: -a),
        _set("covariance", lambda a: a * 3),
        _set("covariance", lambda a: a[:, :-1]),
        _set("correction", lambda a: a * np.nan),
        _set("experts", lambda a: a * 2),
        _set("experts", lambda a: -a),
        _set("log_q", lambda a: np.r_[a, a]),
        _set("log_q", lambda a: a + 100),
        _set("alarm.labels.counts", lambda a: -a),
        _set("alarm.labels.counts", lambda a: a.astype(np.float64)),
        _set("alarm.labels.weights", lambda a: a[:2]),
        _set("pending.ticket", lambda a: a + 1_000),
        _set("pending.share", lambda a: 0 * a),
        _set("pending.row", lambda a: a[:, :1]),
        lambda header, tensors: tensors.pop("log_q"),
        lambda header, tensors: tensors.pop("pending.row"),
        lambda header, tensors: header.pop("settings"),
        lambda header, tensors: header["settings"].update(coverage=2),
        lambda header, tensors: header["settings"].update(coverage="much"),
        lambda header, tensors: header["settings"].update(pending=1.5),
        lambda header, tensors: header["settings"].update(more=1),
        lambda header, tensors: header["settings"]["rates"].update(keep=[]),
        lambda header, tensors: header["settings"]["rates"].update(keep=[1.5]),
        lambda header, tensors: header["settings"]["rates"].update(rows=-1),
        lambda header, tensors: header.update(rows=-1),
        lambda header, tensors: header.update(rows="many"),
        lambda header, tensors: header.update(alarms={}),
        lambda header, tensors: header["alarms"]["labels"].update(capital=None),
        lambda header, tensors: header.update(model="0" * 64),
    ],
)
def test_garbled_files_are_refused(
    model: rds.RDeepSenseRegressor, written: Path, tmp_path: Path, change: Any
) -> None:
    with pytest.raises(ModelFileError, match="other: "):
        model.live(state=changed(written, tmp_path, change))


def test_every_flipped_byte_is_seen(
    model: rds.RDeepSenseRegressor, written: Path, tmp_path: Path
) -> None:
    whole = written.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(whole), 30):
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "flipped").write_bytes(data)
        with pytest.raises(ModelFileError):
            model.live(state=tmp_path / "flipped")
