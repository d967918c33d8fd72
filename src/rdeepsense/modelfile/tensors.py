"""The model file: safetensors with a JSON header, verified by SHA-256.

This module knows a header and tensors only; `fitting.store` knows their meaning. Nothing in a file
is ever executed. `container` reads the file and limits the memory that this takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as pack_tensors

from rdeepsense._files import Remote, is_url, write_whole
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.modelfile import container
from rdeepsense.modelfile.container import FORMAT, KEY
from rdeepsense.modelfile.container import Header as Header

_BLANK = "0" * 64

T = TypeVar("T")
Tensors = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Header, tensors: Tensors) -> None:
    """Write a model file, whole or not at all; what reading would refuse is not written."""
    # One metadata entry, because safetensors keeps several in no fixed order.
    own = {"format": FORMAT, "sha256": _BLANK}
    text = json.dumps({**own, **header, **own}, allow_nan=False, separators=(",", ":"))
    arrays = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
    packed = pack_tensors(arrays, {"rdeepsense": text})
    try:
        container.parse(packed[8 : 8 + int.from_bytes(packed[:8], "little")])
        container.parse(text.encode())
    except ModelFileError as error:
        raise InputError(f"{path}: cannot be written, {error}") from error
    start = packed.index(KEY) + len(KEY)
    digest = hashlib.sha256(packed).hexdigest().encode()
    write_whole(path, packed[:start] + digest + packed[start + len(digest) :])


def read(path: str | os.PathLike[str]) -> tuple[Header, Tensors]:
    """Read and verify a model file, by path or URL; the error says what is wrong with it.

    The arrays are parts of one buffer that holds the file: copy what is to outlive the rest.
    """
    remote = Remote.of(path).read() if isinstance(path, str) and is_url(path) else None
    header, tensors = container.read(path, remote)
    return header, {name: tensor.view() for name, tensor in tensors.items()}


def named(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Put a prefix and a dot before every name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Return the tensors whose names begin with a prefix and a dot, without these."""
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def to_plain(value: object) -> object:
    """Return a value as JSON can hold it: no types of numpy's, no NaN or infinity."""
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(v) for v in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def tupled(value: Any) -> Any:  # Any: whatever JSON holds
    """Return a list as a tuple, which JSON does not have, and anything else as it is."""
    return tuple(value) if isinstance(value, list) else value
