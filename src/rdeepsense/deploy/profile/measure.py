"""Every candidate measured side by side, one row at a time and on one thread.

All candidates take turns in each round, so that a machine that is busy for a while slows all alike.
Of each the round with the smallest median counts: its median and its 99th percentile. A turn
predicts the same row again and again, so weights that fit a cache are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from rdeepsense.deploy.profile import cost
from rdeepsense.deploy.profile.candidate import Missing, ProfileCandidate
from rdeepsense.deploy.profile.devices import Device
from rdeepsense.deploy.profile.energy import Meter

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
    with cost.one_thread(), threadpool_limits(1):
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
        count = max(1, round(1e6 * cost.METER_SECONDS / times[one.name].microseconds))
        used[one.name] = 1e3 * meter.joules(lambda c=one, n=count: c.seconds(n)) / count  # type: ignore[misc]
    return used
