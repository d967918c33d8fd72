"""A figure as files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense._files import write_whole
from rdeepsense.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 180


def save(figure: Figure, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write PATH.png and PATH.svg, each whole or not at all; return their names.

    Equal figures give equal bytes: no date, and names inside the SVG from a fixed salt.
    """
    matplotlib = require("matplotlib", "report")
    png, svg = (Path(f"{os.fspath(path)}.{suffix}") for suffix in ("png", "svg"))
    with matplotlib.rc_context({"svg.hashsalt": "rdeepsense"}):
        for target, metadata in ((png, {"Software": None}), (svg, {"Date": None})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=target.suffix[1:], dpi=DPI, metadata=metadata)
            write_whole(target, buffer.getvalue())
    return png, svg
