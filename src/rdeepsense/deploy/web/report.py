"""What is found out about a page: its files' sizes, and all that is known of its C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rdeepsense.deploy.c.report import C99Report
from rdeepsense.deploy.report import ExportReport


@dataclass(frozen=True)
class WebReport(ExportReport):
    """The face of the page, the bytes of each file, and the report of the C in it."""

    face: str
    sizes: Mapping[str, int]
    c99: C99Report

    @property
    def bytes(self) -> int:
        """Of all files that a visitor loads."""
        return sum(self.sizes.values())

    def to_json(self) -> dict[str, object]:
        return {
            "face": self.face,
            "bytes": self.bytes,
            "files": dict(self.sizes),
            "c99": self.c99.to_json(),
        }
