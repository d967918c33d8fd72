"""A digest of the package's own code, because a version number does not change with every line."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import rdeepsense


@cache
def code_digest(irrelevant: tuple[str, ...] = ()) -> str:
    """Return the digest of all code but `irrelevant`: folders and files, such as `cli`, `a/b.py`.

    Figures that the code in these does not change stay valid when it is edited.
    """
    package, digest = Path(rdeepsense.__file__).parent, hashlib.sha256()
    without = {package / name for name in irrelevant}
    for path in sorted(package.rglob("*.py")):
        if not without & {path, *path.parents}:
            place = path.relative_to(package).as_posix()
            digest.update(place.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
