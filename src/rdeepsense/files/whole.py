"""Writing of one file: beside, to the disk, renamed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rdeepsense.files.beside import hidden_beside, sweep


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file: whatever happens, `path` holds the old content or the new."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place at the end of the block, if that is reached.

    A link stays, and what it points to is replaced. A device or a pipe is written to as it is.
    An OSError names `path`, not the file beside it.
    """
    with naming(path):
        if _is_special(path):
            with open(path, "wb") as device:
                yield device
            return
        target = real(path)
        sweep(target.parent)
        with hidden_beside(target) as beside:
            with beside.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        sync_folder(target.parent)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name a path in the errors of the system: a full disk, say, names no file by itself."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def real(path: str | os.PathLike[str]) -> Path:
    """Return what a path stands for, links followed, whether it is there or not."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return target


def sync_folder(folder: Path) -> None:
    """Make a rename itself durable, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_special(path: str | os.PathLike[str]) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
