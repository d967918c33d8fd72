"""Hand-made models that have every part which C has tables for, each one on its own switch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from deploy.folded_models import hand_made
from numpy.typing import NDArray

from rdeepsense.adaptation.rates import Rates
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.inputs import CLive
from rdeepsense.deploy.folded.model import (
    DenseLayer,
    Embedding,
    Folded,
    LastLayerLaplace,
    VarianceReduction,
)
from rdeepsense.deploy.quantise import FloatNetwork, Int8Layer, Int8Network, as_float32, prepare
from rdeepsense.encoding import Category, Encoding
from rdeepsense.guard import Guard
from rdeepsense.refusal import Refusal

COLUMNS = {"gaussian": 2, "student": 2, "categorical": 1}  # of each output


@dataclass(frozen=True)
class Furnished:
    """What a model has.

    `inputs` are the numbers of a row, `hidden` the hidden layers, `embedding` frequencies and width
    of the embedding of each input, `levels` the widths of the vectors of categories, which are
    the last columns of a row, and `flagged` how many of the first columns may be missing.
    """

    inputs: int
    hidden: tuple[int, ...]
    outputs: int = 1
    head: str = "gaussian"
    embedding: tuple[int, int] | None = None
    levels: tuple[int, ...] = ()
    flagged: int = 0
    guard: bool = True
    missing: str = "mean"
    shifted: bool = True
    reject: bool = False
    novelty: tuple[int, int, int] | None = None  # knots, components, Gaussians
    laplace: bool = False
    narrowed: int = 0  # directions
    filters: int = 0  # rates of what learns on; 0: nothing does

    def __str__(self) -> str:
        parts = [f"embedding {self.embedding}"] * (self.embedding is not None)
        parts += [f"categories {self.levels}"] * bool(self.levels)
        parts += [name for name in ("narrowed", "laplace", "reject") if getattr(self, name)]
        widths = "-".join(map(str, (self.inputs, *self.hidden, self.columns)))
        return " ".join([self.head, widths, self.missing, *parts])

    @property
    def columns(self) -> int:
        return self.outputs * COLUMNS[self.head]

    @property
    def encoding(self) -> Encoding | None:
        if not self.levels and not self.flagged:
            return None
        first = self.inputs - len(self.levels)
        categories = tuple(
            Category(first + k, tuple(f"level {n}" for n in range(k + 2)), np.zeros((k + 4, width)))
            for k, width in enumerate(self.levels)
        )
        return Encoding(self.inputs, tuple(range(self.flagged)), categories)

    @property
    def read(self) -> int:
        """The numbers that the network reads of a row."""
        return self.inputs if self.encoding is None else self.encoding.width

    @property
    def widths(self) -> tuple[int, ...]:
        """What each layer reads, and the columns of the last."""
        each = 1 + (self.embedding or (0, 0))[1]
        return (self.read * each, *self.hidden, self.columns)

    def folded(self, rng: np.random.Generator | None = None) -> Folded:
        """Make the model; its weights are drawn, or zeros."""

        def drawn(*shape: int) -> NDArray[np.float64]:
            return np.zeros(shape) if rng is None else rng.normal(size=shape) * shape[-1] ** -0.5

        dense = [DenseLayer(drawn(b, a), drawn(b)) for a, b in pairwise(self.widths)]
        centre, ones, encoding = np.zeros(self.read), np.ones(self.outputs), self.encoding
        shift = float(self.shifted)
        plain = hand_made(self.head, centre, dense, floor=1.1, shift=shift)
        embedding = None
        if self.embedding is not None:
            waves, width = self.embedding
            weight = drawn(self.read * width, 2 * waves)
            embedding = Embedding(drawn(self.read, waves), weight, drawn(self.read, width))
        guard = None
        if self.guard:
            low, missing = np.full(self.inputs, -9.0), np.zeros(self.inputs)
            coded = encoding is not None and bool(encoding.categories)
            levels = encoding.counts if encoding is not None and coded else None
            guard = Guard(low, -low, missing, ones / self.outputs, levels)
        refusal = None
        if self.reject:
            refusal = Refusal(np.ones(1), np.ones(1 if self.head == "categorical" else ones.size))
        facts = replace(
            plain.facts,
            inputs=self.inputs,
            encoding=encoding,
            guard=guard,
            missing=self.missing,
            refusal=refusal,
            novelty=self._novelty(),
        )
        laplace = None
        if self.laplace:
            rows = (self.hidden[-1] if self.hidden else 0) + self.read + 1
            laplace = LastLayerLaplace(np.eye(rows), ones, ones)
        narrowing = None
        if self.narrowed:
            n, size = self.narrowed, 1 + self.hidden[-1] // 2
            turned = np.ones((n, self.hidden[-1] + 1, size))
            shares = np.full((self.outputs, n), 0.5 / n)
            narrowing = VarianceReduction(turned, np.ones((n, size, size)), shares, 0.1)
        return replace(
            plain,
            facts=facts,
            layers=replace(plain.layers, embedding=embedding, encoding=encoding),
            output=replace(plain.output, laplace=laplace),
            narrowing=narrowing,
        )

    def _novelty(self) -> CompactNovelty | None:
        if self.novelty is None:
            return None
        knots, size, gaussians = self.novelty
        columns = self.read if self.encoding is None else len(self.encoding.numbers)
        return CompactNovelty(
            np.zeros(columns),
            np.zeros((columns, 4)),
            np.zeros((columns, knots)),
            np.zeros((columns, knots)),
            np.zeros((columns, size)),
            np.zeros(size),
            np.zeros((gaussians, size, size)),
            np.zeros((gaussians, size)),
            np.zeros((gaussians, size)),
            np.zeros(gaussians),
            np.ones(1),
        )

    def source(self, rng: np.random.Generator, dtype: str, name: str = "model") -> Source:
        """Write C with drawn weights, rounded as an export rounds them."""
        folded = self.folded(rng)
        X: Any = rng.normal(size=(60, self.inputs)).astype(np.float32)
        if self.levels:
            X[:, -len(self.levels) :] = rng.integers(0, 2, (len(X), len(self.levels)))
        return self._source(folded, prepare(folded, dtype, X), name)

    def empty(
        self, dtype: str, name: str = "model", wide: tuple[int, ...] = (), many: bool = False
    ) -> Source:
        """Write C whose weights are zeros; of float16 the layers `wide` are float32."""
        folded = self.folded()
        network: FloatNetwork | Int8Network = as_float32(folded)
        if dtype == "float16":
            layers = [
                layer if k in wide else replace(layer, weight=layer.weight.astype(np.float16))
                for k, layer in enumerate(network.layers)
            ]
            network = replace(network, dtype=dtype, layers=tuple(layers))
        elif dtype == "int8":
            network = self._int8(network)
        return self._source(folded, network, name, many)

    def _int8(self, network: FloatNetwork) -> Int8Network:
        embedded = self.embedding is not None
        layers = tuple(
            Int8Layer(layer.weight.astype(np.int8), layer.bias, layer.bias, 1.0)
            for layer in network.layers
        )
        return Int8Network(
            network.centre,
            np.ones(1 if embedded else self.read, np.float32),
            1,
            1.0,
            layers,
            network.layers[-1].bias,
            per_scale=network.per_scale if embedded else None,
            embedding=network.embedding,
            encoding=network.encoding,
        )

    def _source(
        self,
        folded: Folded,
        network: FloatNetwork | Int8Network,
        name: str,
        many: bool = False,
    ) -> Source:
        live = None
        if self.filters:
            rows, ones = self.hidden[-1] + 1, np.ones(self.outputs)
            freedom = ones if self.head == "student" else None
            rates = Rates(keep=(0.9,) * self.filters)
            live = CLive(np.ones((rows, 1 + rows // 2)), ones, ones, freedom, rates, 0.9)
        return Source(folded, network, name, live, many)
