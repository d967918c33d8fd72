"""The layout of a benchmark's data set: one .npz file with its rows and its splits.

    x          (N, d) numbers
    y          (N,)   numbers
    test_mask  (splits, ceil(N / 8)) uint8: for each split the bits of its rows, packed,
               np.packbits(is_test, axis=1) with is_test (splits, N); 1 is a test row

Other arrays in the file are left alone, and nothing in it is ever executed (no pickles).
"""

from __future__ import annotations

import hashlib
import math
import tokenize
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError
from rdeepsense.experiments.tasks.unpack import ALWAYS_BYTES, DAMAGE, MOST_RATIO

ARRAYS = ("x", "y", "test_mask")
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
FEWEST_TRAINING_ROWS = 10  # the estimators' own limit


@dataclass(frozen=True)
class DataSet:
    """A table with its splits; `digest` changes with any of its numbers."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    test: NDArray[np.bool_]
    digest: str

    @property
    def splits(self) -> int:
        """The number of splits."""
        return len(self.test)


def find(folder: Path, names: list[str] | None = None) -> list[Path]:
    """Return the folder's files, all or those whose names begin like `names`."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder}: has no .npz file with a data set")
    if names is None:
        return files
    return list(dict.fromkeys(_match(name, files) for name in names))


def load(path: Path) -> DataSet:
    """Read and check one file."""
    try:
        with zipfile.ZipFile(path) as file:
            arrays = _arrays(file, path.stat().st_size)
    except (*DAMAGE, MemoryError, tokenize.TokenError) as error:
        raise InputError(f"{path}: is no readable .npz file of plain arrays ({error})") from error
    for key in ARRAYS:
        if key not in arrays:
            raise InputError(f"{path}: has no array {key!r}; needed are x, y and test_mask")
    x, y, mask = (arrays[key] for key in ARRAYS)
    for key, array, axes in (("x", x, 2), ("y", y, 1)):
        if array.ndim != axes or array.dtype.kind not in "fiu":
            raise InputError(
                f"{path}: {key} has shape {array.shape} and type {array.dtype}; "
                f"needed are numbers with {axes} ax{'e' if axes == 2 else 'i'}s"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {key} contains NaN or infinity")
    if len(x) != len(y):
        raise InputError(f"{path}: x has {len(x)} rows, y has {len(y)}; they must agree")
    test = _unpack(path, mask, len(x))
    digest = hashlib.sha256(repr((x.shape, mask.shape)).encode())
    for array in (x.astype(np.float64), y.astype(np.float64), mask):
        digest.update(np.ascontiguousarray(array).tobytes())
    return DataSet(
        path.stem, x.astype(np.float64), y.astype(np.float64), test, digest.hexdigest()[:16]
    )


def _arrays(file: zipfile.ZipFile, size: int) -> dict[str, NDArray[Any]]:
    """Read the arrays, no more bytes of them than a file of this size may bring."""
    members = {member.filename: member for member in file.infolist()}
    found = {key: members[f"{key}.npy"] for key in ARRAYS if f"{key}.npy" in members}
    total, most = (
        sum(member.file_size for member in found.values()),
        max(ALWAYS_BYTES, MOST_RATIO * size),
    )
    if total > most:
        raise ValueError(f"its arrays take {total:,} bytes; at most {most:,} of one this size")
    return {key: _array(file.open(member)) for key, member in found.items()}


def _array(stream: IO[bytes]) -> NDArray[Any]:
    """Read an array whose header fits the bytes that follow it."""
    with stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise ValueError(f"an array has the version {version}")
        shape, is_fortran, dtype = HEADERS[version](stream)
        if dtype.hasobject:
            raise ValueError("an array holds objects, which are not plain numbers")
        data = stream.read()
    if not all(length >= 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} has {len(data)} bytes")
    flat: NDArray[Any] = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _unpack(path: Path, mask: NDArray[np.uint8], rows: int) -> NDArray[np.bool_]:
    width = -(-rows // 8)
    if mask.dtype != np.uint8 or mask.ndim != 2 or mask.shape[1] != width or not len(mask):
        raise InputError(
            f"{path}: test_mask has shape {mask.shape} and type {mask.dtype}; "
            f"needed are (splits, {width}) packed bits of type uint8 for {rows} rows"
        )
    test = np.unpackbits(mask, axis=1, count=rows).astype(bool)
    for split, rows_of in enumerate(test):
        if not rows_of.any() or (~rows_of).sum() < FEWEST_TRAINING_ROWS:
            raise InputError(
                f"{path}: split {split} has {rows_of.sum()} test rows of {rows}; needed are at "
                f"least 1 to test and {FEWEST_TRAINING_ROWS} to train"
            )
    return test


def _match(name: str, files: list[Path]) -> Path:
    """Return the file of that name, or the only one whose name begins so."""
    exact = [file for file in files if file.stem == name]
    found = exact or [file for file in files if file.stem.lower().startswith(name.lower())]
    if len(found) != 1 or not name:
        what = "begins several names" if len(found) > 1 else "is not there"
        raise InputError(f"data set {name!r} {what}; there are {', '.join(f.stem for f in files)}")
    return found[0]
