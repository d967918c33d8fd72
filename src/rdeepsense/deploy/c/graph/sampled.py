"""A stream of samples in C: its sizes, its constants, and which way it computes windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.text import number
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.errors import InputError
from rdeepsense.windowing.stream import COVERAGE, LEAST, TRUSTED, Sampling, Smoothing, prior_of

WAYS = ("exact", "running", "window")
SIZES = """
/* In a stream of samples: points of a window, and from one to the next; points a second; the time
   without a sample, in microseconds, that ends a window; and sizes of what is kept. */"""


@dataclass(frozen=True)
class Sampled:
    """Windows cut from samples on the device."""

    sampling: Sampling
    smoothing: Smoothing | None  # None for numbers
    way: str
    read: int  # points that are taken at once: a window, or an interval

    @classmethod
    def of(
        cls,
        sampling: Sampling,
        smoothing: Smoothing | None,
        stream: Stream | None,
        way: str | None = None,
    ) -> Sampled:
        """Choose the cheapest way that is equal to the window, or take the one that is asked for.

        Intervals can be kept where they divide the hop.
        """
        interval = None if stream is None else sampling.length // stream.count
        divides = interval is not None and sampling.hop % interval == 0
        if way is None:
            way = "exact" if divides and sampling.hop < sampling.length else "window"
        if way not in WAYS:
            raise InputError(f"stream={way!r} is unknown; accepted: {', '.join(map(repr, WAYS))}")
        if way != "window" and not divides:
            what = "the network has no intervals that could be computed by themselves"
            if interval is not None:
                what = f"a hop of {sampling.hop} samples is no multiple of {interval}, an interval"
                what += f"; hop={whole_hop(sampling, interval) / sampling.rate:.6g} is one"
            raise InputError(f"stream={way!r}: {what}; accepted here: 'window'")
        read = sampling.length if way == "window" or interval is None else interval
        return cls(sampling, smoothing, way, read)

    @property
    def switches(self) -> dict[str, bool]:
        """What of the runtime it needs."""
        return {
            "SAMPLED": True,
            "STEPWISE": self.way != "window",
            "STEPWISE_EXACT": self.way == "exact",
            "SMOOTHED": self.smoothing is not None,
        }

    @cached_property
    def points(self) -> int:
        """How many points are kept."""
        return self.read + self.sampling.ahead

    def sizes(self, name: str) -> list[str]:
        """What model.h says of it."""
        own = self.sampling
        found = {
            "SAMPLES": own.length,
            "HOP": own.hop,
            "RATE": number(own.rate),
            "GAP": f"{own.gap}LL",
            "SENSORS": len(own.sensors),
            "POINTS": self.points,
            "PARTS": own.ticks.parts,
        }
        lines = [SIZES, *(f"#define {name}_{key} {value}" for key, value in found.items())]
        if self.smoothing is not None:
            lines += ["", "/* The probability that a label comes with, and is wrong with to go. */"]
            lines.append(f"#define {name}_CHANGE_AT {number(self.smoothing.at)}")
        return lines

    def config(self, facts: Facts) -> list[str]:
        """What model.c has of its own for it."""
        own, ticks = self.sampling, self.sampling.ticks
        lines = [
            f"#define SENSOR_TABLE {', '.join(map(str, own.firsts))}",
            f"#define NEAR {ticks.near}LL /* parts that make no difference */",
            f"#define PER_PART {number(1 / ticks.parts)}",
        ]
        for what, count in (("STEP", 1), ("HOP", own.hop), ("SPAN", own.length - 1)):
            whole, part = ticks.steps(count)
            lines.append(f"#define {what}_WHOLE {whole}LL")
            lines.append(f"#define {what}_PART {part}u")
        if self.smoothing is None:
            return [*lines, *_interval(facts)]
        prior = prior_of(None if facts.guard is None else facts.guard.fallback, facts.outputs)
        return [
            *lines,
            f"#define PRIOR_TABLE {_listed(prior)}",
            f"#define EVIDENCE {number(self.smoothing.evidence)}",
            f"#define CHANGE {number(self.smoothing.change)}",
            f"#define LEAST_PROB {number(LEAST)}",
            f"#define TRUSTED {int(TRUSTED)} /* flags of a window that is evidence all the same */",
        ]


def whole_hop(sampling: Sampling, interval: int) -> int:
    """Return the multiple of an interval that is next to the hop, one at least."""
    return max(1, round(sampling.hop / interval)) * interval


def _interval(facts: Facts) -> list[str]:
    assert facts.intervals is not None
    at, outputs = facts.intervals.row(COVERAGE), facts.outputs
    low, high = facts.intervals.low[at], facts.intervals.high[at]
    return [
        f"#define LOW_TABLE {_listed(low, outputs)}",
        f"#define HIGH_TABLE {_listed(high, outputs)}",
    ]


def _listed(values: Floats, count: int | None = None) -> str:
    wide = [number(value) for value in values]
    return ", ".join(wide * (count or len(wide)) if len(wide) == 1 else wide)
