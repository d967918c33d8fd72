"""What of a fit is not as recorded.

On a processor and libraries like those of the record, every bit must be the same. Elsewhere other
kernels round differently and training carries that on, so values may differ by a part of the
standard deviation (of a probability, by as much of 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from golden.machine import Machine, machine
from numpy.typing import NDArray

SAME_BITS = ("cpu", "vectors", "kernels", "blas", "torch", "numpy")  # that equal bits take
# Weights that differ in the last bit may be rounded to another of the few numbers there are.
COARSE = {"float16": 2e-3, "int8": 0.1}
FIGURES = 1e-4  # of themselves

Then = Machine | None  # where a record was made; None where bits are not compared


def same_bits(then: Then, observation: str = "") -> bool:
    """Tell whether the bits of an observation must be those of a record."""
    wanted = (*SAME_BITS, "onnxruntime") if observation.startswith("onnx") else SAME_BITS
    return then is not None and all(machine()[name] == then[name] for name in wanted)


def differences(found: Any, wanted: Any) -> NDArray[np.float64]:
    """0 where both are the same, infinities and NaN included; infinite where only one is."""
    a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def apart(observation: str, found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """The largest difference, in predicted standard deviations; of classes, as it is.

    Doubt about logits has no unit but itself.
    """
    then = wanted[observation]["rows"]
    unit: Any = 1.0
    if "predict/std" in wanted:
        unit = 1.0 if observation.startswith("novelty") else wanted["predict/std"]["rows"]
    elif observation.endswith("/epistemic"):
        unit = np.max(np.abs(then)) or 1.0
    return float(np.max(differences(found[observation]["rows"], then) / unit))


def changed_values(
    found: dict[str, Any], wanted: dict[str, Any], bound: float, then: Then
) -> list[str]:
    """A line for each observation that is not as recorded."""
    lines = [f"{name} is gone" for name in wanted if name not in found]
    lines += [f"{name} is new" for name in found if name not in wanted]
    for name in (n for n in wanted if n in found):
        now, before = found[name], wanted[name]
        if now["shape"] != before["shape"]:
            lines.append(f"{name} has the shape {now['shape']}, recorded {before['shape']}")
            continue
        most = next((b for kind, b in COARSE.items() if kind in name), bound)
        difference, exact = apart(name, found, wanted), same_bits(then, name)
        if now["sha256"] != before["sha256"] if exact else difference > most:
            allowed = "every bit is to be the same" if exact else f"allowed: {most:g}"
            lines.append(f"{name} differs by {difference:.2g} std at most ({allowed})")
    return lines


def changed(found: dict[str, Any], wanted: dict[str, Any], bound: float, then: Then) -> list[str]:
    """A line for each thing that is not as recorded."""
    facts, before = found["facts"], wanted["facts"]
    lines = [
        f"the fact {name} is {facts.get(name)!r}, recorded {before.get(name)!r}"
        for name in {**before, **facts}
        if facts.get(name) != before.get(name)
    ]
    if found["figures"].keys() != wanted["figures"].keys():
        lines.append(f"the figures are {[*found['figures']]}, recorded {[*wanted['figures']]}")
    else:
        for name, value in wanted["figures"].items():
            difference = differences(found["figures"][name], value)
            allowed = 0.0 if same_bits(then) else FIGURES * (abs(value) + 0.01)
            if difference > allowed:
                lines.append(f"the figure {name} is {found['figures'][name]!r}, recorded {value!r}")
    now, recorded = found["weights"], wanted["weights"]
    lines += [f"the table {name} is gone" for name in recorded if name not in now]
    lines += [f"the table {name} is new" for name in now if name not in recorded]
    if same_bits(then):
        other = [name for name in now if now[name] != recorded.get(name, now[name])]
        lines += [f"the weights {', '.join(other)} have other bits"] if other else []
    return lines + changed_values(found["values"], wanted["values"], bound, then)
