"""The file a model is kept in: safetensors with a JSON header, checked by SHA-256.

This room knows header and tensors only; what they mean is the estimators' business. Nothing in a
file is ever executed. The checksum covers every byte of the file: it is taken with the checksum's
own 64 digits set to zero, so that one flipped bit anywhere is seen.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as pack_tensors

from rdeepsense.errors import ModelFileError
from rdeepsense.files import write_whole

FORMAT = 1
_BLANK = "0" * 64
_KEY = rb"\"sha256\":\""  # as it stands in JSON inside of JSON

T = TypeVar("T")
Header = dict[str, Any]  # Any: whatever JSON holds
Tensors = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Header, tensors: Tensors) -> None:
    """Write a model file, whole or not at all."""
    # One metadata entry, because safetensors keeps several in no fixed order.
    own = {"format": FORMAT, "sha256": _BLANK}
    text = json.dumps({**own, **header, **own}, allow_nan=False, separators=(",", ":"))
    arrays = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
    packed = pack_tensors(arrays, {"rdeepsense": text})
    start = packed.index(_KEY) + len(_KEY)
    digest = hashlib.sha256(packed).hexdigest().encode()
    write_whole(path, packed[:start] + digest + packed[start + len(digest) :])


def read(path: str | os.PathLike[str]) -> tuple[Header, Tensors]:
    """Read and verify a model file; the error says what is wrong with it."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path}: is a folder, not a model file") from None
    header = _header(path, data)
    start = data.find(_KEY) + len(_KEY)
    blanked = data[:start] + _BLANK.encode() + data[start + 64 :]
    if hashlib.sha256(blanked).hexdigest() != header["sha256"]:
        raise ModelFileError(f"{path}: is corrupted, its content does not fit its checksum")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path}: has format {header['format']}, this version of rdeepsense reads up to "
            f"{FORMAT}; a newer version wrote it"
        )
    try:
        return header, parse_tensors(data)
    except SafetensorError as error:
        raise ModelFileError(f"{path}: is corrupted ({error})") from error


def _header(path: str | os.PathLike[str], data: bytes) -> Header:
    """Read the header, telling truncated, corrupted and foreign files apart."""
    if len(data) < 9:
        raise ModelFileError(f"{path}: has {len(data)} bytes; it is truncated or no model file")
    if data[8:9] != b"{":
        raise ModelFileError(f"{path}: is not a safetensors file, so no rdeepsense model")
    start = 8 + int.from_bytes(data[:8], "little")
    if start > len(data):
        raise ModelFileError(f"{path}: is truncated, or the length of its header is corrupted")
    try:
        entries = json.loads(data[8:start])
        metadata = entries.pop("__metadata__", {})
        end = start + max((int(e["data_offsets"][1]) for e in entries.values()), default=0)
        if "rdeepsense" not in metadata:
            raise ModelFileError(f"{path}: is a safetensors file, but no rdeepsense model")
        header = json.loads(metadata["rdeepsense"])
        header = {"format": int(header["format"]), "sha256": str(header["sha256"]), **header}
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelFileError(f"{path}: is corrupted, its header cannot be read") from error
    if end != len(data):
        kind = "truncated" if end > len(data) else "corrupted"
        raise ModelFileError(
            f"{path}: is {kind}, it has {len(data)} bytes where its header announces {end}"
        )
    return header


def named(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Put a prefix and a dot before every name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Return the tensors whose names begin with a prefix and a dot, without these."""
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def plain(value: object) -> object:
    """Return a value as JSON can hold it: no types of numpy's, no NaN or infinity."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def tupled(value: Any) -> Any:  # Any: whatever JSON holds
    """Return a list as a tuple, which JSON does not have, and anything else as it is."""
    return tuple(value) if isinstance(value, list) else value
