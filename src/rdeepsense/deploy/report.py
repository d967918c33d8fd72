"""What an export found out about what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rdeepsense.deploy.quality import Quality


@dataclass(frozen=True)
class ExportReport:
    """The format, the file or folder, and the quality where labelled rows could judge it.

    Each format adds what it knows; `to_json` gives all of it as plain values.
    """

    to: str
    path: Path
    quality: Quality | None

    def to_json(self) -> dict[str, object]:
        return {"to": self.to, "path": str(self.path), "quality": self.quality_json()}

    def quality_json(self) -> dict[str, object] | None:
        return None if self.quality is None else self.quality.to_json()
