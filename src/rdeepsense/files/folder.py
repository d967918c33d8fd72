"""Writing of a folder: beside, to the disk, and swapped in as one.

Linux and macOS can exchange two folders in one step, so that a reader finds the old files or the
new ones and never some of each. Where the file system cannot, the old folder is renamed away first:
a process killed between the two renames leaves no folder of that name, and still no mixture.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from rdeepsense.errors import InputError
from rdeepsense.files.beside import held, hidden_beside, hidden_name, sweep
from rdeepsense.files.whole import naming, real, sync_folder

_HERE = -100  # AT_FDCWD
_SWAP = 2  # RENAME_EXCHANGE, and macOS's RENAME_SWAP
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


def write_folder(folder: Path, files: Mapping[str, str | bytes], own: Collection[str]) -> None:
    """Write a folder of texts or bytes: whatever happens, all its files are old or all are new.

    A name may have folders before it, such as "src/model.c". A folder that is there is replaced as
    one, if it holds nothing but files named in `own`.
    """
    with naming(folder):
        target = real(folder)
        with hidden_beside(target, os.mkdir) as beside:
            inner = {parent for name in files for parent in Path(name).parents} - {Path(".")}
            for parent in sorted(inner):
                (beside / parent).mkdir()
            for name, content in files.items():
                with (beside / name).open("wb") as file:
                    file.write(content if isinstance(content, bytes) else content.encode())
                    file.flush()
                    os.fsync(file.fileno())
            for parent in inner:
                sync_folder(beside / parent)
            sync_folder(beside)
            if target.exists():
                _take_place(beside, target, own)
            else:
                os.rename(beside, target)
        sync_folder(target.parent)
        sweep(target.parent)


def check_strangers(folder: Path, own: Collection[str], name: Path | None = None) -> None:
    """Refuse a folder, called by its name, that holds anything but files of ours."""
    for found in sorted(os.listdir(folder)):
        below = {one.removeprefix(f"{found}/") for one in own if one.startswith(f"{found}/")}
        place = folder / found
        if below and place.is_dir() and not place.is_symlink():
            check_strangers(place, below, (name or folder) / found)
        elif found not in own:
            raise InputError(f"{name or folder}: holds {found!r}, which is no part of an export")


def _take_place(beside: Path, target: Path, own: Collection[str]) -> None:
    check_strangers(target, own)
    shutil.copymode(target, beside)
    with held(target):
        _exchange(beside, target)
        try:  # again, where nobody adds to it any more
            check_strangers(beside, own, target)
        except InputError:
            _exchange(beside, target)
            raise


def _exchange(a: Path, b: Path) -> None:
    """Let two folders change names, in one step where the system can."""
    if exchanged_at_once(a, b):
        return
    aside = hidden_name(b)
    try:
        os.rename(b, aside)
        os.rename(a, b)
    except BaseException:
        if aside.exists() and not b.exists():
            os.rename(aside, b)
        raise
    os.rename(aside, a)


def exchanged_at_once(a: Path, b: Path) -> bool:
    """Exchange two names in one step, or tell that this cannot be done here."""
    if sys.platform == "win32":
        return False
    library = ctypes.CDLL(None, use_errno=True)  # of C, in which Python itself runs
    names = os.fsencode(a), os.fsencode(b)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, names[0], _HERE, names[1], _SWAP)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _SWAP)
    else:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), os.fspath(b))
