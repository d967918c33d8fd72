"""Hidden files beside their targets, and the removal of those whose writers were killed.

What is being written has the name `.NAME.rdeepsense-PID-RANDOM`, and its writer holds a lock on it
(flock). The system lets go of a lock when a process ends, however it ends: whoever gets the lock of
such a file knows that nobody will finish it. Unlike the number of a process, a lock cannot be taken
for another's after a restart, between containers or between machines that share a folder.

Windows has no such locks; there nothing is swept.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_OURS = re.compile(r"\..+\.rdeepsense-\d+-[0-9a-f]{16}", re.DOTALL)
_LONGEST = 200  # bytes of the target's name; most file systems end at 255 for the whole


def new_file(path: Path) -> None:
    """Make an empty file where there is none, readable as the user's mask says."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))


@contextmanager
def hidden_beside(target: Path, make: Callable[[Path], None] = new_file) -> Iterator[Path]:
    """Make a hidden file, or with `make=os.mkdir` a folder, that nobody sweeps during the block.

    What is under its name at the end of the block is removed.
    """
    path, lock = _made(target, make)
    try:
        yield path
    finally:
        try:
            _remove(path)
        finally:
            _close(lock)


def sweep(folder: Path) -> None:
    """Remove from a folder what this library was writing there when it was killed.

    What a living process writes is left alone, and so is whatever cannot be locked or removed.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if _OURS.fullmatch(name):
            _sweep_one(folder / name)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep others from sweeping a path, if it comes to bear a hidden name."""
    lock, _ = _lock(path)
    try:
        yield
    finally:
        _close(lock)


def hidden_name(target: Path) -> Path:
    """Return a new name beside a target."""
    short = os.fsencode(target.name)[:_LONGEST].decode(errors="ignore")
    return target.with_name(f".{short}.rdeepsense-{os.getpid()}-{secrets.token_hex(8)}")


def _made(target: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    while True:
        path = hidden_name(target)
        make(path)
        lock, free = _lock(path)
        # Before it was locked it looked like one left over, so it may just have been swept.
        if free and path.exists():
            return path, lock
        _close(lock)


def _sweep_one(path: Path) -> None:
    lock, _ = _lock(path)
    if lock is None:
        return
    with suppress(OSError):
        if os.fstat(lock).st_uid == os.geteuid():
            _remove(path)
    _close(lock)


def _lock(path: Path) -> tuple[int | None, bool]:
    """Return the handle of a lock, None where there is none to have; and whether it was free."""
    if sys.platform == "win32":
        return None, True
    # Some network file systems lock only what is open for writing, which a folder never is.
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR
    try:
        handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return None, error.errno != errno.ENOENT
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        return None, not isinstance(error, BlockingIOError)
    return handle, True


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        with suppress(FileNotFoundError):  # another process may be sweeping it
            shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
