"""Load a folded model with numpy alone: no torch, scipy, scikit-learn or safetensors."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Facts, Intervals
from rdeepsense.deploy.folded.laplace import LastLayerLaplace
from rdeepsense.deploy.folded.layers import DenseLayer, Layers
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.link import (
    Column,
    Expression,
    Link,
    LocationWidth,
    Softmax,
    add,
    from_json,
    softplus,
    sqrt,
)

Header = dict[str, Any]  # JSON of a file that anyone may have written
Tensors = dict[str, NDArray[np.float64]]
FORMAT = 1
TEXTS = ("features", "feature_units", "targets", "target_units")
DTYPES = {"F64": "<f8", "F32": "<f4"}
LAPLACE = "doubt."  # before the names of its tensors
_KEY = rb"\"sha256\":\""  # as it stands in JSON inside of JSON


def load_folded(path: str | os.PathLike[str]) -> Folded:
    """Read a folded model from its file, verified."""
    folded = _folded(path, *read(path))
    _check_fit(path, folded)
    return folded


def read(path: str | os.PathLike[str]) -> tuple[Header, Tensors]:
    """Read header and tensors: 8 bytes that say how long the JSON is, the JSON, the numbers."""
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
                "rdeepsense.export(model, path, to='folded') makes one"
            )
        return header, {name: _tensor(data, start, entry) for name, entry in entries.items()}
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelFileError(f"{path}: is corrupted, its header cannot be read") from error


def _verify(path: str | os.PathLike[str], data: bytes, header: Header) -> None:
    """Compare the checksum: that of the file with the checksum's own 64 digits set to zero."""
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


def _tensor(data: bytes, start: int, entry: Header) -> NDArray[np.float64]:
    first, last = entry["data_offsets"]
    flat = np.frombuffer(data[start + first : start + last], DTYPES[entry["dtype"]])
    return flat.reshape(entry["shape"]).astype(np.float64)


def _folded(path: str | os.PathLike[str], header: Header, tensors: Tensors) -> Folded:
    try:
        link = _link(header)
        layers = Layers(
            tensors["centre"],
            tensors["scale"],
            tuple(
                DenseLayer(tensors[f"layer.{k}.weight"], tensors[f"layer.{k}.bias"])
                for k in range(header["layers"])
            ),
        )
        parts, laplace = _under("interval.", tensors), _under(LAPLACE, tensors)
        classes = header["classes"]
        facts = Facts(
            inputs=layers.inputs,
            outputs=layers.widths[-1] // link.columns,
            head=header["head"],
            # Files of before these were kept lack some.
            **{key: header.get(key) and tuple(header[key]) for key in TEXTS},
            classes=None if classes is None else np.array(classes, dtype=header["class_dtype"]),
            missing=header["missing"],
            one_output=header["one_output"],
            calibration=header["calibration"],
            intervals=Intervals(**parts) if parts else None,
            version=header["version"],
            source=header["source"],
        )
        output = Output(
            link,
            tensors.get("spread"),
            tensors.get("shift"),
            LastLayerLaplace(**laplace) if laplace else None,
        )
        return Folded(facts, layers, output)
    except InputError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path}: lacks or garbles the entry {error}") from error


def _link(header: Header) -> Link:
    """Read the link; files of before there were links name a head and its floor instead."""
    if "link" in header:
        link = from_json(header["link"])
        if link.columns < 1:
            raise InputError("the link does not fit the layers: it reads no column")
        return link
    name, floor = header["head"], float(header["floor"])
    positive: Expression = add(softplus(Column(1)), floor)
    of_heads: dict[str, Link] = {
        "gaussian": LocationWidth(Column(0), sqrt(positive)),
        "student": LocationWidth(Column(0), positive),
        "categorical": Softmax(),
    }
    if name not in of_heads:
        raise InputError(f"has the head {name!r}, unknown here")
    return of_heads[name]


def _check_fit(path: str | os.PathLike[str], folded: Folded) -> None:
    """Refuse parts that do not belong together."""
    facts, layers, output = folded.facts, folded.layers, folded.output
    named = 1 if facts.is_classifier else facts.outputs
    for key, count in zip(TEXTS, (facts.inputs, facts.inputs, named, named), strict=True):
        if len(getattr(facts, key) or [""] * count) != count:
            raise ModelFileError(f"{path}: {key} do not fit the layers")
    for number, layer in enumerate(layers.dense):
        if layer.weight.shape != layers.widths[number : number + 2][::-1]:
            raise ModelFileError(f"{path}: layer {number} does not fit the one before it")
    numbers = (facts.outputs,)
    if isinstance(output.link, Softmax):
        fits = facts.classes is not None and len(facts.classes) == facts.outputs
    else:
        fits = facts.classes is None and layers.widths[-1] % output.link.columns == 0
        fits = fits and all(v is not None and v.shape == numbers for v in _scaling(output))
    if not fits:
        raise ModelFileError(f"{path}: the link does not fit the layers")
    if output.laplace is not None:
        rows = len(output.laplace.root)
        fits = rows - 1 in (layers.hidden, layers.hidden + layers.inputs)
        if output.laplace.root.shape != (rows, rows) or not fits:
            raise ModelFileError(f"{path}: the epistemic matrix does not fit the layers")


def _scaling(output: Output) -> tuple[NDArray[np.float64] | None, ...]:
    return output.spread, output.shift


def _under(prefix: str, tensors: Tensors) -> Tensors:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
