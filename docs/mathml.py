"""A hook of mkdocs: formulas become MathML when the site is built, and no page fetches anything.

Markdown has `$...$` and `$$...$$`, which GitHub shows as formulas too; arithmatex marks them, and
latex2mathml turns them into what browsers set by themselves.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **rest: Any) -> str:
    """Set the formulas of a page."""
    return FORMULA.sub(_set, content)


def _set(found: re.Match[str]) -> str:
    tex = html.unescape(found["tex"]).strip()
    block = found["tag"] == "div"
    math = convert(tex, display="block" if block else "inline")
    # The converter leaves the sign behind \bigl and the like as it is written.
    math = math.replace(r">\{<", ">{<").replace(r">\}<", ">}<")
    # The formula's own text is kept, for those who copy it or hear it.
    label = html.escape(" ".join(tex.split()), quote=True)
    math = math.replace("<math ", f'<math alttext="{label}" ', 1)
    return f'<div class="formula">{math}</div>' if block else math
