"""Text in whatever encoding it came, as UTF-8; what had to be assumed is said."""

from __future__ import annotations

import codecs
import re

from rdeepsense.errors import InputError

PROBE = 65_536  # bytes that tell text from other things
CHUNK = 1 << 20
MARKED = {  # by the mark at the beginning; that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
HALF = 0.4  # of the bytes of ASCII in UTF-16 without a mark, about half are 0, all odd or all even


def as_utf8(name: str, data: bytes) -> tuple[bytes, str | None]:
    """Return the text in UTF-8 without a mark, and what was assumed of its encoding."""
    for mark, encoding in MARKED.items():
        if data.startswith(mark):
            if encoding == "UTF-8":
                return data[len(mark) :], None
            return _decoded(name, data, encoding), encoding
    start = data[:PROBE]
    if (unmarked := _unmarked_utf16(start)) is not None:
        return _decoded(name, data, unmarked), unmarked
    if NO_TEXT.search(start):
        raise InputError(
            f"{name}: is not a table: neither text nor Parquet, Arrow, Excel or JSON lines"
        )
    place = _first_not_utf8(data)
    if place is None:
        return data, None
    encoding = "Windows-1252" if re.search(rb"[\x80-\x9f]", data) else "Latin-1"
    text = _decoded(name, data, encoding)
    around = data[max(0, place - 40) : place + 40].decode(encoding, errors="replace")
    word = next((w for w in re.findall(r"\w+", around) if not w.isascii()), "")
    example = f", so that a word is {word!r}" if word else ""
    return text, f"{encoding}, as it is not UTF-8{example}"


def _decoded(name: str, data: bytes, encoding: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:
        raise InputError(f"{name}: is not text in {encoding}: {error}") from error


def _first_not_utf8(data: bytes) -> int | None:
    """Return where the first byte is that UTF-8 does not have; in pieces, without a copy."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(data), CHUNK):
        try:
            decoder.decode(data[begin : begin + CHUNK], begin + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            return begin + error.start
    return None


def _unmarked_utf16(start: bytes) -> str | None:
    even, odd = start[::2].count(0), start[1::2].count(0)
    most = HALF * len(start)
    if odd > most and not even:
        return "UTF-16-LE"
    return "UTF-16-BE" if even > most and not odd else None
