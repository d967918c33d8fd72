"""Windows of logs as they come: each fault with the windows, or the words, that it gives."""

from __future__ import annotations

import numpy as np
import pytest

import rdeepsense as rds

SENSORS = {"acc": ["ax", "ay"], "gyro": ["gx"]}


def ramp(samples=500, rate=50.0, begin=0.0):
    """A log whose channels are lines in time: interpolation between samples is exact."""
    t = begin + np.arange(samples) / rate
    return {"t": t, "ax": 8 * t, "ay": 1 - 4 * t, "gx": 2 + 0.5 * t}


def lines(w):
    """What the channels of a ramp are at each window's samples."""
    t = w.starts[:, None] + np.arange(w.shape[1]) / w.recipe.rate
    return np.stack([8 * t, 1 - 4 * t, 2 + 0.5 * t], 2)


def cut(table, window="2s", hop="1s", **more):
    return rds.windows(table, "t", SENSORS, window, hop, **more)


def test_a_regular_log_passes_unchanged():
    table = ramp(250)
    w = cut(table)
    assert w.shape == (4, 100, 3)
    assert w.starts.tolist() == [0, 1, 2, 3]
    assert np.allclose(w.ends, w.starts + 1.98)
    signal = np.stack([table[name] for name in ("ax", "ay", "gx")], 1).astype(np.float32)
    for k in range(4):
        assert np.array_equal(w[k], signal[50 * k : 50 * k + 100])
    assert np.array_equal(np.asarray(w), w[[0, 1, 2, 3]])
    assert np.array_equal(w[-1], w.gather(3))
    assert w.report.lost_samples == {}
    assert w.report.lost_windows == {}
    assert w.recipe.rate == 50


def test_a_ramp_is_interpolated_exactly_at_any_rate():
    rng = np.random.default_rng(0)
    table = ramp(1_000, 64.0)
    table["t"] = np.sort(rng.uniform(0, 20, 1_000))
    table |= {"ax": 8 * table["t"], "ay": 1 - 4 * table["t"], "gx": 2 + 0.5 * table["t"]}
    for rate in (20, 50, 64, 97.5):
        w = cut(table, rate=rate, gap=1.0)
        assert w.shape[1] == int(2 * rate)
        assert np.allclose(w[:], lines(w), rtol=2e-7, atol=2e-6)


def test_samples_between_two_are_their_weighted_mean():
    w = rds.windows(
        {"t": [0.0, 1.0, 3.0], "x": [0.0, 4.0, 10.0]}, "t", {"s": "x"}, 4.0, rate=1, gap=9
    )
    assert w[0][:, 0].tolist() == [0, 4, 7, 10]


def test_late_samples_are_sorted_and_reversed_ones_too():
    table, order = ramp(), np.random.default_rng(1).permutation(500)
    shuffled = {name: values[order] for name, values in table.items()}
    turned = {name: values[::-1] for name, values in table.items()}
    whole = cut(table)
    for other in (shuffled, turned):
        w = cut(other)
        assert np.array_equal(w[:], whole[:])
        assert w.report.sorted_samples > 0
        assert "sorted" in str(w.report)
    assert whole.report.sorted_samples == 0


def test_of_a_repeated_time_the_last_sample_counts():
    table = ramp(100)
    again = {name: np.insert(values, 10, values[10]) for name, values in table.items()}
    again["ax"][10] = 1e6  # the earlier of the two
    w = cut(again)
    assert np.array_equal(w[0], cut(table)[0])
    assert list(w.report.lost_samples.values()) == [1]
    assert "repeated time" in str(w.report)


def test_a_gap_ends_a_window_and_the_next_stretch_has_its_own_grid():
    table = ramp(500)
    table["t"][240:] += 1.007  # 4.8 s, then 5.2 s
    w = cut(table)
    assert np.allclose(w.starts, [0, 1, 2, 4.8 + 1.007, 5.8 + 1.007, 6.8 + 1.007, 7.8 + 1.007])
    assert w.report.lost_windows == {"over a gap": 9 - len(w)}  # nine, were it one stretch
    # 0.1 s is the shortest gap: three missing samples at 50 a second are bridged.
    table = ramp(500)
    kept = np.ones(500, bool)
    kept[100:103] = False
    whole, bridged = cut(table), cut({name: v[kept] for name, v in table.items()})
    assert np.allclose(bridged[:], whole[:], atol=1e-5)
    kept[103:106] = False
    assert len(cut({name: v[kept] for name, v in table.items()})) < len(whole)
    assert len(cut({name: v[kept] for name, v in table.items()}, gap="1s")) == len(whole)


def test_a_sensor_that_is_silent_for_a_minute_is_a_gap():
    table = ramp(50 * 180)
    table["gx"][50 * 60 : 50 * 120] = np.nan
    w = cut(table)
    assert w.starts.max() <= 178
    assert not ((w.starts > 58) & (w.starts < 120)).any()
    assert np.isfinite(w[:]).all()
    assert w.report.lost_samples["without a value of gyro"] == 3_000
    table["gx"][:] = np.nan
    with pytest.raises(
        rds.InputError, match=r"no window of 2 s is left.*9,000 samples without a v"
    ):
        cut(table)


def test_sensors_that_take_turns_are_both_heard():
    """A row for each event, the other sensor's columns empty, as phones write them."""
    table = ramp(1_000, 100.0)
    table["ax"][::2] = table["ay"][::2] = np.nan
    table["gx"][1::2] = np.nan
    w = cut(table, rate=50)
    assert len(w) == 8
    assert np.allclose(w[:], lines(w), atol=1e-5)


def turns(table, order):
    """Each sample as two rows of the same time, one of each sensor."""
    rows = np.repeat(np.arange(len(table["t"])), 2)
    found = {name: values[rows] for name, values in table.items()}
    found["gx"][order::2] = np.nan
    found["ax"][1 - order :: 2] = found["ay"][1 - order :: 2] = np.nan
    return found


@pytest.mark.parametrize("order", [0, 1])
def test_sensors_in_rows_of_one_time_are_one_sample(order):
    table, own = ramp(250), turns(ramp(250), order)
    w, whole = cut(own), cut(table)
    assert np.array_equal(w[:], whole[:])
    assert w.starts.tolist() == whole.starts.tolist()
    assert w.recipe == whole.recipe  # the rate is that of the times, not of the rows
    assert w.report.lost_samples == {}
    assert w.report.samples == 500
    assert "note      250 rows are one sample with another of the same time" in str(w.report)
    shuffled = np.random.default_rng(3).permutation(500)
    assert np.array_equal(cut({n: v[shuffled] for n, v in own.items()})[:], whole[:])


def test_of_rows_of_one_time_each_sensor_has_its_last_and_the_truth_its_own():
    nan = np.nan
    table = {
        "t": [0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0],
        "ax": [0.0, 7.0, 1.0, nan, 2.0, 3.0, nan],
        "ay": [0.0, 7.0, 1.0, nan, 2.0, 3.0, 9.0],  # half a sample of acc is none
        "gx": [5.0, 6.0, nan, nan, 7.0, nan, 8.0],
        "heat": [0.0, 1.0, 2.0, nan, 3.0, nan, 4.0],
        "what": ["p", "q", "q", None, "p", "q", None],
    }
    table = {name: np.array(values, object if name == "what" else float)
             for name, values in table.items()}  # fmt: skip
    w = cut(table, window=4, rate=1, gap=2, label="heat", target="mean")
    assert w[0].tolist() == [[0, 0, 5], [1, 1, 6], [2, 2, 7], [3, 3, 8]]
    assert w.y.tolist() == [(0 + 2 + 3 + 4) / 4]
    # The row of 7 is replaced for acc and counts for gyro; the empty row has nothing to lose.
    assert w.report.lost_samples == {"of a repeated time: each sensor's last one counts": 1}
    assert "2 rows are one sample" in str(w.report)
    labelled = cut(table, window=4, rate=1, gap=2, label="what", purity=0.5)
    assert labelled.y.tolist() == ["p"]  # p, q, p, q
    assert labelled.report.lost_windows == {}
    assert cut(table, window=3, hop=1, rate=1, gap=2, label="what").y.tolist() == ["p", "q"]


def test_no_window_reaches_from_one_recording_into_another():
    parts = [ramp(260), ramp(90), ramp(220)]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    table["user"] = np.repeat(["u", "u", "v"], [260, 90, 220])
    table["run"] = np.repeat([1, 2, 1], [260, 90, 220])
    table["ax"] = table["ax"] + 1000 * np.repeat([0, 1, 2], [260, 90, 220])
    w = cut(table, by=["user", "run"])
    assert w.groups["user"].tolist() == ["u"] * 4 + ["v"] * 3
    assert (np.ptp(w[:][..., 0], axis=1) < 100).all()
    assert w.report.lost_samples == {"in stretches shorter than a window": 90}
    with pytest.raises(rds.InputError, match=r"'t'.*name the columns that tell recordings apart"):
        cut(table | {"t": table["t"] % 3})


def test_recordings_that_are_mixed_row_by_row_are_told_apart():
    one, two = ramp(300), ramp(300, begin=7.0)
    table = {name: np.stack([one[name], two[name]], 1).ravel() for name in one}
    table["who"] = np.tile(["a", "b"], 300)
    w = cut(table, by="who")
    assert np.array_equal(w[:5], cut(one)[:])
    assert np.array_equal(w[5:], cut(two)[:])


def test_jitter_moves_samples_not_values():
    table = ramp(2_000)
    t = table["t"] + np.random.default_rng(2).normal(0, 0.004, 2_000)
    table = {"t": t, "ax": 8 * t, "ay": 1 - 4 * t, "gx": 2 + 0.5 * t}
    w = cut(table)
    assert w.recipe.rate == 50
    assert len(w) == 39
    assert np.allclose(w[:], lines(w), atol=1e-4)


def test_another_rate_than_stated_is_said_and_resampled():
    w = cut(ramp(1_000, 100.0), rate=50)
    assert np.allclose(w[:], lines(w), atol=1e-5)
    assert "'t' runs at 100 samples a second; resampled to 50" in str(w.report)
    with pytest.raises(rds.InputError, match=r"rate = 50: the time 't' has 0.05 samples a second"):
        cut(ramp(1_000, 0.05), rate=50)


def test_a_window_that_is_no_whole_number_of_samples_is_trimmed_and_said():
    w = cut(ramp(), window=0.25, hop=0.13, rate=50)
    assert w.shape[1] == 12
    assert "a window of 0.25 s has 12.5 samples at 50 a second; 12 it is" in str(w.report)
    assert "a hop of 0.13 s has 6.5 samples" in str(w.report)


def test_majority_and_its_bound():
    table = ramp(200)  # windows of 100 at 0, 50 and 100
    table["what"] = np.repeat(["b", "a"], [80, 120])
    w = cut(table, label="what")
    assert w.y.tolist() == ["b", "a", "a"]
    assert cut(table, label="what", purity=0.8).y.tolist() == ["b", "a"]
    strict = cut(table, label="what", purity=0.81)
    assert strict.y.tolist() == ["a"]
    assert strict.starts.tolist() == [2]
    assert strict.report.lost_windows == {"of no label that is pure enough": 2}
    assert cut(table, label="what", target="end").y.tolist() == ["a", "a", "a"]


def test_windows_without_any_label_are_dropped():
    table = ramp(200)
    table["what"] = np.array(["b"] * 60 + [None] * 140, object)
    w = cut(table, label="what", purity=0.1)
    assert w.y.tolist() == ["b", "b"]
    assert w.report.lost_windows == {"without a label": 1}


def test_numbers_are_averaged_or_taken_at_the_end():
    table = ramp(200) | {"v": np.arange(200.0), "u": np.arange(200.0) ** 2}
    assert np.allclose(cut(table, label="v", target="mean").y, [49.5, 99.5, 149.5])
    assert np.allclose(cut(table, label="v", target="end").y, [99, 149, 199])
    both = cut(table, label=["v", "u"], target="mean").y
    assert both.shape == (3, 2)
    assert np.isclose(both[0, 1], np.mean(np.arange(100.0) ** 2))
    table["v"][:100] = np.nan
    w = cut(table, label="v", target="mean")
    assert np.allclose(w.y, [124.5, 149.5])  # of those that are known
    assert w.report.lost_windows == {"without a label": 1}


def test_rows_without_a_time_are_lost_and_counted():
    table = ramp(200)
    table["t"][[3, 7]] = np.nan
    w = cut(table)
    assert w.report.lost_samples == {"without a time": 2}
    assert np.allclose(w[:], lines(w), atol=1e-5)


def test_time_that_goes_nowhere():
    with pytest.raises(rds.InputError, match="the time 't' goes nowhere: its 100 samples have one"):
        cut(ramp(100) | {"t": np.ones(100)})


def test_nothing_left_says_why():
    with pytest.raises(rds.InputError, match=r"no window of 60 s is left.*has 9.98 s"):
        cut(ramp(), window="1min")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"window": "soon"}, 'window = .soon. is no duration; accepted: "5s"'),
        ({"hop": -1}, "hop = -1 is no duration"),
        ({"target": "mode"}, "target = 'mode' is unknown; accepted: 'majority'"),
        ({"time_unit": "min"}, "time_unit = 'min' is unknown"),
        ({"purity": 2}, "purity = 2.0 is garbled; it must be a number from 0 to 1"),
        ({"by": "user"}, "by: there is no column 'user'; the table has t, ax, ay, gx"),
        ({"label": "ax"}, "column 'ax' is named twice"),
        ({"rate": "50"}, "rate = '50' is no number"),
        ({"window": 0.01, "rate": 50}, "window = 0.01 s has 0.5 samples at 50 a second"),
    ],
)
def test_bad_arguments_are_named(more, words):
    with pytest.raises(rds.InputError, match=words):
        cut(**({"table": ramp()} | more))


def test_columns_of_other_lengths():
    with pytest.raises(rds.InputError, match="column 'ay' has 3 values, and 't' has 500"):
        cut(ramp() | {"ay": np.zeros(3)})
    with pytest.raises(rds.InputError, match="the table has no rows"):
        cut({name: values[:0] for name, values in ramp().items()})
    with pytest.raises(rds.InputError, match="with steps of 0; say their unit"):
        cut({name: values[:1] for name, values in ramp().items()} | {"t": np.array([3])})


def test_a_night_without_samples_is_no_loss_of_windows():
    table = ramp()
    table["t"][250:] += 8 * 3600
    w = cut(table)
    assert len(w) == 8
    assert w.report.lost_windows == {"over a gap": 1}
    assert w.report.lost_samples == {}


def test_text_where_numbers_are_needed():
    with pytest.raises(rds.InputError, match="column 'ax' holds text; numbers are needed"):
        cut(ramp(3) | {"ax": np.array(["a", "b", "c"])})
    with pytest.raises(rds.InputError, match="sensors = .* is no dictionary"):
        rds.windows(ramp(3), "t", {}, "1s")
