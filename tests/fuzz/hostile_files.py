"""Model, folded and checkpoint files whose checksum is right and whose content is anything."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.modelfile import tensors as model_file

KEY = rb"\"sha256\":\""
BLANK = "0" * 64
Rng = np.random.Generator

VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 10**6, 10**30, -(10**400), 0.5, -0.0, 1e308, "", "mean",
    "refuse", "softmax", "gaussian", "\ud800", "a\0b", "x" * 5_000, [], [[]], [None], ["a"],
    ["a", "b", "c"], [1, 2, 3], [1.5, True, "a"], {}, {"a": 1}, {"location": 1, "width": 1},
    [0] * 70_000, "<U200000000", "<U9999", "|V8", "<M8[ns]", "|O", "|S4", "<i1", "<f16", "<f2",
    "int, int", "|b1", ">i8", 2 * 10**8, 20_000, [20_000, 20_000], 100_000, 1e-300, 1e300, "1",
    "RDeepSenseRegressor", "GPClassifier", "MCDropRegressor", "SSPClassifier", "Dense", "noise",
    "scale", "isotonic", "temperature", "point", "student", "categorical", "exact", "variational",
    {"shape": []}, {"shape": [3]}, {"dtype": "<i8", "classes": [0, 1]},
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e149, 1e90, -1e90, 1e30, 0.0, -1.0, 1e-320]
DTYPES = ["F64", "F32", "F16", "BF16", "I64", "U8", "C64", "", None, 3, ["F64"]]
DEEP = "[" * 100_000 + "]" * 100_000
STRANGE = ["x", "interval.x", "doubt.x", "layer.9.bias", "network.0.x", "network.7.body.0.bias",
           "novelty.x", "gp.x", "encoding.9", "epistemic.x", "rows.z", "conformal.x",
           "network.x.0"]  # fmt: skip
CODES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "|u1": "U8",
         "|b1": "BOOL", "|i1": "I8"}  # fmt: skip
OPERATIONS = ["add", "multiply", "softplus", "exp", "sqrt", "square", "column", "tan"]


@dataclass
class File:
    """What a file is made of; `entries` take the place of those that belong to the tensors."""

    header: dict[str, Any]
    tensors: dict[str, Any]
    entries: dict[str, Any] = field(default_factory=dict)
    raw: tuple[str, str] = ("", "")  # text of the header's JSON, and what it becomes

    def write(self, path: Path) -> None:
        """Write and sign it."""
        path.write_bytes(self.signed())

    def signed(self) -> bytes:
        """Return the bytes, signed."""
        entries: dict[str, Any] = {}
        body = b""
        for name, values in self.tensors.items():
            part = np.ascontiguousarray(values).tobytes()
            ends = [len(body), len(body) + len(part)]
            kind = CODES.get(values.dtype.str, "F64")
            entries[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": ends}
            body += part
        for name, change in self.entries.items():
            entries[name] = {**entries.get(name, {}), **change}
        header = json.dumps({**self.header, "sha256": BLANK}, separators=(",", ":"))
        return signed(header.replace(*self.raw) if self.raw[0] else header, entries, body)


def write_signed(path: Path, header: str, entries: dict[str, Any], body: bytes = b"") -> None:
    """Write a file whose checksum is right, whatever it holds."""
    path.write_bytes(signed(header, entries, body))


def signed(header: str, entries: dict[str, Any], body: bytes = b"") -> bytes:
    """Return the bytes of a file whose checksum is right, whatever it holds."""
    text = json.dumps({"__metadata__": {"rdeepsense": header}, **entries}, separators=(",", ":"))
    data = len(text).to_bytes(8, "little") + text.encode() + body
    at = data.index(KEY) + len(KEY)
    digest = hashlib.sha256(data).hexdigest().encode()
    return data[:at] + digest + data[at + 64 :]


def opened(path: Path) -> File:
    """Take a file apart."""
    header, tensors = model_file.read(path)
    return File(header, {name: array.copy() for name, array in tensors.items()})


def mutate(file: File, rng: Rng) -> str:
    """Change one thing, and say what."""
    link = [_link] if "link" in file.header else [_field]
    kind = pick(rng, [_field, _field, *link, _numbers, _numbers, _shape, _entry, _names])
    return f"{kind.__name__[1:]}: {kind(file, rng)}"


def pick(rng: Rng, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _field(file: File, rng: Rng) -> str:
    """Change a field, at the top or deeper down."""
    owner: Any = file.header
    name = pick(rng, sorted(owner))
    path = name
    while isinstance(owner[name], dict | list) and owner[name] and rng.random() < 0.7:
        owner = owner[name]
        name = pick(rng, sorted(owner) if isinstance(owner, dict) else range(len(owner)))
        path += f".{name}"
    value = copy.deepcopy(pick(rng, VALUES))  # a later change must not reach VALUES
    if rng.random() < 0.1:
        del owner[name]
        return f"without {path}"
    if rng.random() < 0.1:
        owner[name], file.raw = "RAW", ('"RAW"', pick(rng, ["1e999", "NaN", "-Infinity", DEEP]))
        return f"{path} = {file.raw[1]:.40}"
    old = owner[name]
    if isinstance(old, list) and rng.random() < 0.5:
        owner[name] = [*old[1:], value] if rng.random() < 0.5 else old[:-1]
        return f"an element of {path} = {value!r:.40}"
    if type(old) in (int, float) and abs(old) < 1e300 and rng.random() < 0.5:
        value = pick(rng, [old + 1, old - 1, -old, old * 2, old * 1_000, old / 2, float(old)])
    owner[name] = value
    return f"{path} = {value!r:.40}"


def _link(file: File, rng: Rng) -> str:
    def drawn(depth: int) -> Any:
        if depth > 4 or rng.random() < 0.2:
            return pick(rng, [1.0, 0, -2, 1e-4, 1e200, 10**400, None, "a", ["column", 0]])
        name = pick(rng, OPERATIONS)
        if name == "column":
            return ["column", pick(rng, [0, 1, 1, -1, 7, 10**9, True])]
        return [name, *(drawn(depth + 1) for _ in range(2 if name in ("add", "multiply") else 1))]

    location = ["column", 0] if rng.random() < 0.7 else drawn(0)
    file.header["link"] = {"location": location, "width": drawn(0)}
    return repr(file.header["link"])


def _numbers(file: File, rng: Rng) -> str:
    name = pick(rng, sorted(file.tensors))
    kind = file.tensors[name].dtype
    if kind.kind in "iub" and rng.random() < 0.8:
        info = np.iinfo(kind) if kind.kind != "b" else np.iinfo(np.uint8)
        file.tensors[name] = np.array(file.tensors[name])
        file.tensors[name][...] = whole = pick(rng, [info.min, info.max, 0, 1, 7])
        return f"{name} has {whole}"
    values = np.array(file.tensors[name], dtype=np.float64)
    value = pick(rng, NUMBERS)
    if rng.random() < 0.3:
        with np.errstate(over="ignore"):
            values *= 10.0 ** rng.integers(-200, 200)
    elif not values.size or rng.random() < 0.5:
        values[...] = value
    else:
        values.flat[rng.integers(values.size)] = value
    with np.errstate(all="ignore"):
        file.tensors[name] = values.astype(kind) if rng.random() < 0.5 else values
    return f"{name} has {value}"


def _shape(file: File, rng: Rng) -> str:
    name = pick(rng, sorted(file.tensors))
    values = np.atleast_1d(file.tensors[name])
    if not values.size:
        return "nothing"
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    file.tensors[name] = pick(
        rng,
        [
            values[:-1], values[:1], np.concatenate([values, values]), values.ravel(), values.T,
            values[None], values[..., :-1], values[:0], values[..., None], narrow,
            values.reshape(-1, 1), values.ravel()[0], np.repeat(values[:0], 1, 0),
            np.zeros((50_000, 0), values.dtype),
        ],
    )  # fmt: skip
    return f"{name} {values.shape} becomes {file.tensors[name].shape}"


def _entry(file: File, rng: Rng) -> str:
    name, other = pick(rng, sorted(file.tensors)), pick(rng, sorted(file.tensors))
    size, far = int(file.tensors[name].nbytes), 2**62
    change: dict[str, Any] = pick(
        rng,
        [
            {"dtype": pick(rng, DTYPES)},
            {"shape": pick(rng, [None, 3, [], [-1], [0], [2**62, 4], [1.5], ["a"], [1] * 40, [1]])},
            {"data_offsets": pick(rng, [None, [], [0], [0, size], [8, size + 8], [size, 0]])},
            {"data_offsets": pick(rng, [[-size, 0], [0, far], [0.0, 8.0], ["0", "8"], [True, 8]])},
            {"data_offsets": [0, int(sum(v.nbytes for v in file.tensors.values()))]},
        ],
    )
    file.entries[name] = change
    return f"{name} (beside {other}) has {change}"


def _names(file: File, rng: Rng) -> str:
    name, other = pick(rng, sorted(file.tensors)), pick(rng, sorted(file.tensors))
    way = pick(rng, ["swap", "drop", "add", "copy", "rename"])
    if way == "swap":
        file.tensors[name], file.tensors[other] = file.tensors[other], file.tensors[name]
    elif way == "drop":
        del file.tensors[name]
    elif way == "rename":
        file.tensors[f"{name}x"] = file.tensors.pop(name)
    elif way == "add":
        file.tensors[pick(rng, STRANGE)] = np.ones(3)
    else:
        file.tensors[name] = file.tensors[other]
    return f"{way} {name} {other}"
