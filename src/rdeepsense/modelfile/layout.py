"""How a part of a model is kept in a file: header fields, tensors, and the way there and back.

A `FilePart` says all that a file needs to know of one part. Anyone may have written the file, so
reading has an order, and each step relies on those before:

1. `fields`: the kind of each of the part's fields at the top of the header
2. `check_header`: what these fields hold, and whether they fit the rest of the header
3. `layout`: which tensors belong to the part, their shapes and ranges; no number is read yet
4. `check_numbers`: the order among the numbers of tensors that have these shapes and ranges
5. `from_file`: the part itself

`rdeepsense.fitting.parts` lists the parts of a fitted model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import MOST_LABELS, Json, Kind, label, several, whole
from rdeepsense.modelfile.tensors import Tensors

# --------------------------------------------------------------------------------------------------
# What a tensor of a model file must be like: its shape, its type, the range of its numbers
# --------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
LARGEST = 1e200  # of what has the target's units
TINY = 1e-300
LARGEST_FIGURE = 1e300  # of the header
LONGEST_TEXT = 9_999
COUNT = whole(0, 1 << 53)
LABELS = several(label(LONGEST_TEXT), MOST_LABELS, least=1)
OBJECT = Kind(lambda value: type(value) is dict, "an object")


class Numbers(NamedTuple):
    """What a tensor must be like."""

    shape: Shape
    least: float = -LARGEST
    most: float = LARGEST
    kind: str = "f"  # numpy's letter for floats or whole numbers; with their bytes, such as f8
    gaps: bool = False  # whether NaN may stand for a missing value


Layout = Iterator[tuple[str, Numbers]]


def length(shapes: Shapes, name: str, axis: int = 0) -> int:
    """Return the length of an axis of a tensor that must be there."""
    shape = shapes.get(name)
    if shape is None or len(shape) <= axis or not shape[axis]:
        raise InputError(f"the tensor {name} is missing or has no numbers")
    return shape[axis]


def check_range(name: str, array: NDArray[Any], numbers: Numbers) -> None:
    """Refuse NaN and what lies outside of a range, without a copy of the array."""
    if not array.size or array.dtype.kind == "b":
        return
    lowest, highest = (np.fmin, np.fmax) if numbers.gaps else (np.minimum, np.maximum)
    low = lowest.reduce(array, axis=None).item()
    high = highest.reduce(array, axis=None).item()
    fine = numbers.least <= low and high <= numbers.most
    if not fine and not (numbers.gaps and low != low):
        raise InputError(
            f"{name} holds {low:g} to {high:g}; accepted: {numbers.least:g} to {numbers.most:g}"
        )


# --------------------------------------------------------------------------------------------------
# The rest of the file, as far as the parts need it
# --------------------------------------------------------------------------------------------------


def shape_of(header: Header) -> Shape:
    """Return the shape of a row; files of the first versions have the features alone."""
    return tuple(header.get("input_shape", (header["features"],)))


def outputs_of(target: Json) -> int:
    """Return the number of outputs, or of classes."""
    return math.prod(target["shape"]) if "shape" in target else len(target["classes"])


@dataclass(frozen=True)
class Context:
    """The header of a file and what else is known when a part is checked or read."""

    header: Header
    shapes: Shapes = field(default_factory=dict)  # of all tensors
    network_shape: Shape = ()  # of what networks read of a row
    model: Any = None  # the networks or the process, once they are restored
    parts: dict[str, Any] = field(default_factory=dict)  # those restored before

    @property
    def shape(self) -> Shape:
        """The shape of a row."""
        return shape_of(self.header)

    @property
    def outputs(self) -> int:
        """The number of outputs, or of classes."""
        return outputs_of(self.header["target"])

    @property
    def is_classes(self) -> bool:
        """Whether the target is classes."""
        return "classes" in self.header["target"]


# --------------------------------------------------------------------------------------------------
# A part of a model, and how a file keeps it
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")


class FilePart(Generic[T]):
    """How a file keeps one part of a fitted model; see the top of the module."""

    name: str  # the field of `Fitted`, or the key in `Fitted.parts`
    section: str | None = None  # the header field of every file that has the part
    prefixes: tuple[str, ...] = ()  # without a section: how the names of its tensors begin
    before_model = False  # whether its header fields stand before those of the networks

    @property
    def fields(self) -> Mapping[str, Kind]:
        """All header fields of the part."""
        return {} if self.section is None else {self.section: OBJECT}

    def is_in(self, header: Header, names: Collection[str]) -> bool:
        """Tell whether a file with such a header and such tensors has the part."""
        if self.section is not None:
            return self.section in header
        return any(name.startswith(self.prefixes) for name in names)

    def check_header(self, context: Context) -> None:
        """Refuse header fields that do not fit; called where the file has the section."""

    def layout(self, context: Context) -> Layout:
        """Name the part's tensors, with shapes and ranges."""
        return iter(())

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        """Refuse numbers that do not fit each other."""

    def to_file(self, part: T, header: Header, tensors: Tensors) -> None:
        """Add what a file keeps of the part."""
        raise NotImplementedError

    def from_file(self, tensors: Tensors, context: Context) -> T:
        """Restore the part of a checked file."""
        raise NotImplementedError

    def absent(self, context: Context) -> T | None:
        """Return what a model has whose file lacks the part."""
        return None


class Record(FilePart[T]):
    """A part that is one object of the header and has no tensors."""

    section: str

    def __init__(
        self,
        name: str,
        section: str,
        *,
        check: Callable[[Json, Context], object],
        write: Callable[[T], Json],
        read: Callable[[Json], T],
    ) -> None:
        self.name, self.section = name, section
        self._check, self._write, self._read = check, write, read

    def check_header(self, context: Context) -> None:
        self._check(context.header[self.section], context)

    def to_file(self, part: T, header: Header, tensors: Tensors) -> None:
        header[self.section] = self._write(part)

    def from_file(self, tensors: Tensors, context: Context) -> T:
        return self._read(context.header[self.section])
