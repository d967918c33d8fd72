"""Every form of a model measured side by side, one row at a time and on one thread.

All forms take turns in each round, so that a machine that is busy for a while slows all alike. Of
each form the round with the smallest median counts: its median and its 99th percentile. A turn
predicts the same row again and again, so weights that fit a cache are in it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.deploy.profile import cost
from rdeepsense.deploy.profile.devices import Profile
from rdeepsense.deploy.profile.energy import Meter
from rdeepsense.deploy.profile.subject import Form, Missing

TURN_SECONDS = 0.02
LEAST = 100  # predictions of a turn, so that there is a 99th percentile
MOST = 20_000
WARM_UP = 5


def latencies(forms: Sequence[Form], rounds: int) -> dict[str, dict[str, float]]:
    """Median and 99th percentile of each form's best round, in microseconds."""
    counts = {}
    for form in forms:
        typical = float(np.min(form.seconds(WARM_UP)))
        counts[form.name] = int(np.clip(round(TURN_SECONDS / max(typical, 1e-9)), LEAST, MOST))
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for form in forms:
            times = 1e6 * form.seconds(counts[form.name])
            median = float(np.median(times))
            if form.name not in best or median < best[form.name]["microseconds"]:
                p99 = float(np.percentile(times, 99))
                best[form.name] = {"microseconds": median, "p99_microseconds": p99}
    return best


def profile(
    forms: Sequence[Form | Missing],
    rounds: int,
    meter: Meter | None,
    device: Profile,
) -> dict[str, Any]:
    """All figures of all forms, ready for JSON.

    Energy is that of `meter`; without one it is estimated from the multiply-adds for `device`.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    present = [form for form in forms if isinstance(form, Form)]
    with cost.one_thread(), threadpool_limits(1):
        times = latencies(present, rounds)
        used = {} if meter is None else _millijoules(present, times, meter)
    entries: list[dict[str, Any]] = []
    for form in forms:
        if isinstance(form, Missing):
            entries.append({"name": form.name, "available": False, "reason": form.reason})
            continue
        entries.append(
            {
                "name": form.name,
                "available": True,
                "what": form.what,
                **times[form.name],
                "off_by_stds": form.off_by,
                "instructions": form.instructions(),
                "weight_bytes": form.weight_bytes,
                "multiply_adds": form.multiply_adds,
                "peak_bytes": form.peak_bytes(),
                "millijoules": used.get(form.name, device.millijoules(form.multiply_adds)),
                "energy": "estimated" if meter is None else "measured",
            }
        )
    return {
        "machine": machine(),
        "rounds": rounds,
        "energy": energy_label(meter, device),
        "forms": entries,
    }


def energy_label(meter: Meter | None, device: Profile) -> str:
    """Where the energy comes from."""
    if meter is not None:
        return f"measured: {meter.name}"
    return (
        f"estimated for {device.name} from the multiply-adds: "
        f"{device.multiply_adds_per_second:g} a second at {device.watts:g} W"
    )


def machine() -> str:
    """The processor in words."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, one thread of {os.cpu_count()}, {platform.system()}"


def _millijoules(
    forms: Sequence[Form], times: dict[str, dict[str, float]], meter: Meter
) -> dict[str, float]:
    """Of one prediction, over a stretch long enough for the meter."""
    used = {}
    for form in forms:
        count = max(1, round(1e6 * cost.METER_SECONDS / times[form.name]["microseconds"]))
        used[form.name] = 1e3 * meter.joules(lambda f=form, n=count: f.seconds(n)) / count  # type: ignore[misc]
    return used
