"""Folded files that are self-consistent but garbled: a ModelFileError, or a model as stated."""

from __future__ import annotations

import copy
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.folded_models import hand_made
from fuzz.folded_files import check_as_stated, file_of
from fuzz.hostile_files import File, mutate, write_signed

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.fold import save
from rdeepsense.deploy.folded.model import DenseLayer
from rdeepsense.errors import ModelFileError

CASES = 100 * (40 if os.environ.get("RDEEPSENSE_LONG") else 1)  # of each model
MODELS: dict[str, tuple[int, str | None]] = {
    "gaussian": (3, None),
    "student": (4, "laplace"),
    "categorical": (2, "laplace"),
    "periodic": (0, "laplace"),
}
MIB = 1 << 20


@pytest.mark.parametrize("name", MODELS)
def test_a_mutated_file_is_refused_or_is_what_it_says(name: str, tmp_path: Path) -> None:
    right = file_of(*MODELS[name], tmp_path, name == "periodic")
    path, rng = tmp_path / "mutated", np.random.default_rng(0)
    right.write(path)
    check_as_stated(path, right, rng)
    refused, longest = 0, 0
    for number in range(CASES):
        file = copy.deepcopy(right)
        said = [mutate(file, rng) for _ in range(rng.integers(1, 3))]
        file.write(path)
        try:
            check_as_stated(path, file, rng)
        except ModelFileError as error:
            refused += 1
            longest = max(longest, len(str(error)))
        except Exception as error:
            error.add_note(f"case {number}: {said}")
            raise
    assert 0.5 * CASES < refused < CASES
    assert longest < 1_000


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> File:
    return file_of(*MODELS["student"], tmp_path_factory.mktemp("right"))


def nan(file: File) -> None:
    file.tensors["layer.0.weight"] = np.full_like(file.tensors["layer.0.weight"], np.nan)


def huge(file: File) -> None:
    for name in [name for name in file.tensors if name.endswith("weight")]:
        file.tensors[name] = np.full(file.tensors[name].shape, 1e120)


def overlapping(file: File) -> None:
    file.tensors["shift"] = file.tensors["spread"]
    *_, last = file.tensors
    size, end = file.tensors[last].nbytes, sum(v.nbytes for v in file.tensors.values())
    file.entries["interval.low"] = {"shape": [size // 8], "data_offsets": [end - size, end]}


def below(file: File) -> None:
    file.tensors["doubt.root"] = file.tensors["doubt.root"].T


def dropped(name: str) -> Callable[[File], None]:
    return lambda file: file.header.pop(name)


def shortened(name: str) -> Callable[[File], None]:
    return lambda file: file.tensors.update({name: file.tensors[name][:1]})


def replaced(name: str, value: Any) -> Callable[[File], None]:
    return lambda file: file.header.update({name: value})


def spelt(name: str, text: str) -> Callable[[File], None]:
    def change(file: File) -> None:
        file.header[name], file.raw = "RAW", ('"RAW"', text)

    return change


COLUMN = ["column", 0]
REFUSED: list[tuple[Callable[[File], None], str]] = [
    (shortened("spread"), "spread does not fit the layers"),
    (shortened("interval.low"), "interval.low does not fit the layers"),
    (shortened("doubt.std"), "doubt.std does not fit the layers"),
    (nan, "layer.0.weight holds nan"),
    (huge, "the layers overflow"),
    (overlapping, "overlaps another or leaves a gap"),
    (below, "doubt.root is not upper triangular"),
    (dropped("missing"), "lacks the field missing"),
    (replaced("missing", "median"), "missing = 'median' is garbled; it must be refuse or mean"),
    (replaced("layers", True), "layers = True is garbled"),
    (replaced("layers", 10**9), "layers = 1000000000 is garbled"),
    (replaced("format", "1"), "format = '1' is none"),
    (replaced("one_output", True), "one_output is garbled"),
    (replaced("features", ["a"]), "features do not fit the layers"),
    (replaced("targets", "abcde"), "targets = 'abcde' is garbled"),
    (replaced("class_dtype", "<U200000000"), "class_dtype = '<U200000000' is garbled"),
    (replaced("link", {"location": COLUMN, "width": ["column", 1]}), "can be 0 or negative"),
    (replaced("link", {"location": ["sqrt", COLUMN], "width": 1}), "root of what may be negative"),
    (replaced("link", {"location": ["column", -1], "width": 1}), "column of a negative number"),
    (replaced("link", {"location": COLUMN, "width": 10**400}), "a number that is too large"),
    (spelt("layers", "1e999"), "holds 1e999, which is no finite number"),
    (spelt("version", "NaN"), "holds NaN, which is no finite number"),
    (spelt("version", "[" * 250_000 + "]" * 250_000), "lists and objects"),
    (spelt("version", "[" * 5_000 + "]" * 5_000), "nested more than 64 deep"),
    (spelt("version", '"a",' * 300_000 + '"b":1'), "more than 200000 texts"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[said for _, said in REFUSED])
def test_every_refusal_names_what_is_wrong(
    right: File, change: Callable[[File], None], message: str, tmp_path: Path
) -> None:
    file = copy.deepcopy(right)
    change(file)
    file.write(tmp_path / "file")
    for native in (False, True):
        with pytest.raises(ModelFileError, match=message):
            load(tmp_path / "file", compile=native)


def same_range(path: Path) -> None:
    entry = {"dtype": "F64", "shape": [MIB // 8], "data_offsets": [0, MIB]}
    entries = {f"layer.{k}.weight": entry for k in range(2_000)}
    write_signed(path, json.dumps(HEADER, separators=(",", ":")), entries, bytes(MIB))


def deep(path: Path) -> None:
    text = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def endless(path: Path) -> None:
    text = b'{"a":"' + rb"\"" * 5 * MIB + b"}"
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def many(path: Path) -> None:
    text = b'{"a":[' + b"[]," * MIB + b"[]]}"
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def wide_labels(path: Path) -> None:
    header = {**HEADER, "classes": [str(k) for k in range(60_000)], "class_dtype": "<U9000"}
    write_signed(path, json.dumps({**FIELDS, **header}, separators=(",", ":")), {})


HEADER = {"format": 1, "kind": "folded", "sha256": "0" * 64}
FIELDS = {
    "head": "", "link": "softmax", "layers": 1, "missing": "mean", "one_output": False,
    "calibration": None, "version": "", "source": "",
}  # fmt: skip


@pytest.mark.parametrize("attack", [same_range, deep, endless, many, wide_labels])
def test_memory_stays_in_proportion_to_the_file(
    attack: Callable[[Path], None], tmp_path: Path
) -> None:
    attack(tmp_path / "file")
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(tmp_path / "file")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3 * (tmp_path / "file").stat().st_size + 64 * MIB


def test_a_large_model_takes_little_more_than_its_numbers(tmp_path: Path) -> None:
    first = DenseLayer(np.ones((2_000, 1_500)), np.zeros(2_000))
    last = DenseLayer(np.ones((2, 2_000)), np.zeros(2))
    save(hand_made("gaussian", np.zeros(1_500), [first, last]), tmp_path / "file")
    assert (tmp_path / "file").stat().st_size < 5 * first.weight.size  # it is float32 there
    tracemalloc.start()
    try:
        load(tmp_path / "file")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3 * (tmp_path / "file").stat().st_size + 2 * MIB


@pytest.mark.parametrize("long", ["label", "name"])
def test_what_reading_would_refuse_is_not_written(long: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), np.array(["low", "high"])[rng.integers(0, 2, 60)]
    y = np.where(y == "low", "low" * 400, y) if long == "label" else y
    model = rds.RDeepSenseClassifier(hidden=(4,), epochs=1, verbose=False, effort="quick").fit(X, y)
    if long == "name":
        model.describe(feature_units=["m" * 1_001])
    with pytest.raises(rds.InputError, match="classes" if long == "label" else "feature_units"):
        rds.export(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
