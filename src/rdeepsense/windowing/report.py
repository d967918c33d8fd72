"""What became of a log: samples read and lost, windows made and lost, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

NO_TIME = "without a time"
REPEATED = "of a repeated time: each sensor's last one counts"
TOO_SHORT = "in stretches shorter than a window"
GAPS = "over a gap"
IMPURE = "of no label that is pure enough"
UNLABELLED = "without a label"


@dataclass(frozen=True)
class WindowReport:
    """Counts of samples and windows, and what was decided on the way."""

    samples: int
    recordings: int
    windows: int
    found_rate: float  # samples a second, by the median step
    sorted_samples: int = 0  # that came after a later one
    lost_samples: Mapping[str, int] = field(default_factory=dict)
    lost_windows: Mapping[str, int] = field(default_factory=dict)
    said: tuple[str, ...] = ()  # what was resampled, trimmed or guessed

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return a line for each thing to know."""
        found = [
            f"samples   {self.samples:,} in {self.recordings:,} recording"
            f"{'' if self.recordings == 1 else 's'}, {self.found_rate:.4g} a second",
            *(f"note      {one}" for one in self.said),
        ]
        if self.sorted_samples:
            found.append(f"sorted    {self.sorted_samples:,} samples that came after a later one")
        for why, count in self.lost_samples.items():
            found.append(f"lost      {count:,} samples {why}")
        found.append(f"windows   {self.windows:,}")
        for why, count in self.lost_windows.items():
            found.append(f"lost      {count:,} windows {why}")
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())
