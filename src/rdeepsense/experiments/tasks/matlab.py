"""Records in MATLAB files: a cell array, each cell a matrix of a few channels, many samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import io

from rdeepsense.errors import InputError, require

CHANNELS = (2, 3)  # accepted numbers of them


def cells(path: Path) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each cell's place, in words, and its (channels, samples).

    The cell array has the file's name. MATLAB 7.3 files (HDF5) are read cell by cell, classic ones
    as a whole, since their cells follow one another without an index.
    """
    hdf5 = require("h5py", "tasks")
    read = _hdf5_cells if hdf5.is_hdf5(path) else _classic_cells
    for index, cell in enumerate(read(path)):
        where = f"{path}, record {index}"
        yield where, _upright(cell, where)


def _hdf5_cells(path: Path) -> Iterator[NDArray[Any]]:
    hdf5 = require("h5py", "tasks")
    place = str(path)
    try:
        with hdf5.File(path, "r") as file:
            names = [name for name in file if not name.startswith("#")]
            _refuse_other_names(path, names)
            if not isinstance(file[path.stem], hdf5.Dataset) or (
                file[path.stem].dtype != hdf5.ref_dtype
            ):
                raise InputError(f"{path}: {path.stem} is no cell array of records")
            for index, reference in enumerate(file[path.stem][()].ravel()):
                place = f"{path}, record {index}"
                cell = file[reference]
                # MATLAB stores an empty matrix as its two sizes.
                yield np.empty((0, 0)) if "MATLAB_empty" in cell.attrs else cell[()]
    except InputError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise InputError(f"{place}: broken HDF5 (an incomplete copy?): {error}") from error


def _classic_cells(path: Path) -> Iterator[NDArray[Any]]:
    try:
        names = [name for name, _, _ in io.whosmat(path)]
        content = io.loadmat(path, variable_names=[path.stem])
    except Exception as error:  # on damaged files scipy raises errors of a dozen kinds
        reason = str(error) if path.stat().st_size else "it is empty"
        raise InputError(
            f"{path}: neither MATLAB 7.3 (HDF5) nor a classic MATLAB file: {reason}"
        ) from error
    _refuse_other_names(path, names)
    if content[path.stem].dtype != object:
        raise InputError(f"{path}: {path.stem} is no cell array of records")
    yield from content[path.stem].ravel()


def _refuse_other_names(path: Path, names: list[str]) -> None:
    if path.stem not in names:
        raise InputError(f"{path}: no variable {path.stem!r}; it has: {', '.join(names) or 'none'}")


def _upright(cell: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Return (channels, samples), whichever way the file has it: channels are the short side."""
    if cell.size == 0:
        return np.empty((max(CHANNELS), 0))
    if cell.dtype.kind not in "fiu" or cell.ndim != 2 or min(cell.shape) not in CHANNELS:
        raise InputError(
            f"{where}: {cell.dtype} of shape {cell.shape}; accepted: numbers of shape (3, samples) "
            "or (samples, 3); 2 channels will do"
        )
    return np.asarray(cell if cell.shape[0] <= cell.shape[1] else cell.T, np.float64)
