"""Files by path or by URL: this machine's, S3's, Google's, or those of any fsspec protocol.

A URL is opened by pyarrow's own file systems, else through fsspec. Credentials are those of the
environment (`AWS_ACCESS_KEY_ID`, a profile, the machine's role): a URL that holds some is refused
before it is stored, recorded or said anywhere.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit, urlunsplit

from rdeepsense._files import replacing
from rdeepsense.errors import InputError, require

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
