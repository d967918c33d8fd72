"""Run the code of docs/gallery.md and keep its pictures in docs/images/gallery."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).parent


def main() -> None:
    """Run the page's blocks one after the other, in an empty folder."""
    mpl.use("agg")
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "gallery.md").read_text(), re.M | re.S)
    folder = DOCS / "images" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        names: dict[str, object] = {}
        for block in blocks:
            exec(block, names)
        for picture in Path(work).glob("*.png"):
            shutil.copy(picture, folder / picture.name)


if __name__ == "__main__":
    main()
