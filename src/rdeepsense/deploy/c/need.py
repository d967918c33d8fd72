"""What a network will need as C, from its sizes alone: exact tables, an upper bound of the rest.

`tables_of` and `scratch_bytes` are the truth about tables and scratch once a model is there. Of
code and stack no one knows before a compiler has seen them; the allowances here are above what gcc
and -O2 make of any model on Cortex-M and x86, as tests measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from rdeepsense.deploy.folded.embedding import SINE_TERMS
from rdeepsense.deploy.quantise import BLOCK
from rdeepsense.encoding import Encoding
from rdeepsense.fitting.need import Need

CODE = {"float32": 2_560, "float16": 2_560, "int8": 3_584}  # bytes, constants beside it included
CODE_OF_EMBEDDING = 1_024
CODE_OF_ENCODING = 512
CODE_OF_LAYER = 32
STACK = 512


@dataclass(frozen=True)
class NetworkSizes:
    """Numbers that a network has: `widths` are hidden layers and the columns of the last one.

    `embedding` are frequencies and width of each input's, where there is one; `encoded` is how many
    numbers the tables have that make inputs of categories and holes.
    """

    inputs: int
    outputs: int  # or classes
    widths: tuple[int, ...]
    embedding: tuple[int, int] | None = None
    encoded: int = 0

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        read = self.inputs * (1 + (self.embedding or (0, 0))[1])
        return list(pairwise((read, *self.widths)))

    @property
    def multiply_adds(self) -> int:
        """Of one prediction, as the export counts them."""
        frequencies, width = self.embedding or (0, 0)
        waves = frequencies * (1 + 2 * SINE_TERMS) + 2 * frequencies * width
        return self.inputs * waves + sum(a * b for a, b in self.layers)


def need_in_c(sizes: NetworkSizes, dtype: str) -> Need:
    """Count the bytes of flash and RAM.

    Which layers half floats are too coarse for is seen only after training, so float16 counts as
    float32 does.
    """
    code = CODE[dtype] + CODE_OF_LAYER * len(sizes.layers)
    code += 0 if sizes.embedding is None else CODE_OF_EMBEDDING
    flash, ram = _tables(sizes, dtype) + code, _scratch(sizes, dtype) + STACK
    if sizes.encoded:
        flash += 4 * sizes.encoded + CODE_OF_ENCODING
        ram += 4 * sizes.inputs
    return Need(flash, ram, sizes.multiply_adds)


def encoded_numbers(encoding: Encoding) -> int:
    """Count vectors of levels, places of columns, and the guard's count of levels of each."""
    vectors = sum(category.block * category.width for category in encoding.categories)
    columns = len(encoding.numbers) + len(encoding.categories)
    places = len(encoding.numbers) + len(encoding.flagged) + 3 * len(encoding.categories)
    return vectors + places + columns


def _tables(sizes: NetworkSizes, dtype: str) -> int:
    """Add up all tables, those of a mean that is shifted and of missing inputs among them."""
    inputs, outputs = sizes.inputs, sizes.outputs
    frequencies, width = sizes.embedding or (0, 0)
    numbers = inputs * (frequencies + 2 * frequencies * width + width)
    numbers += 2 * inputs  # centre and scale
    numbers += 2 * inputs  # the guard's range; its fallback is among what outputs have
    numbers += 4 * outputs  # spread, shift, the largest std that is sure, fallback
    columns = sum(b for _, b in sizes.layers)
    if dtype == "int8":
        # Bias and factor of each column, and the bias that is added to the last ones as floats.
        numbers += 2 * columns + sizes.widths[-1]
        return 4 * numbers + sum(_up(a, 4) * b for a, b in sizes.layers) + inputs
    return 4 * (numbers + columns + sum(a * b for a, b in sizes.layers)) + inputs


def _scratch(sizes: NetworkSizes, dtype: str) -> int:
    frequencies, width = sizes.embedding or (0, 0)
    room = _up(max(a for a, _ in sizes.layers), 4)
    sums = _up(max(sizes.widths), BLOCK if dtype == "int8" else 1)
    more = 4 * (2 * frequencies + width)
    if dtype == "int8":
        return _up(4 * sums + 4 * sizes.widths[-1] + 2 * room, 4) + more
    return _up(4 * room + 4 * sums + 2 * room, 4) + more


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
