"""What a stream of windows costs in each of its ways, and what the running one is worth."""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.quality import Figures


@dataclass(frozen=True)
class Running:
    """Recurrent layers that go on: its own calibration, and figures on windows not used for it.

    `before` are the figures of whole windows, `uncalibrated` those without the factor.
    """

    factor: float  # of logits, or of standard deviations
    played: str  # whole recordings, or each window twice
    rows: int
    before: Figures
    uncalibrated: Figures
    after: Figures


@dataclass(frozen=True)
class StreamCost:
    """Multiply-adds of a decision and bytes of state: whole window, exact, running."""

    times_of_an_interval: int
    intervals: int
    multiply_adds: dict[str, int]
    state_bytes: dict[str, int]
    running: Running | None  # None where there are no labelled windows

    @classmethod
    def of(
        cls, stream: Stream, channels: int, running: Running | None, summary: int = 0
    ) -> StreamCost:
        interval, step, last = stream.multiply_adds
        count, (found, top, _) = stream.count, stream.sizes
        kept = 4 * count * channels * summary  # of each interval, for a novelty
        flags = -(-count // 4) * 4 + 4
        tops = top * (count if stream.mean else 1)
        return cls(
            stream.read // channels,
            count,
            {
                "window": count * (interval + step) + last,
                "exact": interval + count * step + last,
                "running": interval + step + last,
            },
            {
                "window": 0,
                "exact": 4 * count * found + kept + flags,
                "running": 4 * (stream.states + tops) + kept + flags,
            },
            running,
        )
