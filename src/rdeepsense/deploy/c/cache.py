"""Where compiled models are kept, and which processor they are for."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return where libraries are kept; it is made when the first one is."""
    home = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "darwin" and not home:
        return Path.home() / "Library" / "Caches" / "rdeepsense"
    return (Path(home) if home else Path.home() / ".cache") / "rdeepsense"


def processor() -> str:
    """What -march=native depends on: a cache folder may be shared by several machines."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() + platform.node()
    return "".join(
        sorted(
            {line for line in text.splitlines() if line.startswith(("flags", "Feat", "model name"))}
        )
    )
