"""What a package may be called, and its version: what all four tools take."""

from __future__ import annotations

import re

from rdeepsense.deploy.c.text import identifier
from rdeepsense.errors import InputError

# Headers of C and of Arduino's core, in whatever case: ours would be found in their place.
HEADERS = frozenset(
    re.findall(
        r"\w+",
        """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
        stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings
        tgmath threads time uchar unistd wchar wctype alloca malloc memory new
        binary client common hardwareserial ipaddress main pgmspace print printable server spi
        stream tone udp usb wire wstring replay stored""",
    )
)
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*)?"
    r"(\+[\dA-Za-z-]+(\.[\dA-Za-z-]+)*)?"
)
LONGEST_VERSION = 20  # of PlatformIO
FIRST = "1.0.0"


def package_name(name: str) -> str:
    """Give a name that begins every C name and is that of the header and of the library.

    Lower-case letters, digits and underscores, at most 16, which all four tools take; Arduino keeps
    names that begin with its own for itself.
    """
    plain = identifier(name)
    if plain in HEADERS:
        raise InputError(f"name={name!r}: {plain}.h would hide a header of that name; give another")
    if "arduino" in plain or "library" in plain:
        raise InputError(f"name={name!r} has a word that Arduino keeps for itself; give another")
    return plain


def package_version(version: str | None, digest: str) -> str:
    """Give the version, or one that names the model by the first letters of its digest."""
    if version is None:
        return f"{FIRST}+{digest[:8]}" if digest else FIRST
    if not SEMVER.fullmatch(version) or len(version) > LONGEST_VERSION:
        raise InputError(
            f"version={version!r} is no semantic version of at most {LONGEST_VERSION} letters; "
            "accepted: such as '1.2.0' or '1.2.0-beta.1'"
        )
    return version


def registry_name(name: str) -> str:
    """Give the name as PlatformIO's registry spells it: dashes, no two in a row, none at an end."""
    return re.sub("_+", "-", name).strip("-")
