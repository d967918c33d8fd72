"""Numbers and names as C text. No text from a model file gets into C but through here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Texts
from rdeepsense.errors import InputError

LONGEST_NAME = 16  # C99 promises 31 letters of an external name, and ours add up to 11
PER_LINE = 8
# Degree, micro, ohm, dot and minus, as Unicode's compatible spelling (NFKD) has them.
SPELT = str.maketrans(
    {"\u00b0": "deg", "\u03bc": "u", "\u03a9": "ohm", "\u00b7": ".", "\u2212": "-"}
)


def identifier(name: str) -> str:
    """A prefix for C names out of any text: letters, digits and underscores."""
    if not isinstance(name, str):
        raise InputError(f"name = {name!r:.60} is no text")
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_").lower()
    plain = plain if not plain[:1].isdigit() else f"m{plain}"
    if not plain:
        raise InputError(f"name={name!r} has no letter or digit to make a C name of")
    if len(plain) > LONGEST_NAME:
        raise InputError(f"name={name!r} is too long; at most {LONGEST_NAME} letters")
    return plain


def remark(text: str) -> str:
    """Text that can stand in a C comment: no *, \\, ?, <, > or line break.

    Units keep their sense where they can: m/s² as m/s2, °C as degC, s⁻¹ as s-1.
    """
    plain = unicodedata.normalize("NFKD", text).translate(SPELT)
    return re.sub(r"[^A-Za-z0-9 _.,:;()\[\]%+/=^-]", "_", plain)[:80]


def labelled(
    names: Texts | None,
    units: Texts | None,
    count: int,
    written: Callable[[str], str] = remark,
) -> list[str]:
    """For each the name and, in brackets, the unit, as far as they are known."""
    parts = zip(names or ("",) * count, units or ("",) * count, strict=True)
    return [" ".join([written(n)] * bool(n) + [f"[{written(u)}]"] * bool(u)) for n, u in parts]


def number(value: float) -> str:
    """A float constant that reads back as the same float32."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def table(kind: str, name: str, values: NDArray[Any], size: str | None = None) -> str:
    """The definition of a constant table."""
    flat = values.ravel()
    items = [number(v) for v in flat] if kind == "float" else [str(v) for v in flat.tolist()]
    lines = [", ".join(items[start : start + PER_LINE]) for start in range(0, len(items), PER_LINE)]
    body = ",\n    ".join(lines)
    return f"const {kind} {name}[{size or len(items)}] = {{\n    {body}}};\n"
