"""The bytes of a folded file: a bounded header and tensors that lie one after the other.

8 bytes say how long the JSON is; the JSON follows, then the numbers. Anyone may have written the
file, checksum included, so nothing is parsed or taken into memory before its size is known to be
in proportion to the file: the JSON is short and hardly nested, and the tensors fill what follows it
exactly, without gaps or overlaps.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.errors import ModelFileError

Header = dict[str, Any]  # JSON of a file that anyone may have written
FORMAT = 1
DTYPES = {"F64": ("<f8", 8), "F32": ("<f4", 4)}
LONGEST_JSON = 1 << 22  # bytes
MOST_QUOTES = 400_000
MOST_BRACKETS = 20_000
DEEPEST_JSON = 64
MOST_DIMENSIONS = 2
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_KEY = rb"\"sha256\":\""  # as it stands in JSON inside of JSON


class Tensor(NamedTuple):
    """Where a tensor lies in the file; its numbers are not read yet."""

    data: bytes
    start: int
    dtype: str
    shape: tuple[int, ...]

    def read(self) -> Floats:
        """Read the numbers as float64, whatever they are stored in."""
        count = int(np.prod(self.shape, dtype=np.int64))
        flat = np.frombuffer(self.data, DTYPES[self.dtype][0], count, self.start)
        return flat.reshape(self.shape).astype(np.float64)


def read(path: str | os.PathLike[str]) -> tuple[Header, dict[str, Tensor]]:
    """Read the header and where the tensors lie, verified by the checksum."""
    try:
        with open(path, "rb") as file:  # pathlib alone would add a tenth to the start
            data = file.read()
    except FileNotFoundError:
        raise ModelFileError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path}: is a folder, not a model file") from None
    if len(data) < 9:
        raise ModelFileError(f"{path}: has {len(data)} bytes; it is truncated or no model file")
    start = 8 + int.from_bytes(data[:8], "little")
    if data[8:9] != b"{":
        raise ModelFileError(f"{path}: is not a safetensors file, so no folded model")
    if start > len(data):
        raise ModelFileError(f"{path}: is truncated, or the length of its header is corrupted")
    try:
        entries = parse(data[8:start])
        header = parse(entries.pop("__metadata__", {}).get("rdeepsense", "{}").encode())
        if not header:
            raise ModelFileError("is a safetensors file, but no rdeepsense model")
        end = start + max((e["data_offsets"][1] for e in entries.values()), default=0)
        if end != len(data):
            kind = "truncated" if end > len(data) else "corrupted"
            raise ModelFileError(
                f"is {kind}, it has {len(data)} bytes where its header announces {end}"
            )
        _verify(data, header)
        if header["kind"] != "folded":
            raise ModelFileError(
                f"is a {header['kind']!s:.40}, not a folded model; "
                "rdeepsense.export(model, path, to='folded') makes one"
            )
        return header, dict(_tensors(data, start, entries))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: is corrupted, its header cannot be read") from error


def parse(text: bytes) -> Header:
    """Parse an object of JSON whose size and depth are bounded and whose numbers are finite."""
    if len(text) > LONGEST_JSON:
        raise ModelFileError(f"its JSON has {len(text)} bytes; at most {LONGEST_JSON}")
    # Escapes only matter inside of strings; without them every quote begins or ends one.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > MOST_QUOTES:
        raise ModelFileError(f"its JSON holds more than {MOST_QUOTES // 2} texts")
    outside = b"".join(plain.split(b'"')[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    if len(brackets) > 2 * MOST_BRACKETS:
        raise ModelFileError(f"its JSON holds more than {MOST_BRACKETS} lists and objects")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST_JSON:
            raise ModelFileError(f"its JSON is nested more than {DEEPEST_JSON} deep")
    value = json.loads(text.decode(), parse_float=_finite, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise ModelFileError("its JSON is no object")
    return value


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ModelFileError(f"its JSON holds {text:.40}, which is no finite number")


def _verify(data: bytes, header: Header) -> None:
    """Compare the checksum: that of the file with the checksum's own 64 digits set to zero."""
    at = data.find(_KEY) + len(_KEY)
    digest = hashlib.sha256(memoryview(data)[:at])
    digest.update(b"0" * 64)
    digest.update(memoryview(data)[at + 64 :])
    if digest.hexdigest() != header["sha256"]:
        raise ModelFileError("is corrupted, its content does not fit its checksum")
    version = header["format"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"format = {version!r:.40} is none; accepted: 1 to {FORMAT}")
    if version > FORMAT:
        raise ModelFileError(
            f"has format {version!r:.40}, this version of rdeepsense reads up to {FORMAT}; "
            "a newer version wrote it"
        )


def _tensors(data: bytes, start: int, entries: Header) -> Iterator[tuple[str, Tensor]]:
    """Find every tensor in the order of the file; together they must fill it."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: _range(*item)):
        dtype, shape = entry["dtype"], entry["shape"]
        if type(dtype) is not str or dtype not in DTYPES:
            raise ModelFileError(
                f"the tensor {name!r:.40} has dtype {dtype!r:.40}; accepted: F64, F32"
            )
        if type(shape) is not list or not 0 < len(shape) <= MOST_DIMENSIONS or not _counts(shape):
            raise ModelFileError(f"the tensor {name!r:.40} has the shape {shape!r:.40}")
        size = DTYPES[dtype][1]
        for length in shape:
            size *= length
        first, last = _range(name, entry)
        if last - first != size:
            raise ModelFileError(
                f"the tensor {name!r:.40} has {last - first} bytes where its shape needs {size}"
            )
        if first != at:
            raise ModelFileError(f"the tensor {name!r:.40} overlaps another or leaves a gap")
        at = last
        yield name, Tensor(data, start + first, dtype, tuple(shape))


def _range(name: str, entry: Header) -> tuple[int, int]:
    first, last = entry["data_offsets"]
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        raise ModelFileError(f"the tensor {name!r:.40} has no range of bytes")
    return first, last


def _counts(shape: list[Any]) -> bool:
    return all(type(length) is int and 0 < length < 1 << 48 for length in shape)
