"""What one seed of a study found: scores by way and labels, and one stream row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.experiments.records import Record
from rdeepsense.live.replay import WAYS, Replayed, Told

SHOWN = ("frozen", "live")


@dataclass(frozen=True)
class Score(Record):
    """The figures of one way with so many labels; what is not known is left out."""

    way: str
    labels: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Stream(Record):
    """What the frozen and the live model said of each row: error, held, width, NLL."""

    told: Mapping[str, Sequence[Sequence[float]]]
    coverage: float
    observed: Sequence[bool]
    alarm: int | None

    @classmethod
    def of(cls, found: Replayed) -> Stream:
        """Keep a stream all of whose rows have their truth."""
        told = {}
        for way in SHOWN:
            own = found.ways[way]
            told[way] = [
                own.error.tolist(),
                own.held.tolist(),
                own.width.tolist(),
                own.nll.tolist(),
            ]
        return cls(told, found.coverage, found.observed.tolist(), found.alarm)

    def replayed(self) -> Replayed:
        """Return it as `replay` had it, of these ways."""
        ways = {way: Told(*(np.array(values) for values in own)) for way, own in self.told.items()}
        observed = np.array(self.observed, np.bool_)
        everything = np.ones(len(observed), np.bool_)
        return Replayed(ways, self.coverage, everything, observed, self.alarm, False)


@dataclass(frozen=True)
class DriftTrial(Record):
    """One seed of a study."""

    seconds: float
    chosen: Mapping[str, object]
    scores: Sequence[Score]
    stream: Stream | None = None


def stream_scores(streams: Sequence[Replayed], labels: str) -> list[Score]:
    """Return the figures of all ways, pooled over the rows of several streams."""
    scores = []
    for way in WAYS:
        parts = [one.ways[way] for one in streams]
        pooled = Told(*(_joined(parts, name) for name in ("error", "held", "width", "nll")))
        figures = pooled.figures()
        if streams[0].is_classes:
            figures["accuracy"] = 1 - figures.pop("error")
        if way == "live" and len(streams) == 1 and streams[0].alarm is not None:
            figures["alarm"] = float(streams[0].alarm)
        scores.append(Score(way, labels, figures))
    return scores


def _joined(parts: Sequence[Told], name: str) -> Floats:
    return np.concatenate([getattr(part, name) for part in parts])
