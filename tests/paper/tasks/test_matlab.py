"""Cell arrays in MATLAB files of both formats, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import io

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import bpest

Matrix = NDArray[np.generic]
WAVES = np.sin(np.arange(60_000.0)).reshape(3, 20_000)


def write_hdf5(path: Path, *matrices: Matrix, name: str = "Part_1") -> None:
    """Matrices as HDF5 holds them: transposed, unless the writer was not MATLAB."""
    with h5py.File(path, "w", userblock_size=512) as file:
        cells = file.create_dataset(name, (1, len(matrices)), h5py.ref_dtype)
        for index, matrix in enumerate(matrices):
            cells[0, index] = file.create_dataset(f"#refs#/r{index}", data=matrix).ref


def write_classic(path: Path, *matrices: Matrix, name: str = "Part_1") -> None:
    cells = np.empty((len(matrices), 1), object)
    cells[:, 0] = matrices
    io.savemat(path, {name: cells})


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "Part_1.mat"


@pytest.mark.parametrize("write", [write_hdf5, write_classic])
def test_channels_come_first_whichever_way_a_matrix_lies(part: Path, write) -> None:
    write(part, WAVES, WAVES.T, WAVES[:2], np.empty((0, 0)), (10 * WAVES).astype(np.int16))

    places, found = zip(*bpest.cells(part), strict=True)

    for cell, expected in zip(found[:3], (WAVES, WAVES, WAVES[:2]), strict=True):
        np.testing.assert_array_equal(cell, expected)
    assert found[3].shape == (3, 0)
    assert found[4].dtype == np.float64
    assert places[4] == f"{part}, record 4"


@pytest.mark.parametrize("write", [write_hdf5, write_classic])
@pytest.mark.parametrize(
    ("matrix", "what"),
    [
        (WAVES[:1], r"float64 of shape \(1, 20000\)"),
        (np.ones((5, 300)), r"float64 of shape \(5, 300\)"),
        (np.ones((3, 4, 5)), r"float64 of shape \(3, 4, 5\)"),
        (np.ones((3, 300), complex), r"complex128 of shape \(3, 300\)"),
    ],
)
def test_other_matrices_are_refused(part: Path, write, matrix: Matrix, what: str) -> None:
    write(part, WAVES, matrix)
    with pytest.raises(InputError, match=f"Part_1.mat, record 1: {what}; accepted: numbers of sha"):
        list(bpest.cells(part))


@pytest.mark.parametrize("write", [write_hdf5, write_classic])
def test_a_variable_of_another_name_is_refused(part: Path, write) -> None:
    write(part, WAVES, name="Part_2")
    with pytest.raises(InputError, match=r"Part_1.mat: no variable 'Part_1'; it has: Part_2"):
        list(bpest.cells(part))


def test_a_variable_that_is_no_cell_array_is_refused(part: Path) -> None:
    complaint = r"Part_1.mat: Part_1 is no cell array of records"
    io.savemat(part, {"Part_1": WAVES})
    with pytest.raises(InputError, match=complaint):
        list(bpest.cells(part))

    for content in (WAVES, None):
        with h5py.File(part, "w") as file:
            if content is None:
                file.create_group("Part_1")
            else:
                file["Part_1"] = content
        with pytest.raises(InputError, match=complaint):
            list(bpest.cells(part))


def test_a_record_that_is_lost_is_named(part: Path) -> None:
    write_hdf5(part, WAVES, WAVES)
    with h5py.File(part, "r+") as file:
        del file["#refs#/r1"]

    cells = bpest.cells(part)

    np.testing.assert_array_equal(next(cells)[1], WAVES)
    with pytest.raises(InputError, match=r"Part_1.mat, record 1: broken HDF5 \(an incomplete copy"):
        next(cells)


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (write_hdf5, r"Part_1.mat: broken HDF5 \(an incomplete copy\?\)"),
        (write_classic, r"Part_1.mat: neither MATLAB 7.3 \(HDF5\) nor a classic MATLAB file"),
    ],
)
def test_an_incomplete_copy_is_refused(part: Path, write, complaint: str) -> None:
    write(part, WAVES, WAVES)
    part.write_bytes(part.read_bytes()[:100_000])
    with pytest.raises(InputError, match=complaint):
        list(bpest.cells(part))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "it is empty"), (b"<html>404</html>" * 20, "")]
)
def test_what_is_no_matlab_file_is_refused(part: Path, content: bytes, reason: str) -> None:
    part.write_bytes(content)
    with pytest.raises(InputError, match=rf"Part_1.mat: neither MATLAB 7.3 .*{reason}"):
        list(bpest.cells(part))
