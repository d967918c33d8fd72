"""The blood pressure loader, on small files written as the published ones are."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import io

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import bpest

Waves = NDArray[np.float64]


def record(windows: int, extra: int = 0, seed: int = 0) -> Waves:
    """(3, samples): PPG, ABP, ECG of some windows and a rest."""
    samples = 250 * windows + extra
    beat = np.sin(2 * np.pi * np.arange(samples) / 100)
    noise = np.random.default_rng(seed).normal(size=(3, samples))
    return np.array([1.5 + beat, 90 + 30 * beat, 0.3 * beat]) + 0.01 * noise


def write_hdf5(path: Path, records: list[Waves], name: str | None = None) -> None:
    """As MATLAB 7.3 does: 512 bytes of its own, a cell array of references, matrices transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        cells = file.create_dataset(name or path.stem, (len(records), 1), h5py.ref_dtype)
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        for index, waves in enumerate(records):
            if waves.size:
                cell = file.create_dataset(f"#refs#/r{index}", data=waves.T)
            else:
                sizes = np.array(waves.shape, np.uint64)
                cell = file.create_dataset(f"#refs#/r{index}", data=sizes)
                cell.attrs["MATLAB_empty"] = np.uint8(1)
            cells[index, 0] = cell.ref
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: PCWIN64".ljust(116))


def write_classic(path: Path, records: list[Waves]) -> None:
    cells = np.empty((1, len(records)), object)
    cells[0, :] = records
    io.savemat(path, {path.stem: cells}, do_compression=True)


def write_csv(path: Path, waves: Waves, header: str = "ECG,Systolic,Diastolic") -> None:
    lines = [",".join(map(str, row)) for row in waves.T]
    path.write_text("\n".join([header, *lines] if header else lines) + "\n")


@pytest.mark.parametrize("write", [write_hdf5, write_classic])
def test_the_published_file_in_both_formats(tmp_path: Path, write) -> None:
    records = [record(3, extra=17), record(2, seed=1), record(0, extra=100)]
    write(tmp_path / "Part_1.mat", records)

    task = bpest.load(tmp_path)

    assert task.X.shape == task.y.shape == (5, 250)
    assert task.X.dtype == task.y.dtype == np.float32
    np.testing.assert_array_equal(task.X[1], records[0][0, 250:500].astype(np.float32))
    np.testing.assert_array_equal(task.y[4], records[1][1, 250:500].astype(np.float32))
    np.testing.assert_array_equal(task.groups, [0, 0, 0, 1, 1])
    assert (task.grouped_by, task.split_by, task.unit) == ("record", "rows", "mmHg")
    assert (task.features[249], task.targets[0], len(task.targets)) == ("ppg_249", "abp_0", 250)
    assert "Part_1.mat: 3 records, 0 windows dropped" in task.source
    assert not task.simulated


def test_records_are_numbered_through_the_parts(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "Part_2.mat", [record(1), record(1, seed=1)])
    write_classic(tmp_path / "Part_4.mat", [record(2, seed=2)])

    task = bpest.load(tmp_path)

    np.testing.assert_array_equal(task.groups, [0, 1, 2, 2])
    assert "Part_2.mat, Part_4.mat: 3 records" in task.source


def test_an_empty_cell_is_a_record_without_windows(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "Part_1.mat", [np.empty((0, 0)), record(1)])

    np.testing.assert_array_equal(bpest.load(tmp_path).groups, [1])


def test_damaged_windows_are_dropped_and_counted(tmp_path: Path) -> None:
    waves = record(7)
    waves[0, 250] = np.nan  # window 1
    waves[0, 500:750] = 1.0  # 2: the PPG's flat line
    waves[1, 750:1000] = 80.0  # 3: the pressure's
    waves[1, 1249] = 301.0  # 4
    waves[1, 1250] = 19.9  # 5
    waves[2] = np.nan  # the ECG is not used
    write_hdf5(tmp_path / "Part_1.mat", [waves])

    task = bpest.load(tmp_path)

    np.testing.assert_array_equal(task.X, waves[0].reshape(7, 250)[[0, 6]].astype(np.float32))
    assert "5 windows dropped (NaN, flat line, or ABP outside 20 to 300 mmHg)" in task.source
    found = bpest.windows(waves[0], waves[1])
    np.testing.assert_array_equal(found.kept, [0, 6])
    np.testing.assert_array_equal(found.abp, task.y)


def test_the_limits_of_the_pressure_are_themselves_possible() -> None:
    found = bpest.windows([1, 2, 3, 4], [20, 300, 20.01, 300.1], length=2)

    np.testing.assert_array_equal(found.kept, [0])


def test_at_most_so_many_windows_of_a_record_evenly_spaced(tmp_path: Path) -> None:
    waves = record(12)
    waves[1, 0] = np.nan  # leaves windows 1 to 11, of which the middles of three thirds are chosen
    write_hdf5(tmp_path / "Part_1.mat", [waves, record(2, seed=1)])

    task = bpest.load(tmp_path, per_record=3)

    np.testing.assert_array_equal(task.groups, [0, 0, 0, 1, 1])
    expected = waves[0].reshape(12, 250)[[2, 6, 10]]
    np.testing.assert_array_equal(task.X[:3], expected.astype(np.float32))


@pytest.mark.parametrize("header", ["ECG,Systolic,Diastolic", ""])
def test_csv_exports_go_by_position_whatever_the_header(tmp_path: Path, header: str) -> None:
    write_csv(tmp_path / "patient_10.csv", record(1), header)
    write_csv(tmp_path / "patient_9.csv", record(2, seed=1), header)

    task = bpest.load(tmp_path)

    np.testing.assert_array_equal(task.groups, [9, 9, 10])
    np.testing.assert_array_equal(task.X[2], record(1)[0].astype(np.float32))
    np.testing.assert_array_equal(task.y[2], record(1)[1].astype(np.float32))
    assert "2 CSV files: 2 records" in task.source


def test_csv_files_without_numbers_are_numbered_by_name(tmp_path: Path) -> None:
    for name in ("smith", "jones"):
        write_csv(tmp_path / f"{name}.csv", record(1))

    np.testing.assert_array_equal(bpest.load(tmp_path).groups, [0, 1])


def test_a_missing_csv_value_costs_its_window_only(tmp_path: Path) -> None:
    waves = record(3).astype(str)
    waves[1, 300] = ""
    waves[0, 600] = "NaN"
    lines = [",".join(row) for row in waves.T]
    (tmp_path / "p1.csv").write_text("\n".join(["a,b,c", *lines]) + "\n\n")

    task = bpest.load(tmp_path)

    assert len(task.X) == 1
    assert "2 windows dropped" in task.source


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1.2,", r"p1.csv, line 42: 2 fields, not 3: '1.2,'"),
        ("1.2,80,0.1,1.3,81,0.2", r"p1.csv, line 42: 6 fields, not 3"),
        ("1.2,8O,0.1", r"p1.csv, line 42: ABP = '8O' is no number"),
    ],
)
def test_a_broken_csv_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    write_csv(tmp_path / "p1.csv", record(1), "PPG,ABP,ECG")
    lines = (tmp_path / "p1.csv").read_text().splitlines()
    lines[41] = line
    (tmp_path / "p1.csv").write_text("\n".join(lines))

    with pytest.raises(InputError, match=complaint):
        bpest.load(tmp_path)


def test_columns_in_another_order_are_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "p1.csv", record(1)[[1, 0, 2]])
    with pytest.raises(
        InputError, match=r"p1.csv: the columns cannot be told apart: .* PPG is 9\d.*accepted: PPG"
    ):
        bpest.load(tmp_path)

    write_csv(tmp_path / "p1.csv", record(1)[[0, 2, 1]])
    with pytest.raises(InputError, match=r"cannot be told apart: .* should be ABP is"):
        bpest.load(tmp_path)


def test_a_dead_sensor_does_not_look_like_another_column(tmp_path: Path) -> None:
    dead = record(2)
    dead[1] = 0.0
    write_csv(tmp_path / "p1.csv", dead)
    write_csv(tmp_path / "p2.csv", record(1))

    np.testing.assert_array_equal(bpest.load(tmp_path).groups, [2])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("", "p1.csv: no first line"), ("ppg\n1.0\n", "p1.csv: 1 column; accepted: the columns PPG")],
)
def test_a_csv_without_two_columns_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "p1.csv").write_text(content)
    with pytest.raises(InputError, match=complaint):
        bpest.load(tmp_path)


def test_nothing_to_read_and_nothing_usable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of Part_1.mat, .*, Part_4.mat and no \*.csv"):
        bpest.load(tmp_path)

    write_hdf5(tmp_path / "Part_1.mat", [record(0, extra=249)])
    with pytest.raises(InputError, match=r"no usable rows in UCI .* 1 records, 0 windows dropped"):
        bpest.load(tmp_path)

    write_hdf5(tmp_path / "Part_1.mat", [])
    with pytest.raises(InputError, match=r"Part_1.mat has no record"):
        bpest.load(tmp_path)


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="per_record = 0"):
        bpest.load(tmp_path, per_record=0)
    with pytest.raises(InputError, match=r"ppg has shape \(3,\) and abp \(4,\)"):
        bpest.windows(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="length = 1"):
        bpest.windows(np.zeros(3), np.zeros(3), length=1)


def test_real_waves_survive_the_cut(data_dir: Path) -> None:
    rows = 500
    waves = pl.read_parquet(data_dir / "bpest" / "waves.parquet", n_rows=rows * 250)
    gains = pl.read_parquet(data_dir / "bpest" / "windows.parquet", n_rows=rows)["abp_gain"]
    ppg, abp = (
        np.cumsum(waves[name].to_numpy().reshape(rows, 250), axis=1, dtype=np.int32)
        for name in ("ppg_diff", "abp_diff")
    )

    found = bpest.windows((ppg / 1023).ravel(), (abp * gains.to_numpy()[:, None]).ravel())

    assert len(found.kept) > 0.99 * rows
    assert 50 <= found.abp.min() < found.abp.max() <= 200
    assert 0 <= found.ppg.min() < found.ppg.max() <= 5
