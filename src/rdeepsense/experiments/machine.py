"""The machine and the versions that figures come from."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from typing import Self

from rdeepsense.experiments.records import Record


@dataclass(frozen=True)
class Machine(Record):
    """A computer, without its name or any path on it."""

    processor: str
    system: str
    cores: int | None

    @classmethod
    def this(cls) -> Self:
        """Return the machine that runs this."""
        return cls(platform.machine(), platform.system(), os.cpu_count())
