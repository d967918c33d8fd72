"""The constant tables of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.encoding import encoding_arrays
from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.narrowing import narrow_arrays, narrow_lengths
from rdeepsense.deploy.c.text import table
from rdeepsense.deploy.c.watch import watch_arrays, watch_lengths
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.deploy.stored_embedding import StoredEmbedding
from rdeepsense.errors import InputError
from rdeepsense.guard import LARGEST

LINE, LARGE = 64, 4_096  # bytes of a cache line, and of a layer that is worth a gap before it
BYTES = {"float": 4, "int32_t": 4, "uint16_t": 2, "int8_t": 1}


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

    def declaration(self) -> str:
        return f"extern const {self.kind} {self.name}[];"

    def definition(self) -> str:
        size = f"{self.values.size} + {self.more}" if self.more else None
        return self.where + table(self.kind, self.name, self.values, size)

    def bytes(self) -> int:
        return BYTES[self.kind] * self.values.size

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


def tables_of(model: CModel) -> list[Table]:
    """All tables of a model, every name with its prefix."""
    network = model.network
    assert isinstance(network, FloatNetwork | Int8Network)
    tables = _int8(network) if isinstance(network, Int8Network) else _float(network)
    tables += _embedding(network.embedding)
    tables += shared_tables(model)
    if model.laplace is not None and isinstance(network, FloatNetwork):
        tables.append(Table("float", "root", _triangle(model.laplace.root, network)))
        tables.append(Table("float", "gain", model.laplace.gain))
        tables.append(Table("float", "epistemic", model.laplace.std))
    tables += learning_tables(model)
    for name, values in encoding_arrays(model).items():
        tables.append(Table("int32_t" if values.dtype == np.int32 else "float", name, values))
    _check(tables, model)
    return [replace(t, name=f"{model.name}_{t.name}") for t in tables]


def shared_tables(model: CModel) -> list[Table]:
    """Tables of outputs and guard, which a model has whatever its network is."""
    tables: list[Table] = []
    if model.spread is not None and model.shift is not None:
        tables.append(Table("float", "spread", model.spread))
        if is_shifted(model):
            tables.append(Table("float", "shift", model.shift))
        if model.sure is not None:
            tables.append(Table("float", "sure_std", model.sure))
    if model.guard is not None:
        tables.append(Table("float", "low", np.maximum(model.guard.low, -LARGEST)))
        tables.append(Table("float", "high", np.minimum(model.guard.high, LARGEST)))
        tables.append(Table("float", "fallback", model.guard.fallback))
        if model.missing != "refuse":
            tables.append(Table("int8_t", "takes_nan", model.guard.missing.astype(np.int8)))
    watched = watch_arrays(model)
    tables += [
        Table("int8_t" if one.dtype == np.int8 else "float", name, one)
        for name, one in watched.items()
    ]
    return tables


def learning_tables(model: CModel) -> list[Table]:
    """Tables of what was learnt from labels, or will be."""
    found = {} if model.narrowing is None else narrow_arrays(model.narrowing)
    found |= {} if model.live is None else model.live.arrays()
    return [Table("float", name, values) for name, values in found.items()]


def lengths(model: CModel) -> dict[str, int]:
    """Say how many numbers C reads of each table, from the sizes in its configuration alone."""
    inputs, outputs, widths = model.network_inputs, model.outputs, model.widths
    found = dict.fromkeys(("centre", "per_scale", "per_step"), inputs)
    found |= dict.fromkeys(("low", "high", "takes_nan", "levels"), model.inputs)
    found |= watch_lengths(model)
    if (encoding := model.encoding) is not None:
        if encoding.width != inputs:
            raise InputError(f"the encoding makes {encoding.width} numbers of a row, not {inputs}")
        categories = encoding.categories
        found |= {"numbers": len(encoding.numbers), "flags": len(encoding.flagged)}
        names = ("categories", "category_levels", "category_width")
        found |= dict.fromkeys(names, len(categories))
        found["vectors"] = sum(c.block * c.width for c in categories)
    found |= dict.fromkeys(
        ("spread", "shift", "sure_std", "gain", "epistemic", "fallback"), outputs
    )
    for k, (before, width) in enumerate(pairwise(widths)):
        found |= {f"bias_{k}": width, f"factor_{k}": width, f"weight_{k}": before * width}
    found["weights"] = 0
    for before, width in pairwise(widths):
        size = -(-before // 4) * 4 * width  # int8 inputs lie in fours
        found["weights"] += (-found["weights"] % LINE if size >= LARGE else 0) + size
    found["head_bias"] = widths[-1]
    if (embedding := model.network.embedding) is not None:
        _, waves, width = embedding.weight.shape
        if widths[0] != inputs * (1 + width):
            raise InputError(
                f"the first layer reads {widths[0]} numbers, which are not {inputs} inputs and "
                f"{width} more of each"
            )
        found["embedding_bias"] = inputs * width
        found |= {"frequency": inputs * waves // 2, "embedding_weight": inputs * waves * width}
    elif widths[0] != inputs:
        raise InputError(f"the first layer reads {widths[0]} numbers of {inputs} inputs")
    if model.laplace is not None:
        rows = len(model.laplace.root)
        if rows - 1 not in (model.hidden, model.hidden + inputs):
            raise InputError(f"the epistemic matrix has {rows} rows, which do not fit the layers")
        found["root"] = rows * (rows + 1) // 2
    if model.narrowing is not None:
        found |= narrow_lengths(model.narrowing, model.hidden, outputs)
    if model.live is not None:
        found |= model.live.lengths(model.hidden, outputs)
    return found


def _check(tables: list[Table], model: CModel) -> None:
    """Refuse a table that C would read beyond, or whose numbers float32 cannot hold."""
    wanted, layers = lengths(model), len(model.network.layers)
    if layers != len(model.widths) - 1:
        raise InputError(f"the network has {layers} layers, the model {len(model.widths) - 1}")
    for t in tables:
        if t.values.size != wanted[t.name]:
            raise InputError(
                f"the table {t.name} has {t.values.size} numbers where the model's sizes "
                f"need {wanted[t.name]}"
            )
        t.check()


def is_shifted(model: CModel) -> bool:
    """Whether any mean lies elsewhere than the location of its distribution."""
    return model.shift is not None and bool(np.any(model.shift))


def _float(network: FloatNetwork) -> list[Table]:
    tables = [
        Table("float", "centre", network.centre),
        Table("float", "per_scale", network.per_scale),
    ]
    for k, layer in enumerate(network.layers):
        columns: NDArray[Any] = np.ascontiguousarray(layer.weight.T)
        if layer.dtype == "float16":
            tables.append(Table("uint16_t", f"weight_{k}", columns.view(np.uint16), "PAD"))
        else:
            tables.append(Table("float", f"weight_{k}", columns))
        tables.append(Table("float", f"bias_{k}", layer.bias))
    return tables


def placed(network: Int8Network) -> tuple[list[int], NDArray[np.int8]]:
    """Say where the weights of each layer begin, and lay them there.

    A large layer begins on a cache line, so that wide registers read no line twice.
    """
    begins, parts, end = [], [], 0
    for layer in network.layers:
        part = layer.packed()
        gap = -end % LINE if part.size >= LARGE else 0
        begins.append(end + gap)
        parts += [np.zeros(gap, np.int8), part]
        end += gap + part.size
    return begins, np.concatenate(parts)


def apart(t: Table) -> Table:
    """Lay columns of float weights on cache lines, an odd number of them apart: `APART` in C."""
    if "_weight_" not in t.name or t.values.ndim < 2 or t.values.shape[1] < LINE:
        return t
    wide = -(-t.values.shape[1] // 16) * 16 | 16
    more = ((0, 0), (0, wide - t.values.shape[1]))
    return replace(t, values=np.pad(t.values, more), where="ON_A_LINE ")


def _int8(network: Int8Network) -> list[Table]:
    _, packed = placed(network)
    tables = [
        Table("float", "centre", network.centre),
        Table("float", "per_step", network.per_step)
        if network.per_scale is None
        else Table("float", "per_scale", network.per_scale),
        Table("int8_t", "weights", packed, "PAD", "ON_A_LINE "),
    ]
    for k, layer in enumerate(network.layers):
        tables.append(Table("float", f"bias_{k}", layer.bias))
        tables.append(Table("float", f"factor_{k}", layer.factor))
    tables.append(Table("float", "head_bias", network.head_bias))
    return tables


def _embedding(embedding: StoredEmbedding | None) -> list[Table]:
    if embedding is None:
        return []
    return [
        Table("float", "frequency", embedding.frequency),
        Table("float", "embedding_weight", embedding.weight),
        Table("float", "embedding_bias", embedding.bias),
    ]


def _triangle(root: NDArray[np.float32], network: FloatNetwork) -> NDArray[np.float32]:
    """The upper triangle, row by row; C has h and z times the gains of their layers."""
    root, hidden = root.copy(), 0
    if len(network.layers) > 1:
        hidden = network.layers[-1].weight.shape[1]
        root[:hidden] /= np.float32(network.layers[-1].gain)
    root[hidden:-1] /= np.float32(network.layers[0].gain)
    return root[np.triu_indices(len(root))]
