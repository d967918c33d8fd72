"""The page of a model of windows: events of a phone in, decisions or sentences out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.watched import without_novelty

import rdeepsense as rds
from rdeepsense.networks import DeepSense
from rdeepsense.paper.tasks.hhar import LOG_CHANNELS as CHANNELS
from rdeepsense.paper.tasks.hhar import simulate_log

Page = Callable[..., Path]
START = "Start the sensors"
# Events as a phone sends them, with times of ours; the page's decisions come back.
DISPATCH = """(samples) => {
  const found = [];
  const listen = event => found.push(event.detail);
  document.addEventListener("decision", listen);
  for (const [ms, a, g] of samples) {
    const event = new DeviceMotionEvent("devicemotion", {
      accelerationIncludingGravity: a && { x: a[0], y: a[1], z: a[2] },
      rotationRate: g && { alpha: g[0], beta: g[1], gamma: g[2] }, interval: 16 });
    Object.defineProperty(event, "timeStamp", { value: ms });
    window.dispatchEvent(event);
  }
  document.removeEventListener("decision", listen);
  return found;
}"""
STILL = [0.0, 0.0, 9.8]


def events(seed: int) -> tuple[list[float], np.ndarray[Any, Any]]:
    """A user's walk at 60 a second, with jitter, dropped events and a tab that slept."""
    log = simulate_log([50], 6.0, seed, pause=0.0)
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.normal(1 / 60, 0.002, 1_500))
    times = times[(times < log["t"][-1]) & (rng.random(len(times)) > 0.03)]
    times = times[(times < 9.0) | (times > 12.5)]
    values = np.column_stack([np.interp(times, log["t"], log[name]) for name in CHANNELS])
    return [round(1000 * (2.0 + t), 1) for t in times], values


def test_decisions_are_those_of_the_stream_in_python(
    windows_model: Any, page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("windows", windows_model))
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    times, values = events(3)
    degrees = np.round(values[:, 3:] * 180 / np.pi, 4)
    samples = [[t, a.tolist(), g.tolist()] for t, a, g in
               zip(times, np.round(values[:, :3], 4), degrees, strict=True)]  # fmt: skip
    found = page.evaluate(DISPATCH, samples)
    stream, wanted = rds.Stream(without_novelty(windows_model)), []
    for t, a, g in samples:
        wanted += stream.push(t / 1000, [*a, *(np.array(g) * (np.pi / 180))])
    assert len(found) == len(wanted) > 30
    classes = list(windows_model.classes_)
    begun = 0
    for one, other in zip(found, wanted, strict=True):
        assert one["status"] == int(other.status)
        assert one["start"] == pytest.approx(other.start, abs=2e-6)
        assert one["end"] == pytest.approx(other.end, abs=2e-6)
        if other.status & rds.Status.NOT_ENOUGH_DATA:
            begun += 1
            continue
        np.testing.assert_allclose(one["probs"], other.probs, atol=1e-4)
        assert one["label"] == (-1 if other.label is None else classes.index(other.label))
        assert one["probability"] == pytest.approx(other.probability, abs=1e-3)
    assert begun == 2  # at the start, and after the sleep
    assert "No samples came for 3." in page.inner_text("[data-about=gap]")


SILENCED = "Object.defineProperty(window, 'DeviceMotionEvent', { value: undefined });"
DENIED = "DeviceMotionEvent.requestPermission = async () => 'denied';"
THROWS = "DeviceMotionEvent.requestPermission = async () => { throw new Error('no'); };"
INSECURE = "Object.defineProperty(window, 'isSecureContext', { value: false });"
QUICK = "const was = setTimeout; window.setTimeout = (f, ms) => was(f, ms === 1500 ? 1 : ms);"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (SILENCED, "This browser has no motion sensors: open the page on a phone, or replay"),
        (DENIED, "Motion sensors were not allowed: reload the page and allow them when asked."),
        (THROWS, "Motion sensors were not allowed: reload the page and allow them when asked."),
        (INSECURE, "Browsers give motion sensors to https pages alone, and this one is not: open"),
        (QUICK, "No motion sensor answered: open the page on a phone, allow motion sensors in"),
    ],
)
def test_a_phone_that_gives_nothing_gets_a_sentence(
    before: str, sentence: str, windows_model: Any, page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("windows", windows_model), before=before)
    page.get_by_role("button", name=START).click()
    page.wait_for_selector("[data-about=start]")
    assert page.inner_text("[data-about=start]").startswith(sentence)


def dispatched(page: Any, count: int, value: Callable[[int], list[Any]]) -> None:
    page.evaluate(DISPATCH, [[1000 + 20 * k, *value(k)] for k in range(count)])


def test_stuck_rounded_and_lacking_sensors_get_sentences(
    windows_model: Any, page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("windows", windows_model))
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    dispatched(page, 90, lambda k: [[0.1 * (k % 7), 0.0, 9.8], None])
    assert page.inner_text("[data-about=gyroscope]").startswith("This phone gives no gyroscope")
    assert "rounds accelerations to 0.1" in page.inner_text("[data-about=rounded]")
    assert page.locator("[data-about=stuck]").count() == 0
    page.evaluate(DISPATCH, [[2800 + 20 * k, STILL, [0, 0, 0]] for k in range(120)])
    assert page.locator("[data-about=gyroscope]").count() == 0
    assert page.inner_text("[data-about=stuck]").startswith("The sensor repeats one and the same")
    page.evaluate(DISPATCH, [[5220, [1.23, 0, 9], [1, 0, 0]]])
    assert page.locator("[data-about=stuck]").count() == 0
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.evaluate(DISPATCH, [[9000 + 100 * k, [k, 0, 9.8], [0, 0, 0]] for k in range(40)])
    assert page.inner_text("[data-about=slow]").startswith("Only 10 samples a second come")


def test_signs_are_checked_and_kept(
    windows_model: Any, page_of: Page, opened: Callable[..., Any]
) -> None:
    page = opened(page_of("windows", windows_model))
    check = page.get_by_role("button", name="Check the signs")
    check.click()
    page.wait_for_selector("text=Start the sensors first")
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    for z, sentence in ((-9.8, "The signs were the other way round"), (-9.8, "The signs are right"),
                        (1.0, "The phone does not lie flat")):  # fmt: skip
        page.evaluate(DISPATCH, [[1000, [0, 0, z], [0, 0, 0]]])
        check.click()
        dispatched(page, 40, lambda k, z=z: [[0.01 * k, 0, z], [0, 0, 0]])
        page.wait_for_selector(f"text={sentence}")
    assert page.evaluate("localStorage.getItem('rdeepsense-sign')") == "-1"


FAST = "const was = setInterval; window.setInterval = (f, ms) => was(f, ms === 1000 ? 1 : ms);"


@pytest.mark.slow
def test_a_recording_survives_a_reload_and_is_a_log_that_fit_reads(
    windows_model: Any, page_of: Page, opened: Callable[..., Any], tmp_path: Path
) -> None:
    page = opened(page_of("windows", windows_model), before=FAST)
    page.get_by_role("button", name="walking").click()
    assert "start the sensors first" in page.locator("text=/No samples come/").inner_text()
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.evaluate(DISPATCH, [[1000, STILL, [0, 0, 0]]])
    page.get_by_role("button", name="walking").click()
    page.wait_for_selector("button:enabled:has-text('Pause')")
    # Neither part ends where a window does: times are rounded, by the clock of the day.
    rng = np.random.default_rng(0)
    a = np.round(rng.normal(size=(1_100, 3)), 3)
    sent = [[1020 + 20 * k, a[k].tolist(), [90, 0, 0]] for k in range(1_100)]
    page.evaluate(DISPATCH, sent[:606])
    page.get_by_role("button", name="Pause").click()
    page.evaluate(DISPATCH, sent[606:700])
    page.get_by_role("button", name="Go on").click()
    page.evaluate(DISPATCH, sent[700:])
    page.get_by_role("button", name="Stop recording").click()
    page.wait_for_selector("text=1006 samples of walking are kept")
    page.reload()
    page.wait_for_selector("tbody tr")
    assert page.locator("tbody td").all_inner_texts()[2] == "1006"
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export CSV").click()
    path = tmp_path / "recordings.csv"
    waiting.value.save_as(path)
    import polars as pl

    log = pl.read_csv(path)
    kept = [*range(606), *range(700, 1_100)]
    np.testing.assert_allclose(log["ax"], a[kept, 0], atol=1e-6)
    np.testing.assert_allclose(log["gx"], np.pi / 2, rtol=1e-6)
    np.testing.assert_allclose(np.diff(log["t"])[:599], 0.02, atol=2e-6)
    found = windows_model.windows(log)
    assert len(found) == sum(1 + (n - 120) // 24 for n in (606, 400))  # around the pause
    assert set(log["activity"]) == {"walking"}
    page.get_by_role("button", name="delete the recording of walking").click()
    page.wait_for_selector("tbody tr", state="detached")


# Run before a replay begins, so that no decision comes before anybody listens.
LISTEN = """() => {
  window.decisions = [];
  window.twelve = new Promise(done => document.addEventListener("decision", event => {
    window.decisions.push(event.detail.probs);
    if (window.decisions.length === 12) done(window.decisions);
  }));
}"""


@pytest.mark.slow
def test_a_dropped_recording_is_replayed(
    windows_model: Any, page_of: Page, opened: Callable[..., Any], tmp_path: Path
) -> None:
    page = opened(page_of("windows", windows_model))
    log = simulate_log([60], 3.0, 1, pause=0.0)
    path = tmp_path / "log.csv"
    rows = np.column_stack([log["t"], *(log[name] for name in CHANNELS)])
    np.savetxt(path, rows, delimiter=",", fmt="%.5f", comments="",
               header=",".join(["t", *CHANNELS]))  # fmt: skip
    page.evaluate(LISTEN)
    page.select_option("#speed", "16")
    page.set_input_files("input[type=file]", str(path))
    found = page.evaluate("() => window.twelve")
    stream, wanted = rds.Stream(without_novelty(windows_model)), []
    for row in np.round(rows, 5):
        wanted += stream.push(row[0], row[1:])
    probs = [one.probs for one in wanted if not one.status & rds.Status.NOT_ENOUGH_DATA]
    got = [one for one in found if one[0] is not None and np.isfinite(one[0])]
    np.testing.assert_allclose(got, probs[: len(got)], atol=1e-4)
    (tmp_path / "bad.csv").write_text("t,ax\n0.0,1\n")
    page.set_input_files("input[type=file]", str(tmp_path / "bad.csv"))
    page.wait_for_selector("text=/cannot be played: the table has no column ay, az, gx and 2 more/")


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_recordings_of_one_file_are_replayed_one_after_the_other(
    named: bool,
    windows_model: Any,
    page_of: Page,
    opened: Callable[..., Any],
    tmp_path: Path,
) -> None:
    page = opened(page_of("windows", windows_model))
    columns, parts, wanted = ["t", *CHANNELS], [], []
    for k in range(3):
        log = simulate_log([60 + k], 3.0, k, pause=0.0)
        some = log["t"] < 5.0
        own = np.round(np.column_stack([log[name][some] for name in columns]), 5)
        own[:, 0] -= own[0, 0]  # the clock starts again
        parts.append(np.column_stack([own, np.full(len(own), 7 * k)]))
        stream = rds.Stream(without_novelty(windows_model))
        found = [one for row in own for one in stream.push(row[0], row[1:])]
        wanted += [one.probs for one in found if not one.status & rds.Status.NOT_ENOUGH_DATA]
    rows, header = np.concatenate(parts), [*columns, "recording"]
    if named:
        assert "recording" in windows_model.recipe_.by
        order = np.argsort(rows[:, 0], kind="stable")  # they lie among each other
        rows = rows[order]
    path = tmp_path / "log.csv"
    kept = rows if named else rows[:, :-1]
    names = ",".join(header[: kept.shape[1]])
    np.savetxt(path, kept, delimiter=",", fmt="%.5f", comments="", header=names)
    page.evaluate(LISTEN)
    page.select_option("#speed", "16")
    page.set_input_files("input[type=file]", str(path))
    page.wait_for_selector("text=End of recording")
    got = [one for one in page.evaluate("window.decisions") if np.isfinite(one[0] or np.nan)]
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    said = page.inner_text(".verdict")
    assert "Listening" not in said  # the last answer stays
    last = "recording 14" if named else "recording 3"
    assert page.inner_text("[data-about=recording]").startswith(f"Now playing: {last}")


@pytest.mark.slow
def test_windows_of_numbers_show_the_interval_of_the_stream(
    page_of: Page, opened: Callable[..., Any]
) -> None:
    log = simulate_log([1, 2], 6.0, 0, pause=0.0)
    log["effort"] = np.abs(log["ax"]) + np.abs(log["gx"])
    sensors = {"accelerometer": ["ax", "ay", "az"]}
    cutting: dict[str, Any] = {"window": 2.4, "hop": 0.48, "rate": 50, "target": "mean"}
    w = rds.windows(
        log, time="t", sensors=sensors, by=["user", "recording"], label="effort", **cutting
    )
    network = DeepSense((3,), filters=2, hidden=4, layers=1)
    model = rds.RDeepSenseRegressor(
        network=network, epochs=1, effort="quick", random_state=0, verbose=False, drop_prob=0.1
    ).fit(w, w.y)
    page = opened(page_of("effort", model))
    page.get_by_role("button", name=START).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    samples = [[20.0 * k, [log[f"a{c}"][k] for c in "xyz"], None] for k in range(400)]
    found = page.evaluate(DISPATCH, samples)
    stream, wanted = rds.Stream(without_novelty(model)), []
    for t, a, _ in samples:
        wanted += stream.push(t / 1000, a)
    assert len(found) == len(wanted) > 8
    for one, other in zip(found[1:], wanted[1:], strict=True):
        for name in ("mean", "std", "low", "high"):
            assert one[name] == pytest.approx(getattr(other, name), abs=1e-4 * other.std[0])
    page.wait_for_selector("text=/90 % interval/")
    assert page.locator(".card svg .inside").count() == 1
