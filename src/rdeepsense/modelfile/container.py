"""The bytes of a model file: a bounded header and tensors that lie one after the other.

8 bytes say how long the JSON is; the JSON follows, then the numbers (safetensors). Anyone may have
written the file, checksum included, so nothing is parsed or taken into memory before its size is
known to be in proportion to the file: the JSON is short and hardly nested, and the tensors fill
what follows it exactly, without gaps or overlaps.

The checksum covers every byte of the file: it is taken with the checksum's own 64 digits set to
zero, so that one flipped bit anywhere is seen. It needs numpy alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import ModelFileError

Header = dict[str, Any]  # JSON of a file that anyone may have written
FORMAT = 1
KEY = rb"\"sha256\":\""  # before the checksum, as it stands in JSON inside of JSON
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
LONGEST_JSON = 1 << 22  # bytes
MOST_QUOTES = 400_000
MOST_BRACKETS = 200_000
DEEPEST_JSON = 64
MOST_DIMENSIONS = 8
LARGEST = 1 << 48  # of a length or a place
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Tensor(NamedTuple):
    """Where a tensor lies in the file; its numbers are not looked at yet."""

    data: bytearray
    start: int
    dtype: str
    shape: tuple[int, ...]

    def view(self) -> NDArray[Any]:
        """Return the numbers without a copy, where the file has them in a place fit for it."""
        count = int(np.prod(self.shape, dtype=np.int64))
        flat = np.frombuffer(self.data, DTYPES[self.dtype], count, self.start)
        if not flat.flags.aligned:
            flat = flat.copy()
        return flat.reshape(self.shape)


def read(
    path: str | os.PathLike[str], data: bytearray | None = None
) -> tuple[Header, dict[str, Tensor]]:
    """Read the header and where the tensors lie, verified by the checksum.

    `data` is what the file holds, where it is not one of this machine.
    """
    data = _bytes(path) if data is None else data
    if len(data) < 9:
        raise ModelFileError(f"{path}: has {len(data)} bytes; it is truncated or no model file")
    start = 8 + int.from_bytes(data[:8], "little")
    if data[8:9] != b"{":
        raise ModelFileError(f"{path}: is not an rdeepsense model file")
    if start > len(data):
        raise ModelFileError(f"{path}: is truncated, or the length of its header is corrupted")
    try:
        entries = parse(data[8:start])
        header = parse(entries.pop("__metadata__", {}).get("rdeepsense", "{}").encode())
        if not header:
            raise ModelFileError("is a safetensors file, but no rdeepsense model")
        end = start + max((_range(*item)[1] for item in entries.items()), default=0)
        if end != len(data):
            kind = "truncated" if end > len(data) else "corrupted"
            raise ModelFileError(
                f"is {kind}, it has {len(data)} bytes where its header announces {end}"
            )
        _verify(data, header)
        return header, dict(_tensors(data, start, entries))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: is corrupted, its header cannot be read") from error


def parse(text: bytes | bytearray) -> Header:
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


def _bytes(path: str | os.PathLike[str]) -> bytearray:
    """Read the whole file, so that arrays made of it without a copy can be written to."""
    try:
        with open(path, "rb") as file:  # pathlib alone would add a tenth to a device's start
            data = bytearray(os.fstat(file.fileno()).st_size)
            del data[file.readinto(data) :]
            data += file.read()  # of what has no size, as a pipe
            return data
    except FileNotFoundError:
        raise ModelFileError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path}: is a folder, not a model file") from None


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ModelFileError(f"its JSON holds {text:.40}, which is no finite number")


def _verify(data: bytearray, header: Header) -> None:
    """Compare the checksum: that of the file with the checksum's own 64 digits set to zero."""
    at = data.find(KEY) + len(KEY)
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


def _tensors(data: bytearray, start: int, entries: Header) -> Iterator[tuple[str, Tensor]]:
    """Find every tensor in the order of the file; together they must fill it."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: _range(*item)):
        dtype, shape = entry["dtype"], entry["shape"]
        if type(dtype) is not str or dtype not in DTYPES:
            accepted = ", ".join(DTYPES)
            raise ModelFileError(
                f"the tensor {name!r:.40} has dtype {dtype!r:.40}; accepted: {accepted}"
            )
        if type(shape) is not list or len(shape) > MOST_DIMENSIONS or not _counts(shape):
            raise ModelFileError(f"the tensor {name!r:.40} has the shape {shape!r:.40}")
        size = np.dtype(DTYPES[dtype]).itemsize
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
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < LARGEST:
        raise ModelFileError(f"the tensor {name!r:.40} has no range of bytes")
    return first, last


def _counts(shape: list[Any]) -> bool:
    return all(type(length) is int and 0 <= length < LARGEST for length in shape)
