"""The bytes of a table: of a file or stdin, unpacked, and what kind of table they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rdeepsense.errors import InputError, require

STDIN = Path("-")
PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
}
KINDS = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\xff\xff\xff\xff": "Arrow",
    b"FEA1": "Feather",
}
# What people give by mistake, and what to do about it.
FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an Excel file of before 2007; save it as .xlsx or CSV",
    b"\x89HDF": "an HDF5 file; write the table as Parquet or CSV",
    b"SQLite format 3": "an SQLite database; write the table as Parquet or CSV",
    b"\x93NUMPY": "a numpy array without columns' names; write it as Parquet or CSV",
    b"MATLAB 5.0": "a MATLAB file; write the table as Parquet or CSV",
    b"%PDF": "a PDF; write the table as CSV",
    b"<!doctype": "a web page, perhaps that of a failed download",
    b"<html": "a web page, perhaps that of a failed download",
}
LEAST_LIMIT, MOST_TIMES = 1 << 26, 200  # bytes that a packed file may always have; times its size
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


@dataclass(frozen=True)
class Content:
    """A table's name in messages, its bytes, its kind, and how it was packed."""

    name: str
    data: bytes
    kind: str  # "Parquet", "Arrow", "Feather", "Excel", "JSON" or "CSV"
    packed: str | None = None


def read_content(path: Path) -> Content:
    """Read a file, or stdin for "-", unpack it, and tell from its first bytes what it is."""
    name = "stdin" if path == STDIN else str(path)
    data = _bytes(path)
    packed = next((how for magic, how in PACKED.items() if data.startswith(magic)), None)
    if packed == "zip" and _is_excel(data):
        return Content(name, data, "Excel")
    if packed is not None:
        data = _unpacked(name, data, packed)
    return Content(name, data, kind_of(name, data), packed)


def _bytes(path: Path) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a table")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    return path.read_bytes()


def kind_of(name: str, data: bytes) -> str:
    """Tell from the first bytes what a table is; refuse what is none."""
    start = data[:512].lstrip()
    if not data or data.isspace():
        raise InputError(f"{name}: is empty")
    for magic, kind in KINDS.items():
        if data.startswith(magic):
            return kind
    if data[8:10] == b'{"' and b"\0" in data[:8]:
        raise InputError(f"{name}: is a safetensors file (a model?), not a table")
    for magic, what in FOREIGN.items():
        if start.lower().startswith(magic.lower()):
            raise InputError(f"{name}: is {what}")
    plain = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "JSON" if plain[:1] in (b"{", b"[") else "CSV"


def _is_excel(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except DAMAGED:
        return False


def check_unpacked(name: str, data: bytes) -> None:
    """Refuse a zip that unpacks to far more than it is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except DAMAGED as error:
        raise InputError(f"{name}: cannot be unpacked as zip: {error}") from error
    _check_size(name, size, data)


def _limit(data: bytes) -> int:
    return max(LEAST_LIMIT, MOST_TIMES * len(data))


def _check_size(name: str, size: int, data: bytes) -> None:
    if size > _limit(data):
        raise InputError(
            f"{name}: unpacks to more than {_limit(data) >> 20:,} MiB, far more than it is; unpack "
            "it first"
        )


def _unpacked(name: str, data: bytes, how: str) -> bytes:
    try:
        with _opened(name, data, how) as file:
            found = file.read(_limit(data) + 1)
    except InputError:
        raise
    except (*DAMAGED, RuntimeError, ValueError) as error:  # RuntimeError: there is a password
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{name}: cannot be unpacked as {how}: {reason}") from error
    _check_size(name, len(found), data)
    return bytes(found)


def _opened(name: str, data: bytes, how: str) -> IO[bytes]:
    if how == "zip":
        return _open_member(name, data)
    if how == "zstd":
        pyarrow = require("pyarrow", "cli")
        stream: IO[bytes] = pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd")
        return stream
    opener: Any = {"gzip": gzip.GzipFile, "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}[how]
    packed: IO[bytes] = opener(**{"fileobj" if how == "gzip" else "filename": io.BytesIO(data)})
    return packed


def _open_member(name: str, data: bytes) -> IO[bytes]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [
        member.filename
        for member in archive.infolist()
        if not member.is_dir() and "__MACOSX" not in PurePosixPath(member.filename).parts
    ]
    if len(names) != 1:
        found = f"{len(names)} files, such as {names[0]!r}" if names else "no file"
        raise InputError(f"{name}: holds {found}; one table is needed: unpack it and name the file")
    return archive.open(names[0])
