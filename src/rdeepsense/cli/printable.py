"""Text that does nothing to a terminal but appear.

Names of columns and classes come from files of anybody. An escape sequence among them could clear
the screen, set its title, or write to the clipboard; controls of direction could hide text.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return text with control characters written out, such as \\x1b; lines and tabs stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
