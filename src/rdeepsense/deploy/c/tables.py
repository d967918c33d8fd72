"""The numbers of the constant tables of a model; `layout` says which there are and how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.encoding import encoding_arrays
from rdeepsense.deploy.c.inputs import CLaplace, CModel
from rdeepsense.deploy.c.layout import Array, Dimensions, begins, column_floats, tables
from rdeepsense.deploy.c.narrowing import narrow_arrays
from rdeepsense.deploy.c.text import table
from rdeepsense.deploy.c.watch import watch_arrays
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.deploy.stored_embedding import StoredEmbedding
from rdeepsense.errors import InputError
from rdeepsense.guard import LARGEST

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """A constant array; `more` is a macro of the runtime: how many zeros lie behind it.

    `where` is a macro of the runtime that says how it is to lie.
    """

    kind: str
    name: str
    values: NDArray[Any]
    more: str = ""
    where: str = ""

    @property
    def layout(self) -> Array:
        """What it takes in flash."""
        return Array(self.kind, self.name, self.values.size, self.more, self.where)

    def declaration(self) -> str:
        return f"extern const {self.kind} {self.name}[];"

    def definition(self) -> str:
        size = f"{self.values.size} + {self.more}" if self.more else None
        return self.where + table(self.kind, self.name, self.values, size)

    def check(self) -> None:
        """Refuse numbers that float32 cannot hold."""
        if self.kind == "float":
            with np.errstate(over="ignore"):
                narrow = self.values.astype(np.float32)
            if not np.isfinite(narrow).all():
                raise InputError(f"the table {self.name} holds what float32 cannot; change units")

    def words(self) -> NDArray[np.uint32]:
        """What the self-test sees of each number."""
        if self.kind == "float":
            return self.values.astype(np.float32).ravel().view(np.uint32)
        return self.values.ravel().astype(np.int64).astype(np.uint32)


def checksum(tables: list[Table]) -> int:
    """Sum of word_i (2 i + 1), modulo 2^32."""
    words = np.concatenate([t.words() for t in tables])
    factors = 2 * np.arange(len(words), dtype=np.uint32) + np.uint32(1)
    return int((words * factors).sum(dtype=np.uint32))


def tables_of(model: CModel, dimensions: Dimensions) -> list[Table]:
    """Return the tables of a model, of windows those beside the steps, with prefixed names.

    Refuses a table that C would read beyond, or whose numbers float32 cannot hold.
    """
    values, found = _arrays(model), []
    for array in tables(dimensions):
        own = values[array.name]
        if array.name.startswith("weight_"):
            own = _apart(own, dimensions.many)
        if own.size != array.count:
            raise InputError(
                f"the table {array.name} has {own.size} numbers where the model's sizes "
                f"need {array.count}"
            )
        one = Table(array.kind, array.name, own, array.pad, array.align)
        one.check()
        found.append(replace(one, name=f"{model.name}_{array.name}"))
    return found


def _arrays(model: CModel) -> Arrays:
    """Return the numbers of every table by its name; more than a model may need."""
    network, guard = model.network, model.guard
    found: dict[str, NDArray[Any] | None] = {"centre": network.centre}
    found |= {"spread": model.spread, "shift": model.shift}
    if isinstance(network, Int8Network):
        found |= _int8(network)
    elif isinstance(network, FloatNetwork):
        found |= _float(network, model.laplace)
    else:
        found |= {"per_scale": network.per_scale, "offset": network.offset}
    if guard is not None:
        found["low"] = np.maximum(guard.low, -LARGEST)
        found["high"] = np.minimum(guard.high, LARGEST)
        found |= {"fallback": guard.fallback, "takes_nan": guard.missing.astype(np.int8)}
    found |= _embedding(network.embedding) | watch_arrays(model) | encoding_arrays(model)
    found |= {} if model.narrowing is None else narrow_arrays(model.narrowing)
    found |= {} if model.live is None else model.live.arrays()
    return {name: values for name, values in found.items() if values is not None}


def _float(network: FloatNetwork, laplace: CLaplace | None) -> Arrays:
    found: Arrays = {"per_scale": network.per_scale}
    for k, layer in enumerate(network.layers):
        columns: NDArray[Any] = np.ascontiguousarray(layer.weight.T)
        halves = layer.dtype == "float16"
        found[f"weight_{k}"] = columns.view(np.uint16) if halves else columns
        found[f"bias_{k}"] = layer.bias
    if laplace is not None:
        found["root"] = _triangle(laplace.root, network)
        found |= {"gain": laplace.gain, "epistemic": laplace.std}
    return found


def _apart(columns: NDArray[Any], many: bool) -> NDArray[Any]:
    """Fill columns of weights up with zeros."""
    width = columns.shape[1]
    return np.pad(columns, ((0, 0), (0, column_floats(width, many) - width))) if many else columns


def _int8(network: Int8Network) -> Arrays:
    parts = [layer.packed() for layer in network.layers]
    starts, length = begins(part.size for part in parts)
    weights = np.zeros(length, np.int8)
    found: Arrays = {"weights": weights, "head_bias": network.head_bias}
    for k, (start, part, layer) in enumerate(zip(starts, parts, network.layers, strict=True)):
        weights[start : start + part.size] = part
        found |= {f"bias_{k}": layer.bias, f"factor_{k}": layer.factor}
    if network.per_scale is None:
        return {**found, "per_step": network.per_step}
    return {**found, "per_scale": network.per_scale}


def _embedding(embedding: StoredEmbedding | None) -> Arrays:
    if embedding is None:
        return {}
    return {
        "frequency": embedding.frequency,
        "embedding_weight": embedding.weight,
        "embedding_bias": embedding.bias,
    }


def _triangle(root: NDArray[np.float32], network: FloatNetwork) -> NDArray[np.float32]:
    """The upper triangle, row by row; C has h and z times the gains of their layers."""
    root, hidden = root.copy(), 0
    if len(network.layers) > 1:
        hidden = network.layers[-1].weight.shape[1]
        root[:hidden] /= np.float32(network.layers[-1].gain)
    root[hidden:-1] /= np.float32(network.layers[0].gain)
    return root[np.triu_indices(len(root))]
