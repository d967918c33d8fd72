"""Each fault's effect, exactly, on small arrays; and on the features of the tasks."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import faults, hhar
from rdeepsense.paper.tasks import hhar as simulated_hhar
from rdeepsense.paper.tasks.faults import FAULTS, Sensors, inject

TABLE = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 300.0], [3.0, 30.0, 500.0]], np.float32)
WINDOWS = np.arange(12.0, dtype=np.float32).reshape(2, 3, 2) + 1  # 2 rows, 3 samples, 2 channels


def apply(fault: str, x: np.ndarray, channel: list[int], axes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    return FAULTS[fault](x, np.array(channel), Sensors.of(x, axes), rng)


def test_sensors_are_known_from_healthy_readings() -> None:
    sensors = Sensors.of(TABLE, 3)
    assert sensors.high.tolist() == [3, 30, 500]
    assert sensors.std == pytest.approx(TABLE.std(axis=0))
    assert sensors.partner.tolist() == [1, 2, 0]
    assert Sensors.of(WINDOWS, 2).high.tolist() == [11, 12]
    five = Sensors.of(np.ones((2, 5)), 2)
    assert five.partner.tolist() == [1, 0, 3, 2, 4]
    assert five.channels("swapped").tolist() == [0, 1, 2, 3]
    assert five.channels("stuck").tolist() == [0, 1, 2, 3, 4]


def test_stuck() -> None:
    assert apply("stuck", WINDOWS, [0, 1])[:, :, 0].tolist() == [[1, 1, 1], [7, 9, 11]]
    assert apply("stuck", WINDOWS, [0, 1])[:, :, 1].tolist() == [[2, 4, 6], [8, 8, 8]]
    found = apply("stuck", TABLE, [0, 1, 2])
    off = ~np.eye(3, dtype=bool)
    assert (found[off] == TABLE[off]).all()
    for row in range(3):  # the reading of another row
        assert found[row, row] in np.delete(TABLE[:, row], row)


def test_saturated_and_dropped() -> None:
    assert apply("saturated", TABLE, [0, 1, 2]).tolist() == [
        [3, 10, 100], [2, 30, 300], [3, 30, 500]]  # fmt: skip
    assert apply("saturated", WINDOWS, [1, 0])[:, :, 1].tolist() == [[12, 12, 12], [8, 10, 12]]
    assert apply("dropped", TABLE, [2, 2, 0]).tolist() == [
        [1, 10, 0], [2, 20, 0], [0, 30, 500]]  # fmt: skip
    assert apply("dropped", WINDOWS, [0, 0])[:, :, 0].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_drift() -> None:
    moved = apply("drift", WINDOWS, [0, 1]) - WINDOWS
    std = Sensors.of(WINDOWS, 2).std
    for row, channel in ((0, 0), (1, 1)):
        size = moved[row, :, channel] / (3 * std[channel])
        assert size * np.sign(size[-1]) == pytest.approx([0, 0.5, 1], abs=1e-6)
        assert (moved[row, :, 1 - channel] == 0).all()
    many = np.tile(TABLE, (400, 1))
    moved = (apply("drift", many, [0] * 1_200) - many)[:, 0] / Sensors.of(many, 3).std[0]
    assert np.abs(moved).max() <= 3.001
    assert np.mean(np.abs(moved)) == pytest.approx(1.5, abs=0.1)
    assert np.mean(moved > 0) == pytest.approx(0.5, abs=0.06)


def test_jitter() -> None:
    many = np.tile(WINDOWS, (500, 1, 1))
    added = (apply("jitter", many, [1] * 1_000) - many) / Sensors.of(many, 2).std
    assert (added[:, :, 0] == 0).all()
    assert added[:, :, 1].std() == pytest.approx(1, abs=0.05)
    assert abs(np.corrcoef(added[:, 0, 1], added[:, 1, 1])[0, 1]) < 0.1


def test_swapped() -> None:
    assert apply("swapped", TABLE, [0, 1, 2]).tolist() == [
        [10, 1, 100], [2, 300, 20], [500, 30, 3]]  # fmt: skip
    assert apply("swapped", WINDOWS, [0, 1], 2).tolist() == WINDOWS[:, :, ::-1].tolist()


@pytest.mark.parametrize("fault", FAULTS)
def test_one_channel_of_each_row_fails_by_a_seed(fault: str) -> None:
    x = np.random.default_rng(0).normal(size=(300, 5, 6)).astype(np.float32)
    before, sensors = x.copy(), Sensors.of(x, 3)
    found = inject(fault, x, sensors, seed=1)
    assert (x == before).all()
    changed = (found != x).any(axis=1)
    assert (changed.sum(axis=1) == (2 if fault == "swapped" else 1)).all()
    assert (changed.sum(axis=0) > 20).all()  # every channel fails somewhere
    assert (found == inject(fault, x, sensors, seed=1)).all()
    assert (found != inject(fault, x, sensors, seed=2)).any()


def test_windows_of_spectra_have_these_spectra() -> None:
    X = simulated_hhar.simulate(40, 0).X
    windows = hhar.waveforms(X, seed=3)
    assert windows.shape == (40, 240, 6)
    assert np.abs(hhar.spectra(windows) - X).max() < 2e-3
    assert (hhar.waveforms(X, seed=4) != windows).any()
    with pytest.raises(InputError, match=r"spectra has shape \(2, 7\); accepted: \(rows, 20 inter"):
        hhar.waveforms(np.zeros((2, 7)))


def test_activity_features_follow_from_damaged_windows() -> None:
    X = simulated_hhar.simulate(60, 0).X
    found = dict(faults.damaged("HHAR", X, X, seed=0))
    assert list(found) == list(FAULTS)
    channel = (np.abs(found["dropped"] - X) > 0.01).reshape(60, 20, 6, 7).any(axis=(1, 3))
    assert (channel.sum(axis=1) == 1).all()
    silent = found["dropped"].reshape(60, 20, 6, 7).transpose(0, 2, 1, 3)[channel]
    assert silent[..., 0] == pytest.approx(0)
    assert silent[..., 1:] == pytest.approx(np.log(hhar.QUIET))
    stuck = found["stuck"].reshape(60, 20, 6, 7).transpose(0, 2, 1, 3)[channel]
    assert np.ptp(stuck[..., 0], axis=1).max() < 1e-4


def test_what_can_befall_a_task() -> None:
    waves = np.random.default_rng(0).normal(size=(4, 250)).astype(np.float32)
    found = dict(faults.damaged("BPEst", waves, waves))
    assert list(found) == [fault for fault in FAULTS if fault != "swapped"]  # one channel only
    assert (found["stuck"] == waves[:, :1]).all()
    assert (found["dropped"] == 0).all()
    trips = np.arange(10.0).reshape(2, 5)
    swapped = dict(faults.damaged("NYCommute", trips, trips))["swapped"]
    assert (swapped[:, 4] == trips[:, 4]).all()
    assert {tuple(row) for row in np.sort(swapped, axis=1)} == {tuple(row) for row in trips}


def test_refusals() -> None:
    sensors = Sensors.of(TABLE, 1)
    with pytest.raises(InputError, match="fault 'rust' is unknown; accepted: stuck, saturated"):
        inject("rust", TABLE, sensors)
    with pytest.raises(InputError, match="no channel can be swapped"):
        inject("swapped", TABLE, sensors)
    with pytest.raises(InputError, match="readings of 2 channels, sensors of 3"):
        inject("stuck", TABLE[:, :2], sensors)
    with pytest.raises(InputError, match=r"readings have shape \(3,\)"):
        inject("stuck", TABLE[0], sensors)
    with pytest.raises(InputError, match="axes = 0"):
        Sensors.of(TABLE, 0)
