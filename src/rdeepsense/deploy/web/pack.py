"""The files of a page: its sources in one script, one HTML, a manifest and a service worker.

A script's `import` lines say what it needs; here the files stand below each other in that order,
and the lines are left out. Names are thus unique over all files, which a browser checks: twice the
same name in a module is an error.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

PAGE = Path(__file__).parent / "page"
PUBLIC = "model.js"  # whose names others import
IMPORT = re.compile(r'^import (?:[^;]*? from )?"([^"]+)";\n', re.M)
COMMENT = re.compile(r"^\s*//.*\n", re.M)
INDENT = re.compile(r"^ +(?=\S)", re.M)  # no text of these scripts runs over lines
POLICY = (
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src '{style}'",
    "connect-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
)
COLOUR = "#0072b2"


def packed(face: str, title: str, wasm: bytes, more: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a page by name; those of `more` are kept for offline as well."""
    style = (PAGE / "style.css").read_text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = "; ".join(POLICY).replace("{style}", f"sha256-{digest}")
    html = (PAGE / "index.html").read_text()
    for mark, text in (("@policy", policy), ("@title", escape(title)), ("@style", style)):
        html = html.replace(mark, text)
    files = {
        "index.html": html.encode(),
        "rdeepsense.js": script([f"faces/{face}.js", "start.js"]).encode(),
        "model.wasm": wasm,
        "manifest.webmanifest": _manifest(title).encode(),
        "icon.svg": (PAGE / "icon.svg").read_bytes(),
        **more,
    }
    return files | {"worker.js": _worker(files, title).encode()}


def script(entries: list[str]) -> str:
    """Return these files and all that they import as one module."""
    order: list[Path] = []
    for entry in entries:
        _gather(PAGE / entry, order)
    return "".join(_plain(path) for path in order)


def _gather(path: Path, order: list[Path]) -> None:
    path = path.resolve()
    if path in order:
        return
    for needed in IMPORT.findall(path.read_text()):
        _gather(path.parent / needed, order)
    order.append(path)


def _plain(path: Path) -> str:
    text = COMMENT.sub("", IMPORT.sub("", path.read_text()))
    if path.name == PUBLIC:
        return text
    return re.sub(r"^export ", "", INDENT.sub("", text), flags=re.M)


def _manifest(title: str) -> str:
    icon = {"src": "icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"}
    content = {
        "name": title,
        "short_name": title[:12],
        "start_url": "./",
        "scope": "./",
        "display": "standalone",
        "background_color": COLOUR,
        "theme_color": COLOUR,
        "icons": [icon],
    }
    return json.dumps(content, indent=1) + "\n"


def _worker(files: Mapping[str, bytes], title: str) -> str:
    """Return the worker; its version is that of the files, its name that of the page."""
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:16]
    page = hashlib.sha256(title.encode()).hexdigest()[:8]
    text = COMMENT.sub("", (PAGE / "worker.js").read_text())
    text = text.replace("@version", f"rdeepsense-{page}-{digest}")
    return text.replace("@files", " ".join(["./", *files]))
