"""What a stream of samples costs on the device, in each of its ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rdeepsense.deploy.c.graph.decided import Decided
from rdeepsense.deploy.c.graph.sampled import WAYS, Sampled, whole_hop
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.errors import InputError
from rdeepsense.windowing.stream import Smoothing


@dataclass(frozen=True)
class SampledCost:
    """Of the way that was chosen, and of the others that this model and hop allow.

    Multiply-adds are those of a decision, with all that was computed since the one before. Bytes
    are those of `model_stream` where 64-bit numbers are aligned to 8 bytes. `decided` is None
    where no labelled streams were given; the smoothing is then the model's own.
    """

    way: str
    samples: int
    hop: int
    rate: float
    gap_in_microseconds: int
    multiply_adds: dict[str, int]
    ram_stream: dict[str, int]
    advice: str | None  # where another hop would be much cheaper
    smoothing: Smoothing | None
    decided: Decided | None

    @classmethod
    def of(
        cls,
        sampled: Sampled,
        multiply_adds: int,
        stream: Stream | None,
        states: Mapping[str, int],
        outputs: int,
        decided: Decided | None,
    ) -> SampledCost:
        """Count; `multiply_adds` are those of a whole window, `states` bytes that a way keeps."""
        own = sampled.sampling
        work, ram = dict[str, int](), dict[str, int]()
        for way in WAYS:
            try:
                one = Sampled.of(own, sampled.smoothing, stream, way)
            except InputError:
                continue  # not with this network and hop
            work[way] = multiply_adds if stream is None else _work(one, stream)
            ram[way] = stream_bytes(one, states.get(way, 0), outputs)
        advice = None
        if stream is not None and len(work) == 1:
            advice = _advice(sampled, stream)
        return cls(
            sampled.way,
            own.length,
            own.hop,
            own.rate,
            own.gap,
            work,
            ram,
            advice,
            sampled.smoothing,
            decided,
        )


def stream_bytes(sampled: Sampled, state: int, outputs: int) -> int:
    """Return the size of `model_stream`, which has a state of so many bytes inside."""
    channels, sensors = sampled.sampling.firsts[-1], len(sampled.sampling.sensors)
    parts = [(4, (sampled.points + 1) * channels), (8, sensors), (8, 2 * sensors)]
    parts += [(4, sensors), (1, 2 * sensors), (8, 2), (8, 1), (4, 1), (1, 3)]
    if sampled.way != "window":
        parts += [(4, 1), (4, state // 4)]
    if sampled.smoothing is not None:
        parts += [(4, outputs), (4, 1)]
    parts.append((4, 3))
    total = 0
    for size, count in parts:
        total = -(-total // size) * size + size * count
    return -(-total // 8) * 8


def _advice(sampled: Sampled, stream: Stream) -> str | None:
    """Name the next hop by which intervals can be kept, where that saves a quarter of the work."""
    own = sampled.sampling
    hop = whole_hop(own, own.length // stream.count)
    one = Sampled.of(replace(own, hop=hop), sampled.smoothing, stream, "exact")
    whole, kept = _work(sampled, stream), _work(one, stream)
    if 4 * kept > 3 * whole:
        return None
    return (
        f"hop={hop / own.rate:.6g} is a multiple of an interval: its exact way would take "
        f"{kept:,} multiply-adds a decision in place of {whole:,}"
    )


def _work(sampled: Sampled, stream: Stream) -> int:
    interval, step, last = stream.multiply_adds
    if sampled.way == "window":
        return stream.count * (interval + step) + last
    new = sampled.sampling.hop // sampled.read
    again = stream.count if sampled.way == "exact" else new
    return new * interval + again * step + last
