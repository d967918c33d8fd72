"""`rdeepsense.profile`: what one prediction costs in every form of a model."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.profile import energy
from rdeepsense.deploy.profile.candidate import Missing
from rdeepsense.deploy.profile.candidates import NAMES, OF_WINDOWS, candidate, check_names
from rdeepsense.deploy.profile.devices import DEFAULT, Device, device_named
from rdeepsense.deploy.profile.measure import Measured, measure
from rdeepsense.deploy.profile.profiled_model import ProfiledModel
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator


@dataclass(frozen=True)
class ProfileReport:
    """The figures of all candidates, and the machine and the network that they are of."""

    layers: tuple[int, ...]  # inputs, hidden layers, columns of the last layer
    machine: str
    rounds: int
    energy: str  # where the energy comes from
    candidates: tuple[Measured | Missing, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "layers": list(self.layers),
            "machine": self.machine,
            "rounds": self.rounds,
            "energy": self.energy,
            "forms": [one.to_json() for one in self.candidates],
        }


def profile(
    model: DistributionEstimator,
    *,
    candidates: Sequence[str] | None = None,
    rounds: int = 20,
    device: str | None = None,
) -> ProfileReport:
    """Measure time, instructions, memory and energy of one prediction in every form of a model.

    Each form predicts one of the rows that the model kept, on one thread. All take turns in each
    round; the round with the smallest median counts. Forms of C are compiled on the first run.

    Parameters
    ----------
    model : a fitted `RDeepSenseRegressor` or `RDeepSenseClassifier` whose network can be exported
        as C.
    candidates : names such as "torch", "onnxruntime", "folded", "c-int8", "mcdrop-20", "ssp-3"; of
        windows also "c-exact" and "c-running", an interval of a stream. All of this model where
        None, for fully-connected networks with MCDrop-10 and SSP-5.
    rounds : how often all take their turn.
    device : the device that energy is estimated for: "Intel Edison" (the paper's),
        "Raspberry Pi 4" or "Cortex-M4". None takes a meter of this machine, where there is one.

    Returns
    -------
    ProfileReport : the figures of each; `to_json()` gives them as plain values.
    """
    check_names(tuple(candidates or ()))
    if rounds < 1:
        raise InputError(f"rounds={rounds!r} must be 1 or more")
    estimated_for = DEFAULT if device is None else device_named(device)
    # One that was named is what was asked for: it is not set aside for a meter.
    meter = energy.find() if device is None else None
    with tempfile.TemporaryDirectory() as folder:
        profiled = ProfiledModel.of(model, Path(folder))
        every = NAMES if isinstance(profiled.folded, Folded) else OF_WINDOWS
        names = every if candidates is None else tuple(candidates)
        found = measure([candidate(profiled, name) for name in names], rounds, meter, estimated_for)
        layers = profiled.widths
    return ProfileReport(layers, machine(), rounds, energy_label(meter, estimated_for), found)


def energy_label(meter: energy.Meter | None, device: Device) -> str:
    """Say where the energy comes from."""
    if meter is not None:
        return f"measured: {meter.name}"
    return (
        f"estimated for {device.name} from the multiply-adds: "
        f"{device.multiply_adds_per_second:g} a second at {device.watts:g} W"
    )


def machine() -> str:
    """Name the processor in words."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, one thread of {os.cpu_count()}, {platform.system()}"
