"""The wanted files of a zip archive, and of archives inside it, into one folder."""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from rdeepsense._files import hidden_beside, sweep
from rdeepsense.errors import InputError

MOST_BYTES = 1 << 36  # of all that one archive holds, archives inside it counted too
MOST_RATIO = 100  # of these to the archive's own bytes; sensor data as text has about 10
ALWAYS_BYTES = 1 << 24  # may come of any archive, however small
MOST_DEPTH = 3  # archives in archives
LONGEST_NAME = 255  # bytes, of a file in a folder
MOST_ARCHIVES = 100  # inside one, over all depths

# What zipfile and the decompressors raise where bytes are not what they should be.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OverflowError,
    RuntimeError,  # encrypted, or compressed in an unknown way
    ValueError,
    OSError,
)


def unpack(archive: Path, folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Unpack files whose path ends as one of the patterns, under their own names.

    Each is written whole or not at all; a path that leads out of the folder is refused first, and
    so is an archive that would grow beyond measure.
    """
    size = archive.stat().st_size
    most = min(MOST_BYTES, max(ALWAYS_BYTES, MOST_RATIO * size))
    sweep(folder)
    return sorted(_Unpacking(archive, folder, wanted, most).files(archive, ()))


@dataclass
class _Unpacking:
    """One call of `unpack`, and how much of what it may do is left."""

    archive: Path
    folder: Path
    wanted: Sequence[str]
    most: int  # bytes
    bytes: int = 0
    archives: int = 0
    written: set[Path] = field(default_factory=set)

    def files(self, file: Path, within: tuple[str, ...]) -> set[Path]:
        """Unpack the archive that lies in `file`; `within` names those that it was inside of."""
        try:
            opened = zipfile.ZipFile(file)
        except DAMAGE as error:
            self._refuse(within, error)
        with opened:
            members = [(own, self._path(own, within)) for own in opened.infolist()]
            for member, path in members:
                if path is None:
                    continue
                place = (*within, str(path))
                if path.suffix.lower() == ".zip":
                    self._count_archive(place)
                elif not any(path.match(pattern) for pattern in self.wanted):
                    continue
                self._count_bytes(member.file_size, place)
                self._unpack(opened, member, path, place)
        return self.written

    def _path(self, member: zipfile.ZipInfo, within: tuple[str, ...]) -> PurePosixPath | None:
        """Return the path of a member, None for a folder; refuse what cannot be a file's."""
        name = member.filename.replace("\\", "/")
        path, place = PurePosixPath(name), "/".join((*within, name))
        if path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1]):
            raise InputError(f"{self.archive}: its member {place!r} leads out of the folder")
        if name.endswith("/"):
            return None
        if not path.name or name.endswith("/.") or len(os.fsencode(path.name)) > LONGEST_NAME:
            raise InputError(
                f"{self.archive}: its member {place!r:.300} has no name that a file could have"
            )
        return path

    def _unpack(
        self,
        opened: zipfile.ZipFile,
        member: zipfile.ZipInfo,
        path: PurePosixPath,
        place: tuple[str, ...],
    ) -> None:
        with hidden_beside(self.folder / path.name) as beside:
            with beside.open("wb") as target:
                try:
                    with opened.open(member) as source:
                        shutil.copyfileobj(source, target, 1 << 20)
                except DAMAGE as error:
                    self._refuse(place, error)
            if path.suffix.lower() == ".zip":
                self.files(beside, place)
                return
            if self.folder / path.name in self.written:
                raise InputError(f"{self.archive}: holds two files named {path.name}")
            os.replace(beside, self.folder / path.name)
            self.written.add(self.folder / path.name)

    def _count_bytes(self, size: int, place: tuple[str, ...]) -> None:
        """Count what a member says it holds: zipfile never gives more of it than that."""
        self.bytes += size
        if self.bytes > self.most:
            raise InputError(
                f"{self.archive}: its member {'/'.join(place)!r} brings what is unpacked to "
                f"{self.bytes:,} bytes; at most {self.most:,} are accepted of an archive this size"
            )

    def _count_archive(self, place: tuple[str, ...]) -> None:
        self.archives += 1
        for count, most, what in (
            (len(place), MOST_DEPTH, "archives inside one another"),
            (self.archives, MOST_ARCHIVES, "archives inside it"),
        ):
            if count > most:
                raise InputError(
                    f"{self.archive}: its member {'/'.join(place)!r} is one of more than {most} "
                    f"{what}; at most {most} are accepted"
                )

    def _refuse(self, place: tuple[str, ...], error: Exception) -> NoReturn:
        """Say what is damaged; an error of the disk, which has a number, stays what it is."""
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise error
        which = f"its member {'/'.join(place)!r}: " if place else ""
        raise InputError(f"{self.archive}: cannot be unpacked: {which}{error}") from error
