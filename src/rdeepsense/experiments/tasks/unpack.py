"""The wanted files of a zip archive, and of archives inside it, into one folder."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rdeepsense.errors import InputError


def unpack(archive: Path, folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Unpack files whose path ends as one of the patterns, under their own names.

    Each is written whole or not at all; a path that leads out of the folder is refused first.
    """
    try:
        return sorted(_unpack(archive, archive, folder, wanted))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(f"{archive}: cannot be unpacked: {error}") from error


def _unpack(file: Path, archive: Path, folder: Path, wanted: Sequence[str]) -> set[Path]:
    written: set[Path] = set()
    with zipfile.ZipFile(file) as opened:
        members = [member for member in opened.infolist() if not member.is_dir()]
        paths = [PurePosixPath(member.filename.replace("\\", "/")) for member in members]
        for path in paths:
            if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                raise InputError(f"{archive}: its member {str(path)!r} leads out of the folder")
        for member, path in zip(members, paths, strict=True):
            nested = path.suffix.lower() == ".zip"
            if not nested and not any(path.match(pattern) for pattern in wanted):
                continue
            handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
            try:
                with os.fdopen(handle, "wb") as target, opened.open(member) as source:
                    shutil.copyfileobj(source, target, 1 << 20)
                if nested:
                    new = _unpack(Path(beside), archive, folder, wanted)
                else:
                    os.chmod(beside, 0o644)
                    new = {folder / path.name}
                    if not new & written:
                        os.replace(beside, folder / path.name)
            finally:
                Path(beside).unlink(missing_ok=True)
            if twice := new & written:
                raise InputError(f"{archive}: holds two files named {twice.pop().name}")
            written |= new
    return written
