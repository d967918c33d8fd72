"""Load a folded model with numpy alone: no torch, scipy, scikit-learn or safetensors."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.laplace import Doubt
from rdeepsense.deploy.folded.model import HEADS, Dense, Folded, Intervals
from rdeepsense.errors import ModelFileError

FORMAT = 1
TEXTS = ("features", "feature_units", "targets", "target_units")
DTYPES = {"F64": "<f8", "F32": "<f4"}
_KEY = rb"\"sha256\":\""  # as it stands in JSON inside of JSON


def load(path: str | os.PathLike[str], compile: bool = False) -> Folded:
    """The folded model in a file, verified.

    With `compile` the generated C is built once by the system's compiler (`cc`, or what the
    environment's CC names), kept in the user's cache folder, and called instead of numpy.
    """
    folded = _folded(path, *read(path))
    if not compile:
        return folded
    # Only here: the generator of C would slow down every other start.
    from rdeepsense.deploy.c.compiled import compiled

    return compiled(folded)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and tensors: 8 bytes that say how long the JSON is, the JSON, the numbers."""
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
        entries = json.loads(data[8:start])
        header = json.loads(entries.pop("__metadata__", {}).get("rdeepsense", "{}"))
        if not header:
            raise ModelFileError(f"{path}: is a safetensors file, but no rdeepsense model")
        end = start + max((int(e["data_offsets"][1]) for e in entries.values()), default=0)
        if end != len(data):
            kind = "truncated" if end > len(data) else "corrupted"
            raise ModelFileError(
                f"{path}: is {kind}, it has {len(data)} bytes where its header announces {end}"
            )
        _verify(path, data, header)
        if header["kind"] != "folded":
            raise ModelFileError(
                f"{path}: is a {header['kind']}, not a folded model; "
                "`rdeepsense export MODEL --to folded -o FILE` makes one"
            )
        return header, {name: _tensor(data, start, entry) for name, entry in entries.items()}
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelFileError(f"{path}: is corrupted, its header cannot be read") from error


def _verify(path: str | os.PathLike[str], data: bytes, header: dict[str, Any]) -> None:
    """The checksum is that of the file with the checksum's own 64 digits set to zero."""
    at = data.find(_KEY) + len(_KEY)
    digest = hashlib.sha256(data[:at])
    digest.update(b"0" * 64)
    digest.update(memoryview(data)[at + 64 :])
    if digest.hexdigest() != header["sha256"]:
        raise ModelFileError(f"{path}: is corrupted, its content does not fit its checksum")
    if int(header["format"]) > FORMAT:
        raise ModelFileError(
            f"{path}: has format {header['format']}, this version of rdeepsense reads up to "
            f"{FORMAT}; a newer version wrote it"
        )


def _tensor(data: bytes, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    first, last = entry["data_offsets"]
    flat = np.frombuffer(data[start + first : start + last], DTYPES[entry["dtype"]])
    return flat.reshape(entry["shape"]).astype(np.float64)


def _folded(
    path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> Folded:
    try:
        classes = header["classes"]
        if header["head"] not in HEADS:
            raise ModelFileError(f"{path}: has the head {header['head']!r}, unknown here")
        parts, doubt = _under("interval.", tensors), _under("doubt.", tensors)
        folded = Folded(
            head=header["head"],
            centre=tensors["centre"],
            scale=tensors["scale"],
            layers=tuple(
                Dense(tensors[f"layer.{k}.weight"], tensors[f"layer.{k}.bias"])
                for k in range(header["layers"])
            ),
            floor=float(header["floor"]),
            spread=tensors.get("spread"),
            shift=tensors.get("shift"),
            intervals=Intervals(**parts) if parts else None,
            doubt=Doubt(**doubt) if doubt else None,
            classes=None if classes is None else np.array(classes, dtype=header["class_dtype"]),
            # Files of before these were kept lack some.
            **{key: header.get(key) and tuple(header[key]) for key in TEXTS},
            missing=header["missing"],
            one_output=header["one_output"],
            calibration=header["calibration"],
            version=header["version"],
            source=header["source"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: lacks or garbles the entry {error}") from error
    outputs = 1 if folded.is_classifier else folded.outputs
    for key, count in zip(TEXTS, (folded.inputs, folded.inputs, outputs, outputs), strict=True):
        if len(getattr(folded, key) or [""] * count) != count:
            raise ModelFileError(f"{path}: {key} do not fit the layers")
    for number, layer in enumerate(folded.layers):
        if layer.weight.shape != folded.widths[number : number + 2][::-1]:
            raise ModelFileError(f"{path}: layer {number} does not fit the one before it")
    if folded.doubt is not None:
        rows = len(folded.doubt.root)
        fits = rows - 1 in (folded.hidden, folded.hidden + folded.inputs)
        if folded.doubt.root.shape != (rows, rows) or not fits:
            raise ModelFileError(f"{path}: the epistemic matrix does not fit the layers")
    return folded


def _under(prefix: str, tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
