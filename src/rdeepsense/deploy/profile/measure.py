"""Time and energy of one prediction: devices, counters, repeated measurements."""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import nn

from rdeepsense import _torch
from rdeepsense._torch import torch_threads
from rdeepsense.deploy.folded.model import SINE_TERMS
from rdeepsense.dropout import convert
from rdeepsense.errors import InputError
from rdeepsense.heads import head_named
from rdeepsense.networks import Architecture, Dense, Periodic
from rdeepsense.networks.base import built

# --------------------------------------------------------------------------------------------------
# The interface of a form that can be measured
# --------------------------------------------------------------------------------------------------

Seconds = Callable[[int], NDArray[np.float64]]

# What a process that runs one prediction reads of itself at its end.
_PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@dataclass(frozen=True)
class ProfileCandidate:
    """A form of the model; `seconds(n)` runs n predictions and gives the time of each."""

    name: str
    what: str
    seconds: Seconds
    weight_bytes: int
    multiply_adds: int
    instructions: Callable[[], int | None] = lambda: None
    peak_bytes: Callable[[], int | None] = lambda: None
    off_by: float | None = None  # how far its mean is from the folded model's, in stds


@dataclass(frozen=True)
class Missing:
    """A form that cannot run here, and why."""

    name: str
    reason: str

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "available": False, "reason": self.reason}


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Seconds:
    """Time each call from Python."""

    def seconds(count: int) -> NDArray[np.float64]:
        times = np.empty(count)
        for k in range(count):
            begin = clock()
            call()
            times[k] = clock() - begin
        return times

    return seconds


def peak_of_python(script: str, *arguments: object) -> int | None:
    """Measure peak memory of a Python process that runs a script; None where /proc is not there."""
    command = [sys.executable, "-c", f"{script}{_PEAK}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return 1024 * int(done.stdout) if done.returncode == 0 else None


# --------------------------------------------------------------------------------------------------
# Energy meters in Linux's /sys; `find` returns the best one available
#
# A counter (RAPL) is read before and after. A power sensor (INA chips, a battery that is being
# emptied) is sampled while the work runs, and its mean multiplied by the time. Both see everything
# that runs on the machine.
# --------------------------------------------------------------------------------------------------

SYSFS = Path("/sys")
INTERVAL = 0.02  # seconds between two samples of a power sensor


class Meter(Protocol):
    """Something that knows what a piece of work cost."""

    @property
    def name(self) -> str:
        """What is read, in words."""

    def joules(self, work: Callable[[], None]) -> float:
        """Run the work and give the energy used meanwhile."""


@dataclass(frozen=True)
class Rapl:
    """The energy counters of the processor packages; each starts again from 0 at its range."""

    zones: tuple[Path, ...]
    name: str = "RAPL counters of the processor packages (Linux powercap)"

    def joules(self, work: Callable[[], None]) -> float:
        before = [_number(zone / "energy_uj") for zone in self.zones]
        work()
        after = [_number(zone / "energy_uj") for zone in self.zones]
        ranges = [_number(zone / "max_energy_range_uj") for zone in self.zones]
        used = zip(before, after, ranges, strict=True)
        return sum(a - b if a >= b else a - b + full for b, a, full in used) / 1e6


@dataclass(frozen=True)
class PowerSensor:
    """Sensors whose readings multiply to watts; several rails are added."""

    rails: tuple[tuple[Path, ...], ...]
    scale: float  # of a rail's product, to watts
    name: str

    def watts(self) -> float:
        """The power at this moment."""
        total = 0.0
        for rail in self.rails:
            product = self.scale
            for path in rail:
                product *= abs(_number(path))  # a battery's current may be negative
            total += product
        return total

    def joules(self, work: Callable[[], None]) -> float:
        readings: list[float] = []
        done = threading.Event()

        def sample() -> None:
            while not done.wait(INTERVAL):
                readings.append(self.watts())

        sampler = threading.Thread(target=sample)
        begin = time.perf_counter()
        sampler.start()
        try:
            work()
            readings.append(self.watts())
        finally:
            seconds = time.perf_counter() - begin
            done.set()
            sampler.join()
        return seconds * sum(readings) / len(readings)


def find(sysfs: Path = SYSFS) -> Meter | None:
    """RAPL, else an INA sensor, else a battery that is being emptied; None where none is readable.

    The counters of RAPL are often readable by root alone, and a battery on the mains tells nothing.
    """
    return _rapl(sysfs) or _ina(sysfs) or _battery(sysfs)


def _rapl(sysfs: Path) -> Rapl | None:
    zones = sorted((sysfs / "class/powercap").glob("intel-rapl:[0-9]*"))
    packages = tuple(
        zone
        for zone in zones
        if _text(zone / "name").startswith("package")
        and _readable(zone / "energy_uj")
        and _readable(zone / "max_energy_range_uj")
    )
    return Rapl(packages) if packages else None


def _ina(sysfs: Path) -> PowerSensor | None:
    for chip in sorted((sysfs / "class/hwmon").glob("hwmon*")):
        kind = _text(chip / "name")
        if not kind.startswith("ina"):
            continue
        power = tuple((p,) for p in sorted(chip.glob("power*_input")) if _readable(p))
        if power:
            return PowerSensor(power, 1e-6, f"power sensor {kind} (hwmon)")
        pairs = tuple(
            (voltage, current)
            for voltage in sorted(chip.glob("in*_input"))
            if _readable(current := chip / voltage.name.replace("in", "curr", 1))
            and _readable(voltage)
        )
        if pairs:  # millivolts times milliamperes
            return PowerSensor(pairs, 1e-6, f"voltage and current sensor {kind} (hwmon)")
    return None


def _battery(sysfs: Path) -> PowerSensor | None:
    for supply in sorted((sysfs / "class/power_supply").glob("*")):
        if _text(supply / "type") != "Battery" or _text(supply / "status") != "Discharging":
            continue
        if _readable(supply / "power_now"):
            return PowerSensor(((supply / "power_now",),), 1e-6, "battery gauge")
        pair = (supply / "voltage_now", supply / "current_now")
        if all(map(_readable, pair)):  # microvolts times microamperes
            return PowerSensor((pair,), 1e-12, "battery gauge")
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> float:
    return float(path.read_text())


def _readable(path: Path) -> bool:
    try:
        _number(path)
    except (OSError, ValueError):
        return False
    return True


# --------------------------------------------------------------------------------------------------
# Documented devices, for estimates of time and energy
#
#     seconds = multiply-adds / multiply-adds a second,    joules = seconds * watts
#
# A dense layer at batch 1 uses each weight once, so what counts is how fast weights are streamed.
# All figures are rounded, whoever has the device should measure: every number from here is an
# estimate and labelled so.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """A device and where its numbers come from."""

    name: str
    multiply_adds_per_second: float  # float32, one core, batch 1
    watts: float  # of the whole board or module while it computes
    speed_from: str
    power_from: str

    def microseconds(self, multiply_adds: float) -> float:
        """Estimate the time of that many multiply-adds."""
        return 1e6 * multiply_adds / self.multiply_adds_per_second

    def millijoules(self, multiply_adds: float) -> float:
        """Estimate the energy of that many multiply-adds."""
        return 1e3 * self.watts * multiply_adds / self.multiply_adds_per_second


DEVICES = (
    Device(
        "Intel Edison",
        0.25e9,
        1.0,
        "assumed 1 GB/s of float32 weights from memory to one Atom core at 500 MHz; its SSE unit "
        "could do 1e9 a second",
        "about 1 W with one core busy: 10 to 12 hours from four AA cells of 2,000 mAh are reported",
    ),
    Device(
        "Raspberry Pi 4",
        1.0e9,
        3.0,
        "assumed 4 GB/s of float32 weights from memory to one Cortex-A72 core at 1.5 GHz; its NEON "
        "unit could do 6e9 a second",
        "600 mA at 5 V, the maker's figure for an active bare board",
    ),
    Device(
        "Cortex-M4",
        24e6,
        0.13,
        "168 MHz and 7 cycles for two loads and a fused multiply-add of its FPv4 unit, as if "
        "all weights fitted its flash",
        "about 40 mA at 3.3 V, an STM32F407 that runs from flash with its peripherals off",
    ),
)
DEFAULT = DEVICES[0]  # the paper's hardware (section 4.1)


def device_named(name: str) -> Device:
    """Return the device of that name."""
    for known in DEVICES:
        if known.name.lower() == name.strip().lower():
            return known
    accepted = ", ".join(known.name for known in DEVICES)
    raise InputError(f"device={name!r} is unknown; accepted: {accepted}")


# --------------------------------------------------------------------------------------------------
# Cost of one prediction: counted operations and bytes, measured time and energy
#
# Counted are the dense layers (a multiply-add for each weight and pass) and the float32 weights and
# biases that must be stored. Measured is the network with its head, from scaled inputs to the
# parameters of the distribution, on one thread and for one row.
# --------------------------------------------------------------------------------------------------

BYTES_OF_A_NUMBER = 4  # float32
ROUND_SECONDS = 5e-3  # of one method in one round
METER_SECONDS = 0.3  # long enough for a counter that ticks each millisecond

Call = Callable[[], object]


@dataclass(frozen=True)
class PassPlan:
    """How a method predicts one row with dense networks of the given widths."""

    widths: tuple[int, ...]  # inputs, hidden layers, columns of the output layer
    likelihood: str
    passes: int
    ensemble: bool = False  # the passes are of networks of their own, not of one with dropout on
    embedding: tuple[int, int] | None = None  # frequencies and width of each input's, if periodic

    @classmethod
    def of(
        cls,
        estimator: str,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        classes: bool,
        passes: int,
    ) -> PassPlan:
        """Plan an estimator: `RDeepSense`, `MCDrop` or `SSP`.

        The output layer has a column for each class, or mean and spread of each output; MCDrop,
        whose spread comes from the passes, has the mean alone.
        """
        likelihood = "point" if estimator == "MCDrop" else "gaussian"
        likelihood = "categorical" if classes else likelihood
        columns = outputs * head_named(likelihood).link.columns
        return cls((inputs, *hidden, columns), likelihood, passes, estimator == "SSP")

    @property
    def multiply_adds(self) -> int:
        """A weight is used once in each pass, and a sine takes a polynomial."""
        frequencies, width = self.embedding or (0, 0)
        embedding = frequencies * (1 + 2 * SINE_TERMS) + 2 * frequencies * width
        dense = sum(a * b for a, b in pairwise(self._read))
        return self.passes * (self.widths[0] * embedding + dense)

    @property
    def bytes(self) -> int:
        """Weights and biases of all networks."""
        frequencies, width = self.embedding or (0, 0)
        embedding = frequencies + 2 * frequencies * width + width
        numbers = self.widths[0] * embedding + sum(a * b + b for a, b in pairwise(self._read))
        return BYTES_OF_A_NUMBER * numbers * (self.passes if self.ensemble else 1)

    @property
    def _read(self) -> tuple[int, ...]:
        """What each layer reads, and the columns of the last."""
        inputs, *others = self.widths
        return (inputs * (1 + (self.embedding or (0, 0))[1]), *others)

    def network(self, member: int) -> nn.Module:
        """Build one network, with random weights."""
        inputs, *hidden, columns = self.widths
        outputs = columns // head_named(self.likelihood).link.columns
        form: Architecture = Dense(hidden)
        if self.embedding is not None:
            form = Periodic(hidden, *self.embedding)
        return built(form, (inputs,), outputs, member, seed=0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, without gradients, with masks of a fixed seed."""
    with torch_threads(1), torch.inference_mode(), _torch.drawing(0):
        yield


def prediction(plan: PassPlan, batched: bool = False) -> Call:
    """Make one prediction of one row, to be timed under `one_thread`.

    The passes follow one another, as in the paper; `batched` runs those of one network as one batch
    of equal rows instead. Several passes end in the mean and the variance over them.
    """
    inputs = plan.widths[0]
    bodies = (plan.network(member) for member in range(plan.passes if plan.ensemble else 1))
    networks = [convert(body, plan.likelihood, drop_prob=0.1).eval() for body in bodies]
    row = torch.linspace(-1, 1, inputs)[None]
    if plan.passes == 1:
        return lambda: networks[0](row)
    if not plan.ensemble:
        networks[0].train()  # dropout is all there is to switch on
        networks *= plan.passes
    rows = row.repeat(plan.passes, 1)

    def passes() -> object:
        if batched:
            drawn = networks[0](rows)
        else:
            drawn = map(torch.cat, zip(*(network(row) for network in networks), strict=True))
        return [(values.mean(0), values.var(0, correction=0)) for values in drawn]

    return passes


def microseconds(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Measure the median time of each call over rounds in which all calls have their turn.

    Interleaved, because a machine that is busy or throttles for a while then slows all alike.
    """
    repeats = {name: _repeats(call, ROUND_SECONDS) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - begin) / repeats[name])
    return {name: 1e6 * statistics.median(own) for name, own in times.items()}


def millijoules(calls: Mapping[str, Call], meter: Meter, rounds: int = 3) -> dict[str, float]:
    """Measure the median energy of each call, likewise in interleaved rounds."""
    repeats = {name: _repeats(call, METER_SECONDS) for name, call in calls.items()}
    used: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            used[name].append(meter.joules(_repeated(call, repeats[name])) / repeats[name])
    return {name: 1e3 * statistics.median(own) for name, own in used.items()}


def _repeated(call: Call, times: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(times):
            call()

    return work


def _repeats(call: Call, seconds: float) -> int:
    """How often to call so that it takes about so long; the first calls warm up."""
    call()
    best = min(_seconds(call) for _ in range(3))
    return max(1, round(seconds / max(best, 1e-9)))


def _seconds(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# --------------------------------------------------------------------------------------------------
# Interleaved measurements of all candidates, one row and one thread
#
# All candidates take turns in each round, so that a machine that is busy for a while slows all
# alike. Of each the round with the smallest median counts: its median and its 99th percentile. A
# turn predicts the same row again and again, so weights that fit a cache are in it.
# --------------------------------------------------------------------------------------------------

TURN_SECONDS = 0.02
LEAST = 100  # predictions of a turn, so that there is a 99th percentile
MOST = 20_000
WARM_UP = 5


class Latency(NamedTuple):
    """Median and 99th percentile of a candidate's best round."""

    microseconds: float
    p99_microseconds: float


@dataclass(frozen=True)
class Measured:
    """What one prediction of a candidate costs; None where it could not be measured."""

    name: str
    what: str
    microseconds: float
    p99_microseconds: float
    off_by_stds: float | None
    instructions: int | None
    weight_bytes: int
    multiply_adds: int
    peak_bytes: int | None
    millijoules: float
    energy: str  # "measured" or "estimated"

    def to_json(self) -> dict[str, object]:
        own = asdict(self)
        return {"name": own.pop("name"), "available": True, **own}


def measure(
    candidates: Sequence[ProfileCandidate | Missing],
    rounds: int,
    meter: Meter | None,
    device: Device,
) -> tuple[Measured | Missing, ...]:
    """Measure all candidates.

    Energy is that of `meter`; without one it is estimated from the multiply-adds for `device`.
    """
    present = [one for one in candidates if isinstance(one, ProfileCandidate)]
    with one_thread(), threadpool_limits(1):
        times = latencies(present, rounds)
        used = {} if meter is None else _millijoules(present, times, meter)
    found: list[Measured | Missing] = []
    for one in candidates:
        if isinstance(one, Missing):
            found.append(one)
            continue
        found.append(
            Measured(
                one.name,
                one.what,
                *times[one.name],
                off_by_stds=one.off_by,
                instructions=one.instructions(),
                weight_bytes=one.weight_bytes,
                multiply_adds=one.multiply_adds,
                peak_bytes=one.peak_bytes(),
                millijoules=used.get(one.name, device.millijoules(one.multiply_adds)),
                energy="estimated" if meter is None else "measured",
            )
        )
    return tuple(found)


def latencies(candidates: Sequence[ProfileCandidate], rounds: int) -> dict[str, Latency]:
    """Time rounds in which all candidates take turns."""
    counts = {}
    for one in candidates:
        typical = float(np.min(one.seconds(WARM_UP)))
        counts[one.name] = int(np.clip(round(TURN_SECONDS / max(typical, 1e-9)), LEAST, MOST))
    best: dict[str, Latency] = {}
    for _ in range(rounds):
        for one in candidates:
            times = 1e6 * one.seconds(counts[one.name])
            median = float(np.median(times))
            if one.name not in best or median < best[one.name].microseconds:
                best[one.name] = Latency(median, float(np.percentile(times, 99)))
    return best


def _millijoules(
    candidates: Sequence[ProfileCandidate], times: dict[str, Latency], meter: Meter
) -> dict[str, float]:
    """Measure one prediction over a stretch long enough for the meter."""
    used = {}
    for one in candidates:
        count = max(1, round(1e6 * METER_SECONDS / times[one.name].microseconds))
        used[one.name] = 1e3 * meter.joules(lambda c=one, n=count: c.seconds(n)) / count  # type: ignore[misc]
    return used
