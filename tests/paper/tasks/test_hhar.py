"""The activity loader, on small files written as the published ones are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import hhar

HEADER = "Index,Arrival_Time,Creation_Time,x,y,z,User,Model,Device,gt"
EPOCH = 1_424_696_633_908  # ms, the first arrival in the published files
Signal = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def wave(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Three axes that follow from the time: a line, gravity, a slow swing."""
    return np.stack([seconds, np.full_like(seconds, -9.81), np.sin(seconds)], axis=1)


def recording(
    seconds: NDArray[np.float64],
    gt: str = "walk",
    user: str = "a",
    device: str = "nexus4_1",
    clock: int = 0,
    signal: Signal = wave,
) -> list[str]:
    """Lines of one sensor: sampled at these times, stamped by a device whose clock began so."""
    rows = zip(seconds, signal(seconds), strict=True)
    return [
        f"{index},{EPOCH + round(1e3 * s)},{clock + round(1e9 * s)},{x!r},{y!r},{z!r},"
        f"{user},{device.split('_')[0]},{device},{gt}"
        for index, (s, (x, y, z)) in enumerate((s, row.tolist()) for s, row in rows)
    ]


def uneven(start: float, stop: float, rate: float, seed: int = 0) -> NDArray[np.float64]:
    """Times with the jitter of real devices, at whole milliseconds."""
    count = int((stop - start) * rate)
    jitter = np.random.default_rng(seed).uniform(-0.3, 0.3, count) / rate
    times = start + np.arange(count) / rate + jitter
    return np.unique(times.round(3))


def write(path: Path, *lines: str, header: str = HEADER) -> None:
    path.write_text("\n".join([header, *lines]) + "\n")


def write_pair(folder: Path, acc: list[str], gyro: list[str], on: str = "Phones") -> None:
    write(folder / f"{on}_accelerometer.csv", *acc)
    write(folder / f"{on}_gyroscope.csv", *gyro)


def means(task: hhar.Task) -> NDArray[np.float32]:
    """(rows, intervals, channels): the terms of frequency zero."""
    return task.X.reshape(-1, 20, 6, 7)[..., 0]


def test_two_sensors_of_different_rates_and_clocks_meet_on_one_grid(tmp_path: Path) -> None:
    # 31 ms after the accelerometer the gyroscope starts, on a clock of its own.
    acc = recording(uneven(0, 11, 180), clock=27_920_678_471_000)
    gyro = recording(uneven(0.031, 11, 97, seed=1), clock=5)
    write_pair(tmp_path, acc, gyro)

    task = hhar.load(tmp_path)

    assert task.X.shape == (2, 840)
    assert task.X.dtype == np.float32
    found = means(task)
    # The first axis is the time itself: equal on both sensors, 0.24 s further each interval.
    np.testing.assert_allclose(found[:, :, 3], found[:, :, 0], atol=2e-3)
    np.testing.assert_allclose(np.diff(found[:, :, 0].ravel()), 0.24, atol=2e-3)
    assert 0.11 < found[0, 0, 0] < 0.2
    np.testing.assert_allclose(found[:, :, 1], -9.81, atol=1e-5)
    np.testing.assert_array_equal(task.y, [3, 3])
    assert task.classes[3] == "walking"
    assert (task.grouped_by, task.split_by, task.kind) == ("user", "groups", "classification")


def test_classes_users_and_both_kinds_of_device(tmp_path: Path) -> None:
    words = ["bike", "sit", "stand", "walk", "stairsup", "stairsdown"]
    times = uneven(0, 5.5, 60)
    phones = [r for i, gt in enumerate(words) for r in recording(times + 20 * i, gt, user="g")]
    watch = recording(times, "sit", user="b", device="gear_1")
    write_pair(tmp_path, phones, phones)
    write_pair(tmp_path, watch, watch, on="Watch")

    task = hhar.load(tmp_path)

    assert sorted(zip(task.groups, task.y, strict=True)) == [(0, 1)] + [(1, c) for c in range(6)]
    assert task.classes == (
        "biking",
        "sitting",
        "standing",
        "walking",
        "stairs up",
        "stairs down",
    )
    assert "Watch_gyroscope.csv: 2 users" in task.source


def test_order_of_lines_and_samples_sent_twice_change_nothing(tmp_path: Path) -> None:
    acc, gyro = recording(uneven(0, 11, 100)), recording(uneven(0, 11, 100, seed=1))
    write_pair(tmp_path, acc, gyro)
    before = hhar.load(tmp_path)

    shuffled = np.random.default_rng(0).permutation(acc + acc[:50]).tolist()
    write_pair(tmp_path, shuffled, gyro)

    np.testing.assert_array_equal(hhar.load(tmp_path).X, before.X)


def test_windows_do_not_cross_gaps_labels_users_or_devices(tmp_path: Path) -> None:
    long, short = uneven(0, 5.5, 60), uneven(0, 4, 60)
    lines = [
        *recording(long),
        *recording(short + 7.2),  # after a gap of 1.7 s: too short
        *recording(short + 20, "sit"),
        *recording(short + 24, "stand"),  # another activity at once
        *recording(short + 28, "stand", user="b"),  # another user, another device at once
        *recording(short + 32, "stand", user="b", device="nexus4_2"),
        *recording(long + 60, "null"),
    ]
    write_pair(tmp_path, lines, lines)

    task = hhar.load(tmp_path)

    np.testing.assert_array_equal(task.y, [3])
    np.testing.assert_array_equal(task.groups, [0])


def test_a_gap_of_one_sensor_is_a_gap(tmp_path: Path) -> None:
    gyro = recording(np.concatenate([uneven(0, 4, 60), uneven(5.5, 9.5, 60)]))
    write_pair(tmp_path, recording(uneven(0, 9.5, 60)), gyro)

    with pytest.raises(
        InputError, match=r"no user, device and activity has both sensors for 4.8 s"
    ):
        hhar.load(tmp_path)


def test_a_clock_that_stood_still_while_the_device_slept_hides_no_gap(tmp_path: Path) -> None:
    slept = 30.0
    lines = recording(uneven(0, 4, 60))
    lines += recording(slept + uneven(4, 8, 60), clock=-round(1e9 * slept))
    write_pair(tmp_path, lines, lines)

    with pytest.raises(InputError, match="no user, device and activity has both sensors"):
        hhar.load(tmp_path)


@pytest.mark.parametrize("jump", [-30_000_000_000, 30_000_000_000])
def test_a_clock_that_is_set_starts_another_stretch(tmp_path: Path, jump: int) -> None:
    whole = uneven(0, 10.2, 60)
    late = recording(whole[whole >= 5.1], clock=jump)
    lines = recording(whole[whole < 5.1]) + late
    write_pair(tmp_path, lines, lines)

    found = means(hhar.load(tmp_path))[:, :, 0]

    # Two windows, each on one side of the jump, and both where they belong in time.
    assert found.shape == (2, 20)
    assert found[0, -1] < 5.0 < 5.1 < found[1, 0]
    np.testing.assert_allclose(np.diff(found, axis=1), 0.24, atol=2e-3)


def test_samples_with_missing_values_are_dropped_and_counted(tmp_path: Path) -> None:
    times = uneven(0, 6, 100)
    acc = recording(times)
    for index, value in ((100, ""), (101, "NaN"), (102, "inf")):
        parts = acc[index].split(",")
        parts[4] = value
        acc[index] = ",".join(parts)
    write_pair(tmp_path, acc, recording(times))

    task = hhar.load(tmp_path)

    assert np.isfinite(task.X).all()
    assert task.source.endswith("3 samples with missing values dropped")
    np.testing.assert_allclose(means(task)[:, :, 1], -9.81, atol=1e-5)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        (1, "14246966.5", "Arrival_Time = '14246966.5' is no whole number"),
        (2, "", "Creation_Time = '' is no whole number"),
        (3, "0.1-0.2", "x = '0.1-0.2' is no number"),
        (6, "", "User = nothing"),
        (9, "wlak", "gt = 'wlak'; accepted: bike, sit, stand, walk, stairsup, stairsdown, null"),
        (9, "", "gt = ''; accepted: bike"),
        (9, "walk43,1424", "11 fields, not 10"),
        (9, "w\udcffk", "gt = 'w.k'; accepted: bike"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, field: int, value: str, complaint: str) -> None:
    lines = recording(uneven(0, 6, 60))
    write_pair(tmp_path, lines, lines)
    parts = lines[40].split(",")
    parts[field] = value
    lines[40] = ",".join(parts)
    content = "\n".join([HEADER, *lines]).encode(errors="surrogateescape")
    (tmp_path / "Phones_gyroscope.csv").write_bytes(content)

    with pytest.raises(InputError, match=rf"Phones_gyroscope.csv, line 42: {complaint}"):
        hhar.load(tmp_path)


def test_an_incomplete_download_and_blank_lines(tmp_path: Path) -> None:
    lines = recording(uneven(0, 6, 60))
    write_pair(tmp_path, [*lines, "", ""], lines)
    assert len(hhar.load(tmp_path).X) == 1

    write_pair(tmp_path, [*lines, lines[-1][:20]], lines)
    with pytest.raises(
        InputError, match=rf"Phones_accelerometer.csv, line {len(lines) + 2}: 3 fields, not 10"
    ):
        hhar.load(tmp_path)


def test_missing_columns_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of Phones_accelerometer.csv, .*, Watch_gyroscope.csv is there"
    ):
        hhar.load(tmp_path)

    write(tmp_path / "Watch_accelerometer.csv", *recording(uneven(0, 6, 60)))
    with pytest.raises(InputError, match=r"Watch_gyroscope.csv: there is no such file; both"):
        hhar.load(tmp_path)

    write(tmp_path / "Watch_gyroscope.csv", header="Index,Arrival_Time,x,y,z,User,Model,Device")
    with pytest.raises(
        InputError, match=r"line 1: no column Creation_Time, gt; it has: Index, Arr"
    ):
        hhar.load(tmp_path)

    (tmp_path / "Watch_gyroscope.csv").write_text("")
    with pytest.raises(InputError, match=r"gyroscope.csv, line 1: no column .*; it has: nothing"):
        hhar.load(tmp_path)

    write(tmp_path / "Watch_gyroscope.csv")
    with pytest.raises(InputError, match=r"Watch_gyroscope.csv: no sample with x, y, z and"):
        hhar.load(tmp_path)


def test_spectra_of_a_known_signal() -> None:
    t = np.arange(240)
    signal = np.zeros((240, 6))
    signal[:, 0] = -9.81
    signal[:, 1] = 3 * np.cos(2 * np.pi * 2 * t / 12)  # two turns an interval
    signal[:, 5] = np.where(t % 2, -1, 1)  # the highest frequency there is

    response = hhar.spectra(hhar.windows(signal))

    expected = np.full((20, 6, 7), np.log(0.001))
    expected[:, :, 0] = 0
    expected[:, 0, 0] = -9.81
    expected[:, 1, 2] = np.log(1.501)
    expected[:, 5, 6] = np.log(1.001)
    np.testing.assert_allclose(response, expected.reshape(1, 840), atol=2e-3)
    names = hhar.spectra_names()
    assert len(set(names)) == 840
    assert [names[i] for i in (0, 9, 839)] == [
        "00_acc_x_0.0Hz",
        "00_acc_y_8.3Hz",
        "19_gyro_z_25.0Hz",
    ]


def test_windows_are_whole_and_spectra_refuse_other_shapes() -> None:
    cut = hhar.windows(np.arange(14).reshape(7, 2), length=3)
    np.testing.assert_array_equal(cut, np.arange(12).reshape(2, 3, 2))
    assert hhar.windows(np.zeros((239, 6))).shape == (0, 240, 6)
    assert hhar.spectra(np.zeros((0, 240, 6))).shape == (0, 840)
    with pytest.raises(InputError, match=r"signal has shape \(5,\)"):
        hhar.windows(np.zeros(5))
    with pytest.raises(InputError, match=r"shape \(1, 241, 6\).* multiple of intervals = 20"):
        hhar.spectra(np.zeros((1, 241, 6)))


def test_real_motion_keeps_the_sign_of_gravity(data_dir: Path) -> None:
    frame = pl.read_parquet(data_dir / "har" / "hapt.parquet").filter(pl.col("user") <= 3)
    columns = ["ax", "ay", "az", "gx", "gy", "gz"]
    scale = np.array([1 / 720] * 3 + [0.000305433] * 3)
    rows, labels = [], []
    for segment in frame.partition_by("user", "experiment", "segment"):
        found = hhar.spectra(hhar.windows(segment.select(columns).to_numpy() * scale))
        rows.append(found)
        labels += [segment["label"][0]] * len(found)
    X = np.concatenate(rows)

    assert X.shape == (len(labels), 840)
    assert np.isfinite(X).all()
    gravity = X.reshape(-1, 20, 6, 7)[:, :, :3, 0].mean(axis=1)
    np.testing.assert_allclose(np.linalg.norm(gravity, axis=1), 1, atol=0.15)
    assert (gravity.min(axis=0) < -0.1).any()  # magnitudes would all be positive
