"""Downloads that resume, and archives unpacked into a folder."""

from __future__ import annotations

import errno
import hashlib
import http.client
import ipaddress
import json
import lzma
import os
import re
import shutil
import ssl
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from rdeepsense._files import hidden_beside, sweep, write_whole
from rdeepsense.errors import InputError, RDeepSenseError

if TYPE_CHECKING:
    from rdeepsense._progress import Progress


# --------------------------------------------------------------------------------------------------
# Resumable downloads
#
# While a file comes in it is `NAME.part`, beside it `NAME.part.json` with what the server said of
# it, so that parts of two versions are never put together. Under its own name there is only a whole
# file, with `NAME.json` beside it: the address, the size and the SHA-256 checksum of the first
# download. Later ones must give the same, or the checksum that the caller asks for. Redirects are
# followed to https alone; how often a server is asked and how much it may send is bounded.
# --------------------------------------------------------------------------------------------------

CHUNK = 1 << 18
ATTEMPTS = 5  # in a row that bring nothing new
MOST_ATTEMPTS = 200  # in one call, however much each of them brings
MOST_BYTES = 1 << 36  # of one file
PAUSE = 2.0  # seconds before the next attempt
TIMEOUT = 60.0
NETWORK = (
    urllib.error.URLError,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
    http.client.HTTPException,
)


def fetch(url: str, path: Path, sha256: str | None = None, progress: Progress | None = None) -> str:
    """Download to `path` unless it is there already; return its checksum."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"url = {url!r}: must begin with http:// or https://")
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(f"sha256 = {sha256!r}: give 64 hexadecimal digits")
    record = _beside(path, ".json")
    wanted, whose = sha256, "the one asked for"
    if wanted is None:
        wanted, whose = _read_json(record).get("sha256"), f"that of the first download ({record})"
    if path.exists():
        found = checksum(path)
        _compare(path, found, wanted, whose)
    else:
        part = _beside(path, ".part")
        _download(url, part, progress)
        found = checksum(part)
        try:
            _compare(path, found, wanted, whose)
        except InputError:
            _forget(part)  # going on with it could never end well
            raise
        content = {"url": url, "bytes": _size(part), "sha256": found}
        write_whole(record, json.dumps(content, indent=2) + "\n")
        os.replace(part, path)
        _forget(part)
    return found


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _compare(path: Path, found: str, wanted: str | None, whose: str) -> None:
    if wanted is not None and found != wanted.lower():
        raise InputError(f"{path}: its SHA-256 is {found}, but {whose} is {wanted.lower()}")


def _download(url: str, part: Path, progress: Progress | None) -> None:
    """Fill the partial file until it is whole; attempts in a row that bring nothing are few."""
    failures, reason, farthest = 0, "", _size(part)
    for _ in range(MOST_ATTEMPTS):
        if failures == ATTEMPTS:
            break
        if failures:
            time.sleep(PAUSE)
        try:
            if _attempt(url, part, progress):
                return
            reason = "the connection ended early"
        except NETWORK as error:
            reason = str(error) or type(error).__name__
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise RDeepSenseError(f"{url}: {reason}") from None
        finally:
            if progress:
                progress.close()
        # Where a server begins anew each time, only what goes beyond all attempts is progress.
        size = _size(part)
        failures, farthest = 0 if size > farthest else failures + 1, max(size, farthest)
    raise RDeepSenseError(
        f"{url}: {reason}; what came in is kept, and the same command goes on from there"
    )


def _attempt(url: str, part: Path, progress: Progress | None) -> bool:
    """Make one request; return whether the partial file is whole after it."""
    known, have = _read_json(_beside(part, ".json")), _size(part)
    if have and known.get("bytes") == have:
        return True
    validator = known.get("etag") or known.get("modified")
    # Without a validator nobody could tell whether the rest is of the same file.
    headers = {"Range": f"bytes={have}-", "If-Range": validator} if have and validator else {}
    request = urllib.request.Request(url, headers={"User-Agent": "rdeepsense", **headers})
    try:
        response = urllib.request.build_opener(SafeRedirects).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and headers:
            _forget(part)
            raise http.client.HTTPException("the file is another one now") from None
        raise
    with response:
        begin, said = _said(response)
        _check_size(url, part, said.get("bytes", 0))
        if begin == 0:
            have = 0
            _forget(part)
            write_whole(_beside(part, ".json"), json.dumps(said))
        elif begin != have or any(known.get(key) not in (None, said[key]) for key in said):
            _forget(part)
            raise http.client.HTTPException("the file is another one now")
        return _copy(response, part, have, said.get("bytes"), progress)


def _copy(
    response: Any, part: Path, have: int, total: int | None, progress: Progress | None
) -> bool:
    """Copy what the server sends to the end of the file; return whether that was all of it."""
    if progress and total:
        progress.start(part.stem, total, have)
    with part.open("ab") as file:
        while have <= MOST_BYTES and (chunk := response.read(CHUNK)):
            file.write(chunk)
            have += len(chunk)
            if progress and total:
                progress.update(have, f"{have / 1e6:,.1f} of {total / 1e6:,.1f} MB")
        file.flush()
        os.fsync(file.fileno())
    _check_size(response.url, part, have)
    if total is not None:
        return have == total
    if not response.chunked:  # http.client notices itself where a stream in chunks is cut
        raise RDeepSenseError(f"{response.url}: the server does not say how long the file is")
    return True


def _said(response: Any) -> tuple[int, dict[str, Any]]:
    """Return the first byte of the answer; size, ETag and date, where the server tells."""
    headers = response.headers
    said = {"etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}
    if str(said["etag"]).startswith("W/"):
        del said["etag"]  # weak: equal in meaning, not in bytes
    if response.status != http.client.PARTIAL_CONTENT:
        begin, size = "0", headers.get("Content-Length")
    else:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", "").strip())
        if match is None:
            raise http.client.HTTPException("the server's Content-Range cannot be read")
        begin, size = match[1], match[2]
    told = {key: value for key, value in said.items() if value is not None}
    return int(begin), told if size is None else {"bytes": int(size), **told}


def _check_size(url: str, part: Path, size: int) -> None:
    if size > MOST_BYTES:
        _forget(part)
        raise RDeepSenseError(
            f"{url}: sends {size:,} bytes or more; at most {MOST_BYTES:,} are accepted"
        )


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects to https, which nobody on the way can change; on this machine also http."""

    # Any: the response and its headers, as urllib's own signature leaves them.
    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request to follow a redirect with, or refuse it."""
        local = _is_local_http(req.full_url) and _is_local_http(newurl)
        if not local and urllib.parse.urlsplit(newurl).scheme != "https":
            raise RDeepSenseError(f"{req.full_url}: redirects to {newurl}; only https is followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_local_http(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    try:
        local = ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        local = parts.hostname == "localhost"
    return local and parts.scheme == "http"


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _beside(part, ".json").unlink(missing_ok=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _read_json(path: Path) -> dict[str, Any]:
    """Return the content of the small file beside a download; empty where there is none."""
    if not path.exists():
        return {}
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        content.get("sha256")
    except (ValueError, AttributeError):
        raise InputError(f"{path}: is damaged; delete it to do without it") from None
    return content


# --------------------------------------------------------------------------------------------------
# Extraction of files from nested zip archives
# --------------------------------------------------------------------------------------------------

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
