"""The model file: what comes back, and that no damage goes unseen."""

from __future__ import annotations

import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from rdeepsense import ModelFileError
from rdeepsense.modelfile import tensors as model_file

HEADER = {"kind": "model", "words": ['quoted "sha256":"', "straße"], "n": 3}
TENSORS = {"b": np.arange(900.0).reshape(30, 30), "a": np.array([1, 2], dtype=np.int64)}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    model_file.write(path, HEADER, TENSORS)
    return path.read_bytes()


def test_round_trip_is_exact_and_reproducible(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    header, tensors = model_file.read(path)
    assert {k: header[k] for k in HEADER} == HEADER
    assert header["format"] == model_file.FORMAT
    for name, value in TENSORS.items():
        assert np.array_equal(tensors[name], value)
        assert tensors[name].dtype == value.dtype
    model_file.write(path, HEADER, dict(reversed(TENSORS.items())))
    assert path.read_bytes() == content


@pytest.mark.parametrize("length", [0, 1, 8, 9, 100, *range(1024, 8 * 1024, 1024), -1])
def test_truncated(tmp_path: Path, content: bytes, length: int) -> None:
    path = tmp_path / "m.safetensors"
    assert length < len(content)
    path.write_bytes(content[:length])
    with pytest.raises(ModelFileError, match="truncated"):
        model_file.read(path)


@pytest.mark.slow
@settings(max_examples=300)
@given(position=st.integers(0, 10**9), value=st.integers(1, 255))
@example(position=0, value=1)  # the length of the header
@example(position=7, value=128)
@example(position=-1, value=1)
def test_any_changed_byte_is_seen(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, position: int, value: int
) -> None:
    damaged = bytearray(content)
    damaged[position % len(content)] ^= value
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError):
        model_file.read(path)


def test_every_byte_of_the_header_is_covered(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.safetensors"
    for position in range(8 + int.from_bytes(content[:8], "little")):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            model_file.read(path)


def test_appended_bytes_are_seen(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content + b"x")
    with pytest.raises(ModelFileError, match="corrupted"):
        model_file.read(path)


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_text("time,ppg\n0.0,1.5\n")
    with pytest.raises(ModelFileError, match="is not an rdeepsense model file"):
        model_file.read(path)
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    with pytest.raises(ModelFileError, match="is not an rdeepsense model file"):
        model_file.read(path)
    save_file(TENSORS, path)
    with pytest.raises(ModelFileError, match="is a safetensors file, but no rdeepsense model"):
        model_file.read(path)
    with pytest.raises(ModelFileError, match="no such file"):
        model_file.read(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="is a folder"):
        model_file.read(tmp_path)


def test_newer_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(model_file, "FORMAT", 99)
        model_file.write(path, HEADER, TENSORS)
    with pytest.raises(ModelFileError, match=r"format 99, .* reads up to 1; a newer version"):
        model_file.read(path)


def test_nan_in_the_header_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with pytest.raises(ValueError, match="Out of range float"):
        model_file.write(path, {"x": float("nan")}, TENSORS)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        model_file.write(path, HEADER, {})
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_header_is_plain_json_that_others_can_read(content: bytes) -> None:
    length = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + length])["__metadata__"]["rdeepsense"]
    assert json.loads(text)["words"] == HEADER["words"]


def test_names_get_and_lose_a_prefix() -> None:
    parts = {"a": 1, "b": 2}
    assert model_file.named("net", parts) == {"net.a": 1, "net.b": 2}
    assert model_file.under("net", {"net.a": 1, "net.b": 2, "network.a": 3, "net": 4}) == parts


def test_values_become_plain() -> None:
    value = {1: np.float32(0.5), "x": (np.arange(2), math.nan, math.inf), "s": None}
    assert model_file.to_plain(value) == {"1": 0.5, "x": [[0, 1], None, None], "s": None}
    assert model_file.tupled([1, 2]) == (1, 2)
    assert model_file.tupled("ab") == "ab"
