"""The file format of one part of a model: header fields, tensors, writing and reading.

A `FilePart` describes one part. Files are untrusted, so reading goes through these steps, and each
one relies on the steps before it:

1. `fields`: the kind of each top-level header field of the part
2. `check_header`: the content of these fields, and their consistency with the rest of the header
3. `layout`: names, shapes and ranges of the part's tensors, from shapes alone
4. `check_numbers`: relations between the values of these tensors
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
from rdeepsense.modelfile.schema import (
    MOST_LABELS,
    Json,
    Kind,
    label,
    maybe,
    number,
    several,
    text,
    whole,
)
from rdeepsense.modelfile.tensors import Tensors, named, under

# --------------------------------------------------------------------------------------------------
# Requirements for a tensor: shape, type, range
# --------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
LARGEST = 1e200  # of what has the target's units
TINY = 1e-300
LARGEST_FIGURE = 1e300  # of the header
LONGEST_TEXT = 9_999
COUNT = whole(0, 1 << 53)
FIGURE = maybe(number(-LARGEST_FIGURE, LARGEST_FIGURE))  # null where it was NaN or infinite
SHORT = text(LONGEST_TEXT)
TEXTS = several(SHORT, MOST_LABELS)
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
# The rest of the file, for the checks of a part
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """The header of a file, and what is known besides when a part is checked or read."""

    header: Header
    shapes: Shapes = field(default_factory=dict)  # of all tensors
    network_shape: Shape = ()  # of the input of the networks
    model: Any = None  # the restored networks or process
    parts: dict[str, Any] = field(default_factory=dict)  # restored so far

    @property
    def shape(self) -> Shape:
        """The shape of a row; files of the first versions have the features alone."""
        return tuple(self.header.get("input_shape", (self.header["features"],)))

    @property
    def outputs(self) -> int:
        """The number of outputs, or of classes."""
        target = self.header["target"]
        return math.prod(target["shape"]) if "shape" in target else len(target["classes"])

    @property
    def is_classes(self) -> bool:
        """Whether the target is classes."""
        return "classes" in self.header["target"]


# --------------------------------------------------------------------------------------------------
# A part of a model in a file
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")


class FilePart(Generic[T]):
    """The file format of one part of a fitted model; see the top of the module.

    Unless a subclass says otherwise, the part has no tensors but those of `arrays`, named after
    the part, and `built` makes the part of them.
    """

    name: str  # the field of `Fitted`, or the key in `Fitted.parts`
    section: str | None = None  # the header field that marks the part
    prefixes: tuple[str, ...] = ()  # without a section: prefixes of tensors that mark the part
    before_model = False  # whether its header fields come before those of the networks

    @property
    def fields(self) -> Mapping[str, Kind]:
        """All top-level header fields of the part."""
        return {} if self.section is None else {self.section: OBJECT}

    def is_in(self, header: Header, names: Collection[str]) -> bool:
        """Tell whether a file with this header and tensors of these names has the part."""
        if self.section is not None:
            return self.section in header
        return any(name.startswith(self.prefixes) for name in names)

    def check_header(self, context: Context) -> None:
        """Refuse header fields that are garbled or inconsistent; called if there is a section."""

    def layout(self, context: Context) -> Layout:
        """Return the names of the part's tensors, with shapes and ranges."""
        return iter(())

    def check_numbers(self, tensors: Tensors, context: Context) -> None:
        """Refuse values that contradict each other."""

    def to_file(self, part: T, header: Header, tensors: Tensors) -> None:
        """Add the part's header fields and tensors."""
        tensors |= named(self.name, self.arrays(part))

    def from_file(self, tensors: Tensors, context: Context) -> T:
        """Restore the part from a checked file."""
        return self.built(under(self.name, tensors))

    def arrays(self, part: T) -> Mapping[str, NDArray[Any]]:
        """Return the part's tensors."""
        raise NotImplementedError

    def built(self, arrays: Tensors) -> T:
        """Make the part from the tensors of `arrays`."""
        raise NotImplementedError

    def absent(self, context: Context) -> T | None:
        """Return the part of a model whose file does not have it."""
        return None


class Record(FilePart[T]):
    """A part that is one JSON object in the header and has no tensors."""

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
