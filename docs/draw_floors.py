"""Draw the floors of the house: the packages of rdeepsense and who imports whom.

    python docs/draw_floors.py          writes docs/images/floors.svg
    python docs/draw_floors.py --check  fails where that picture is not of the present code

The floors come from the contract in pyproject.toml, the lines from the imports in src.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "rdeepsense"
PICTURE = ROOT / "docs" / "images" / "floors.svg"

LEFT, TOP, CELL, MARGIN = 144, 100, 30, 12  # where the dots begin, and how far apart they are

STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1c2b2d; }
text.column { font-size: 12px; }
rect.paper { fill: #fcfefe; }
rect.floor { fill: #00796b; opacity: 0.1; }
rect.own { fill: #00796b; opacity: 0.35; }
line { stroke: #00796b; opacity: 0.15; }
circle { fill: #00796b; }
circle.up { fill: #d32f2f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6efee; }
  rect.paper { fill: #1b2022; }
  rect.floor, rect.own, circle { fill: #4db6ac; }
  line { stroke: #4db6ac; }
  circle.up { fill: #ff8a80; }
}
"""


def floors() -> list[list[str]]:
    """Return the rooms of each floor that exist, top floor first."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["id"] == "floors")
    rooms = [re.findall(r"\w+", layer) for layer in layers]
    there = [[room for room in floor if sources(room)] for floor in rooms]
    return [floor for floor in there if floor]


def sources(room: str) -> list[Path]:
    """Return the files of a room: a package, or one module."""
    module = PACKAGE / f"{room}.py"
    return [module] if module.is_file() else sorted((PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Name the rooms that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("rdeepsense."))


def draw() -> str:
    """Return the picture as SVG: a row for each room, a dot for each room that it imports."""
    house = floors()
    rooms = [room for floor in house for room in floor]
    floor_of = {room: number for number, floor in enumerate(house) for room in floor}
    width = LEFT + CELL * len(rooms) + 5 * MARGIN
    height = TOP + CELL * len(rooms) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The floors of rdeepsense: a room imports only rooms below its own</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
    ]
    for number, floor in enumerate(house):
        if number % 2 == 0:
            y = TOP + CELL * rooms.index(floor[0])
            across = LEFT + CELL * len(rooms) - MARGIN
            parts.append(
                f'<rect class="floor" x="{MARGIN}" y="{y}" width="{across}" '
                f'height="{CELL * len(floor)}"/>'
            )
    for row, room in enumerate(rooms):
        parts += heading(room, row, TOP + CELL * len(rooms))
        uses = {other for path in sources(room) for other in imported(path)} - {room}
        for column, other in enumerate(rooms):
            if other in uses:
                up = floor_of[other] < floor_of[room]
                parts.append(dot(room, other, row, column, up))
    return "\n".join([*parts, "</svg>\n"])


def heading(room: str, row: int, bottom: int) -> list[str]:
    """Return what names a room: its row and its column."""
    name = f"{room}/" if len(sources(room)) > 1 else room
    y, x = TOP + CELL * row, LEFT + CELL * row
    middle = x + CELL // 2
    return [
        f'<text x="{2 * MARGIN}" y="{y + 20}">{name}</text>',
        f'<line x1="{middle}" y1="{TOP}" x2="{middle}" y2="{bottom}"/>',
        f'<rect class="own" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>',
        f'<text class="column" x="{middle}" y="{TOP - 8}" '
        f'transform="rotate(-50 {middle} {TOP - 8})">{name}</text>',
    ]


def dot(room: str, other: str, row: int, column: int, up: bool) -> str:
    """Return the dot of a room that imports another."""
    x, y = LEFT + CELL * column + CELL // 2, TOP + CELL * row + CELL // 2
    return (
        f'<circle class="{"up" if up else "down"}" cx="{x}" cy="{y}" r="6">'
        f"<title>{room} imports {other}</title></circle>"
    )


def main() -> None:
    """Write the picture, or check that it is up to date."""
    picture = draw()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(picture)
    elif not PICTURE.is_file() or PICTURE.read_text() != picture:
        sys.exit(f"{PICTURE.name} is not of the present code; run: python docs/draw_floors.py")


if __name__ == "__main__":
    main()
