"""What a network takes on the device that it is for."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Need:
    """Bytes, and the multiply-adds of one prediction."""

    flash: int
    ram: int
    multiply_adds: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)
