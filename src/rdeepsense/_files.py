"""Files: atomic writes, on disk and at URLs (fsspec)."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qs, urlsplit, urlunsplit

from rdeepsense.errors import InputError, require

# --------------------------------------------------------------------------------------------------
# Atomic writes: a file or a folder appears complete or not at all
# --------------------------------------------------------------------------------------------------

# --------------------------------------------------------------------------------------------------
# Hidden temporary files beside their targets, and their cleanup
#
# What is being written has the name `.NAME.rdeepsense-PID-RANDOM`, and its writer holds a lock on
# it (flock). The system lets go of a lock when a process ends, however it ends: whoever gets the
# lock of such a file knows that nobody will finish it. Unlike the number of a process, a lock
# cannot be taken for another's after a restart, between containers or between machines that share a
# folder.
#
# Windows has no such locks; there nothing is swept.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Atomic writing of a file
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Atomic writing of a folder
#
# Linux and macOS can exchange two folders in one step, so that a reader finds the old files or the
# new ones and never some of each. Where the file system cannot, the old folder is renamed away
# first: a process killed between the two renames leaves no folder of that name, and still no
# mixture.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Public names
# --------------------------------------------------------------------------------------------------

__all__ = [
    "check_strangers",
    "hidden_beside",
    "replacing",
    "sweep",
    "write_folder",
    "write_whole",
]


# --------------------------------------------------------------------------------------------------
# Files by path or by URL: this machine's, S3's, Google's, or those of any fsspec protocol
#
# A URL is opened by pyarrow's own file systems, else through fsspec. Credentials are those of the
# environment (`AWS_ACCESS_KEY_ID`, a profile, the machine's role): a URL that holds some is refused
# before it is stored, recorded or said anywhere.
# --------------------------------------------------------------------------------------------------

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SECRET = re.compile(r"key|secret|token|password|credential|sig", re.IGNORECASE)
PIECE = 1 << 22


class Stat(NamedTuple):
    """The size of a file and when it was written, as `os.stat` names them."""

    st_size: int
    st_mtime_ns: int


def is_url(path: object) -> bool:
    """Tell whether this is a URL, such as "s3://bucket/folder", and no path."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def path_or_url(text: str) -> Path | Remote:
    """Return what an argument of the command line names."""
    return Remote.of(text) if is_url(text) else Path(text)


@dataclass(frozen=True)
class Remote:
    """A file or folder by its URL; other processes and machines may be given it."""

    url: str

    @classmethod
    def of(cls, url: str) -> Remote:
        """Take a URL; one with credentials in it is refused, and not repeated."""
        parts = urlsplit(url)
        secret = any(_SECRET.search(name) for name in parse_qs(parts.query, keep_blank_values=True))
        if "@" in parts.netloc or secret:
            raise InputError(
                f"a URL {parts.scheme}://... has credentials in it; leave them out and give them "
                "in the environment, as AWS_ACCESS_KEY_ID or a profile"
            )
        return cls(url)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(urlsplit(self.url).path).name

    @property
    def suffix(self) -> str:
        """How the name ends."""
        return PurePosixPath(self.name).suffix

    def child(self, name: str) -> Remote:
        """Name a file of this folder."""
        parts = urlsplit(self.url)
        path = f"{parts.path.rstrip('/')}/{name}"
        # By hand: urlunsplit drops the // of a scheme that it does not know and an empty host.
        query = f"?{parts.query}" if parts.query else ""
        return Remote(f"{parts.scheme}://{parts.netloc}{path}{query}")

    def open(self) -> Any:  # Any: of pyarrow, which ships no types
        """Open a file to be read at any place."""
        with _naming(self.url):
            files, path = _opened(self.url)
            return files.open_input_file(path)

    def read(self) -> bytearray:
        """Read a whole file."""
        with self.open() as file, _naming(self.url):
            return bytearray(file.read())

    def stat(self) -> Stat:
        """Return the size and the time of a file."""
        found = self._info()
        if not found.is_file:
            raise InputError(f"{self.url}: there is no such file")
        return Stat(found.size, found.mtime_ns or 0)

    def is_file(self) -> bool:
        """Tell whether there is such a file."""
        return bool(self._info().is_file)

    def files(self, suffix: str) -> list[Remote]:
        """Return the files of a folder whose names end so, by name; none where there is none."""
        with _naming(self.url):
            files, path = _opened(self.url)
            selector = require("pyarrow.fs", "cli").FileSelector(path, allow_not_found=True)
            found = [info.base_name for info in files.get_file_info(selector) if info.is_file]
        return [self.child(name) for name in sorted(found) if name.endswith(suffix)]

    @contextmanager
    def replacing(self) -> Iterator[Any]:
        """Open a file of this machine that becomes the object when the block ends well.

        An object comes to be when it is whole, so readers find the old one or the new one.
        """
        with tempfile.TemporaryFile() as spool:
            yield spool
            spool.flush()
            spool.seek(0)
            with _naming(self.url):
                files, path = _opened(self.url)
                with files.open_output_stream(path) as target:
                    shutil.copyfileobj(spool, target, PIECE)

    def _info(self) -> Any:
        with _naming(self.url):
            files, path = _opened(self.url)
            return files.get_file_info(path)


def read_bytes(path: str | os.PathLike[str] | Remote) -> bytearray:
    """Read a file of this machine or another's."""
    if isinstance(path, Remote):
        return path.read()
    return bytearray(Path(path).read_bytes())


@contextmanager
def replaced(path: Path | Remote) -> Iterator[Any]:
    """Open a file that takes the place of `path` at the end of the block, if that is reached."""
    with path.replacing() if isinstance(path, Remote) else replacing(path) as file:
        yield file


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Name the URL in what goes wrong, in one line."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{url}: {reason:.300}") from error


@functools.lru_cache(maxsize=32)
def _filesystem(root: str) -> Any:
    """Return the file system of a scheme, host and query."""
    fs = require("pyarrow.fs", "cli")
    try:
        return fs.FileSystem.from_uri(root)[0]
    except (ValueError, NotImplementedError):  # a scheme that pyarrow does not know
        protocol = urlsplit(root).scheme
        own = require("fsspec", "ray").filesystem(protocol)
        return fs.PyFileSystem(fs.FSSpecHandler(own))


def _opened(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path within it."""
    parts = urlsplit(url)
    root = urlunsplit((parts.scheme, parts.netloc, "/", parts.query, ""))
    path = f"{parts.netloc}{parts.path}"
    if parts.scheme == "file":
        path = parts.path
    return _filesystem(root), path.rstrip("/")
