"""A kind of file to attack: a sound one, how it is changed, and what a reader makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Rng = np.random.Generator
# Returns what was said to be done, and the bytes.
Edit = Callable[[Rng], tuple[str, bytes]]


@dataclass(frozen=True)
class Subject:
    """A kind of file. `use` raises an error of ours, or returns what the file holds.

    `use` checks by itself that what it accepts is finite and of the stated shapes. Where `sealed`,
    damage must be refused or change nothing.
    """

    name: str
    right: bytes
    use: Callable[[Path, Rng], object]
    edit: Edit | None = None
    sealed: bool = True
    file_name: str = "file"


def damaged(content: bytes, rng: Rng) -> tuple[str, bytes]:
    """Flip a bit, change, cut, double or overwrite some bytes."""
    data, at = bytearray(content), int(rng.integers(len(content)))
    length = int(rng.integers(1, 64))
    way = int(rng.integers(6))
    if way < 2:
        data[at] ^= 1 << int(rng.integers(8))
    elif way == 2:
        data[at] = (data[at] + int(rng.integers(1, 256))) % 256
    elif way == 3:
        del data[at:]
    elif way == 4:
        data[at:at] = data[at : at + length]
    else:
        data[at : at + length] = rng.bytes(length)
    if bytes(data) == content:
        data += b"x"
    return f"damage {way} at {at}", bytes(data)
