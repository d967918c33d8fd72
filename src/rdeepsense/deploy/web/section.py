"""A custom section of a WebAssembly file: bytes that go with the code and that scripts can read.

A section is a byte that says its kind, 0 for custom ones, its length, and here the length of its
name, the name, and the content. Lengths are LEB128: seven bits a byte, the lowest first.
"""

from __future__ import annotations

HEADER = b"\0asm\1\0\0\0"


def with_section(module: bytes, name: str, content: bytes) -> bytes:
    """Return the module with one more section at its end."""
    if not module.startswith(HEADER):
        raise ValueError("this is no WebAssembly of version 1")
    named = name.encode()
    body = leb128(len(named)) + named + content
    return module + b"\0" + leb128(len(body)) + body


def leb128(value: int) -> bytes:
    """Write a number that is not negative."""
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | 0x80 * (value > 0))
        if not value:
            return bytes(found)
