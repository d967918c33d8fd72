"""How windows are cut: small, checked, and the same in a call, a model file and a stream."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rdeepsense.errors import InputError
from rdeepsense.fields import Json, Kind, check_fields, choice, maybe, number, several, text
from rdeepsense.windowing.clock import TIME_UNITS

TARGETS = ("majority", "end", "mean")
FEWEST_SAMPLES, MOST_SAMPLES = 2, 1 << 20  # of a window
LONGEST = 1e6  # seconds
FASTEST = 1e6  # samples a second
MOST_COLUMNS = 10_000
ROUNDED = 1e-6  # of a sample: what floats make of 5 s times 50 a second
NAME = text(1_000)
NAMES = several(NAME, MOST_COLUMNS)
SENSORS = Kind(
    lambda value: (
        type(value) is dict
        and 1 <= len(value) <= MOST_COLUMNS
        and all(map(NAME.accepts, value))
        and all(several(NAME, MOST_COLUMNS, least=1).accepts(one) for one in value.values())
    ),
    "an object of sensors, each with its columns",
)
STEPS = Kind(
    lambda value: (
        type(value) is dict
        and all(map(NAME.accepts, value))
        and all(number(0.0, 1e6).accepts(step) for step in value.values())
    ),
    "an object of sensors, each with a step",
)
FLAG = Kind(lambda value: type(value) is bool, "true or false")
FIELDS = {
    "time": NAME,
    "time_unit": maybe(choice(*TIME_UNITS)),
    "sensors": SENSORS,
    "window": number(1e-6, LONGEST),
    "hop": number(1e-6, LONGEST),
    "rate": number(1e-6, FASTEST),
    "gap": number(1e-9, LONGEST),
    "by": NAMES,
    "label": NAMES,
    "target": choice(*TARGETS),
    "purity": number(0.0, 1.0),
}


@dataclass(frozen=True)
class Recipe:
    """What `windows` was told, with what it found: rate and gap are None until then."""

    time: str
    sensors: Mapping[str, tuple[str, ...]]
    window: float  # seconds
    hop: float
    rate: float | None = None  # samples a second
    gap: float | None = None  # seconds without a sample that end a window
    by: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    target: str = "majority"
    purity: float = 0.5
    time_unit: str | None = None
    rounding: Mapping[str, float] = field(default_factory=dict)  # steps that sensors round to
    double: bool = False  # whether samples are float64, because float32 does not tell them apart

    def __post_init__(self) -> None:
        if not isinstance(self.sensors, Mapping) or not self.sensors:
            raise InputError(
                f"sensors = {self.sensors!r:.80} is no dictionary of sensors with their columns, "
                'such as {"accelerometer": ["ax", "ay", "az"]}'
            )
        lists = {name: listed(f"sensors[{name!r}]", own) for name, own in self.sensors.items()}
        object.__setattr__(self, "sensors", lists)
        object.__setattr__(self, "by", listed("by", self.by))
        object.__setattr__(self, "label", listed("label", self.label))
        for name, own in lists.items():
            if not own:
                raise InputError(f"sensors[{name!r}] names no column")
        named = [self.time, *self.channels, *self.label]
        twice = next((name for k, name in enumerate(named) if name in named[:k]), None)
        if twice is not None:
            raise InputError(f"column {twice!r} is named twice, among time, sensors and label")
        object.__setattr__(self, "rounding", dict(self.rounding))
        check_fields({"rounding": self.rounding}, {"rounding": STEPS})
        if unknown := sorted(set(self.rounding) - set(lists)):
            raise InputError(
                f"rounding names the sensor {unknown[0]!r}; there are {', '.join(map(repr, lists))}"
            )
        plain = self._plain()
        known = {name: plain[name] for name in FIELDS if plain[name] is not None}
        check_fields(known, {name: FIELDS[name] for name in known})
        if self.rate is not None:
            self.check_length(self.rate)
        if self.target == "majority" and len(self.label) > 1:
            raise InputError(
                f'label = {list(self.label)} with target = "majority"; several are for numbers, '
                'with target = "mean" or "end"'
            )

    @property
    def channels(self) -> tuple[str, ...]:
        """The columns of all sensors, in the order of a window's channels."""
        return tuple(name for own in self.sensors.values() for name in own)

    @property
    def length(self) -> int:
        """Samples of a window: as many as are whole."""
        return math.floor(self.window * self._known_rate() + ROUNDED)

    @property
    def step(self) -> int:
        """Samples from window to window, one at least."""
        return max(1, round(self.hop * self._known_rate()))

    def check_length(self, rate: float) -> None:
        """Refuse a window of too few samples, or too many."""
        samples = self.window * rate
        if not FEWEST_SAMPLES <= samples + ROUNDED < MOST_SAMPLES:
            raise InputError(
                f"window = {self.window:g} s has {samples:.6g} samples at {rate:g} a second; "
                f"accepted: {FEWEST_SAMPLES} to {MOST_SAMPLES:,}"
            )

    @property
    def dtype(self) -> type[np.float32 | np.float64]:
        """The type of a sample."""
        return np.float64 if self.double else np.float32

    def without_label(self) -> Recipe:
        """Return the recipe for a log whose truth is not known."""
        return replace(self, label=())

    def to_json(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        return self._plain()

    @classmethod
    def from_json(cls, value: Json) -> Recipe:
        """Read what a file holds, which anyone may have written."""
        check_fields(value, FIELDS, {"rounding": STEPS, "double": FLAG})
        kept = {name: value[name] for name in FIELDS}
        return cls(**kept, rounding=value.get("rounding", {}), double=value.get("double", False))

    def _plain(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in FIELDS}
        return {
            **kept,
            "sensors": {name: list(own) for name, own in self.sensors.items()},
            "by": list(self.by),
            "label": list(self.label),
            **({"rounding": dict(self.rounding)} if self.rounding else {}),
            **({"double": True} if self.double else {}),
        }

    def _known_rate(self) -> float:
        if self.rate is None:
            raise InputError("the recipe has no rate yet; windows(...) finds it in a log")
        return self.rate


def listed(argument: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return names of columns as a tuple: one name stands for itself, None for none."""
    if names is None:
        return ()
    found = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise InputError(f"{argument} = {names!r:.80} is no list of names of columns")
    return found
