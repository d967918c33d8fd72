"""Sensor faults, put into healthy readings: pure functions of arrays and a seed.

Readings are a table (rows, channels), one moment a row, or windows (rows, time, channels). In every
row one channel fails, which is drawn at random:

    stuck       it repeats one healthy reading: a window its first, a row that of another row
    saturated   it stays at the end of its range, the highest reading known of it
    dropped     it reads 0
    drift       it moves away, up or down, up to 3 standard deviations: in a window along a line
                from 0, in a row by a share of that at random
    jitter      white noise of one standard deviation is added
    swapped     it is exchanged with the next axis of the same sensor, as by a wrong wiring

What a channel's range and standard deviation are is known from healthy readings (`Sensors.of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Singles
from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import hhar

Indices = NDArray[np.intp]
DRIFT = 3.0  # standard deviations


@dataclass(frozen=True)
class Sensors:
    """Of each channel: highest healthy reading, standard deviation, the axis it may be taken for.

    A channel without another axis names itself.
    """

    high: Singles
    std: Singles
    partner: Indices

    @classmethod
    def of(cls, healthy: ArrayLike, axes: int) -> Sensors:
        """Learn from healthy readings; `axes` neighbouring channels are the axes of a sensor."""
        x = _readings(healthy)
        if axes < 1:
            raise InputError(f"axes = {axes}: a sensor has 1 axis or more")
        places = tuple(range(x.ndim - 1))
        channel = np.arange(x.shape[-1])
        first = channel - channel % axes
        own = np.minimum(axes, x.shape[-1] - first)
        partner = first + (channel - first + 1) % own
        return cls(x.max(axis=places), x.std(axis=places, dtype=np.float64), partner)

    def channels(self, fault: str) -> Indices:
        """Return the channels that this fault can befall."""
        every = np.arange(len(self.partner))
        return np.flatnonzero(self.partner != every) if fault == "swapped" else every


Fault = Callable[[Singles, Indices, Sensors, np.random.Generator], Singles]


def stuck(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Repeat the first reading of a window; give a row of a table that of another row."""
    if x.ndim == 3:
        return _set(x, channel, _get(x, channel)[:, :1])
    away = rng.integers(1, max(2, len(x)), size=len(x))  # another row, never the same
    return _set(x, channel, x[(np.arange(len(x)) + away) % len(x), channel])


def saturated(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Hold the channel at its highest healthy reading."""
    return _set(x, channel, _each(x, sensors.high[channel]))


def dropped(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Set the channel to 0."""
    return _set(x, channel, 0.0)


def drift(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Move the channel away, up or down, by up to 3 standard deviations."""
    most = rng.choice([-DRIFT, DRIFT], len(x)) * sensors.std[channel]
    share = np.linspace(0, 1, x.shape[1]) if x.ndim == 3 else rng.uniform(size=len(x))
    return _set(x, channel, _get(x, channel) + _each(x, most) * share)


def jitter(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Add white noise with the channel's own standard deviation."""
    own = _get(x, channel)
    return _set(x, channel, own + _each(x, sensors.std[channel]) * rng.standard_normal(own.shape))


def swapped(x: Singles, channel: Indices, sensors: Sensors, rng: np.random.Generator) -> Singles:
    """Exchange the channel with the next axis of its sensor."""
    other = sensors.partner[channel]
    return _set(_set(x, channel, _get(x, other)), other, _get(x, channel))


FAULTS: dict[str, Fault] = {
    one.__name__: one for one in (stuck, saturated, dropped, drift, jitter, swapped)
}


def inject(fault: str, readings: ArrayLike, sensors: Sensors, seed: int = 0) -> Singles:
    """Return a copy of the readings with this fault in one channel of each row, drawn at random."""
    if fault not in FAULTS:
        raise InputError(f"fault {fault!r} is unknown; accepted: {', '.join(FAULTS)}")
    x = _readings(readings)
    if x.shape[-1] != len(sensors.high):
        raise InputError(f"readings of {x.shape[-1]} channels, sensors of {len(sensors.high)}")
    able = sensors.channels(fault)
    if not len(able):
        raise InputError(f"no channel can be {fault}: no sensor has more than one axis")
    rng = np.random.default_rng(seed)
    return FAULTS[fault](x, rng.choice(able, len(x)), sensors, rng)


@dataclass(frozen=True)
class Wiring:
    """The way from readings of channels to the features of a task, and back."""

    readings: Callable[[Singles], Singles]  # from features
    features: Callable[[Singles], Singles]  # from readings
    axes: int | None  # of a sensor; None where all channels are alike


def _as_it_is(x: Singles) -> Singles:
    return x


# The spectra of the activity task do not tell the phases of the raw windows: windows with the very
# same spectra are made, damaged, and turned into spectra again.
WIRINGS = {
    "BPEst": Wiring(lambda X: X[:, :, None], lambda x: x[:, :, 0], 1),
    "NYCommute": Wiring(_as_it_is, _as_it_is, 2),
    "HHAR": Wiring(hhar.waveforms, hhar.spectra, 3),
}
PLAIN = Wiring(_as_it_is, _as_it_is, None)  # a column is a channel


def damaged(
    task: str, X: ArrayLike, healthy: ArrayLike, seed: int = 0
) -> Iterator[tuple[str, Singles]]:
    """Yield each fault that a task's sensors can have, with what it makes of the features X.

    `healthy` are features to know the sensors' range from, such as the training rows.
    """
    wiring = WIRINGS.get(task, PLAIN)
    known = wiring.readings(np.asarray(healthy, np.float32))
    sensors = Sensors.of(known, wiring.axes or known.shape[-1])
    readings = wiring.readings(np.asarray(X, np.float32))
    for fault in FAULTS:
        if len(sensors.channels(fault)):
            yield fault, wiring.features(inject(fault, readings, sensors, seed))


def _readings(values: ArrayLike) -> Singles:
    x = np.asarray(values, np.float32)
    if x.ndim not in (2, 3) or not x.size:
        raise InputError(
            f"readings have shape {x.shape}; accepted: (rows, channels) or (rows, time, channels)"
        )
    return x


def _get(x: Singles, channel: Indices) -> Singles:
    """Return the readings of one channel in each row: (rows,) or (rows, time)."""
    own: Singles = np.take_along_axis(x, _places(x, channel), axis=-1)[..., 0]
    return own


def _set(x: Singles, channel: Indices, values: Any) -> Singles:
    """Return a copy with other readings of one channel in each row."""
    copy = x.copy()
    shaped = np.broadcast_to(np.asarray(values, np.float32), x.shape[:-1])[..., None]
    np.put_along_axis(copy, _places(x, channel), shaped, axis=-1)
    return copy


def _places(x: Singles, channel: Indices) -> Indices:
    return channel.reshape(-1, *[1] * (x.ndim - 1))


def _each(x: Singles, values: NDArray[Any]) -> NDArray[Any]:
    """Return one number for each row, along its time where it has one."""
    return values if x.ndim == 2 else values[:, None]
