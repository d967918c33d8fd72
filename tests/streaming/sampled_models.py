"""Small models of windows, logs with every fault, and the C stream run on them."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from deploy.c_models import STRICT, run_cc
from numpy.typing import NDArray

import rdeepsense as rds

RATE, SAMPLES, HOP, INTERVAL = 20, 40, 10, 5
SENSORS = {"accelerometer": ["ax", "ay", "az"], "gyroscope": ["gx", "gy"]}
CHANNELS = [name for own in SENSORS.values() for name in own]
NUMBERS = 4  # probabilities of three classes and of the label; or mean, std, low, high
DRIVER = Path(__file__).parent / "driver.c"
SHAKES = {"rest": (0.4, 0.2), "walk": (1.5, 1.5), "run": (3.0, 3.0)}


def shaken(rng: np.random.Generator, t: Any, activity: str) -> NDArray[Any]:
    """What the sensors say of an activity."""
    cadence, strength = SHAKES[activity]
    phase = 2 * np.pi * cadence * t + rng.uniform(0, 6)
    clean = [9.8 + strength * np.cos(phase), strength * np.sin(phase), 0 * t]
    clean += [0.3 * strength * np.cos(phase + 1), 0.1 * strength * np.sin(phase)]
    return np.stack(clean, 1) + 0.8 * rng.normal(size=(len(t), 5)) * [1, 1, 1, 0.3, 0.1]


@functools.cache
def windows(target: str = "majority") -> rds.Windows:
    """Twelve recordings of half a minute, of one activity each."""
    rng, t = np.random.default_rng(0), np.arange(30 * RATE) / RATE
    parts = []
    for recording in range(12):
        activity = list(SHAKES)[recording % 3]
        columns = dict(zip(CHANNELS, shaken(rng, t, activity).T, strict=True))
        label = np.full(len(t), activity if target == "majority" else SHAKES[activity][0])
        parts.append({"t": t, **columns, "recording": np.full(len(t), recording), "what": label})
    log = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return rds.windows(
        log, "t", SENSORS, SAMPLES / RATE, HOP / RATE, rate=RATE, by="recording", label="what",
        target=target,
    )  # fmt: skip


@functools.cache
def model(kind: str) -> Any:
    """A fitted classifier or regressor."""
    fit = {"random_state": 0, "verbose": False, "effort": "quick", "device": "cpu"}
    network = rds.networks.DeepSense((3, 2), INTERVAL, filters=4, hidden=8)
    if kind == "numbers":
        cut = windows("mean")
        return rds.RDeepSenseRegressor(network=network, epochs=1, **fit).fit(cut, cut.y)
    cut = windows()
    return rds.RDeepSenseClassifier(network=network, epochs=8, **fit).fit(cut, cut.y)


def untidy(seed: int, n: int = 600) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """A log with some of all faults, in whole microseconds and float32."""
    rng = np.random.default_rng(seed)
    pace = rng.choice([0.4, 1.0, 1.0, 1.9])  # the rate may be another one than the model's
    period = pace * 1e6 / RATE
    times = np.round(period * np.arange(n)).astype(np.int64)
    if rng.random() < 0.6:
        times += rng.normal(0, 0.2 * period, n).astype(np.int64)  # some are reversed
    for _ in range(rng.integers(4)):  # gaps
        times[int(rng.integers(n)) :] += int(rng.integers(1e5, 3e6))
    t = times / 1e6
    activities = [list(SHAKES)[k] for k in rng.integers(3, size=4)]
    parts = np.array_split(t, 4)
    values = np.concatenate(
        [shaken(rng, part, one) for part, one in zip(parts, activities, strict=True)]
    )
    silent = rng.random(values.shape) < rng.choice([0, 0.01])
    values[silent] = np.nan
    if rng.random() < 0.4:  # a sensor is missing for a while
        at = int(rng.integers(n))
        values[at : at + int(rng.integers(n // 3)), 3:] = np.nan
    if rng.random() < 0.3:  # sensors in rows of their own
        mine = rng.random(n) < 0.5
        values[mine, :3], values[~mine, 3:] = np.nan, np.nan
    if rng.random() < 0.5:  # duplicates
        at = rng.integers(1, n, size=20)
        times[at] = times[at - 1]
    if rng.random() < 0.2:  # the clock is set back
        times[int(rng.integers(n)) :] -= 20_000_000
    if rng.random() < 0.3:
        values[rng.integers(n, size=3), rng.integers(5, size=3)] = rng.choice([np.inf, 3e38, -1e3])
    with np.errstate(over="ignore"):
        return times + 1_700_000_000_000_000, values.astype(np.float32)


def compiled(folder: Path, cc: str, kind: str, *flags: str) -> Path:
    """The C stream of an export as a program that reads a log."""
    program = folder / f"{cc}{''.join(flags)}"
    if not program.exists():
        own = [f"-I{folder}", DRIVER, "model.c", "weights.c", "-o", program]
        run_cc(folder, cc, *STRICT, *flags, f"-DCLASSES={int(kind != 'numbers')}", *own)
    return program


def run(program: Path, times: Any, values: Any, samples: int = SAMPLES) -> tuple[Any, list[int]]:
    """All decisions, and how many samples were late, repeated, and windows lost."""
    rows = np.zeros(len(times), [("time", "<i8"), ("values", "<f4", values.shape[1])])
    rows["time"], rows["values"] = times, values
    done = subprocess.run([program], input=rows.tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:3000]
    found = np.frombuffer(
        done.stdout[:-12],
        [("start", "<i8"), ("end", "<i8"), ("status", "<i4"), ("label", "<i4"),
         ("numbers", "<f4", NUMBERS), ("points", "<f4", (samples, values.shape[1]))],
    )  # fmt: skip
    return found, np.frombuffer(done.stdout[-12:], "<u4").tolist()
