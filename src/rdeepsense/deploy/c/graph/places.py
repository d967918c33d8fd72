"""Where a program finds its values, as C: of one row, or of each of some rows.

Some rows go through a program together, step by step, so that the weights of a step are near for
all of them. Row r has its values in `w[r]`, and reads and writes what lies r times as far as the
row is long.
"""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.deploy.c.graph.buffers import Buffers


@dataclass(frozen=True)
class Places:
    """The values of a program: value 0 is `x`, the last one `to`, others lie in the buffer."""

    buffers: Buffers
    sizes: tuple[int, ...]
    many: bool = False

    def pointer(self, value: int) -> str:
        """Return where a value is, inside of a loop over rows where there are some."""
        return self._at(value, self.many)

    def first(self, value: int) -> str:
        """Return where a value of the first row is."""
        return self._at(value, False)

    def apart(self, value: int) -> str:
        """Return how far a value of the next row is."""
        name = self._name(value)
        return "BETWEEN" if name == "w" else str(self.sizes[0 if name == "x" else -1])

    @property
    def lists(self) -> str:
        """Return the room for lists."""
        return "&w[r].lists" if self.many else "&w->lists"

    def loop(self, lines: list[str]) -> list[str]:
        """Repeat lines for each row."""
        if not self.many:
            return lines
        return ["for (r = 0; r < rows; ++r) {", *(f"    {line}" for line in lines), "}"]

    def _name(self, value: int) -> str:
        if value + 1 == len(self.sizes):
            return "to"
        return "x" if self.buffers.homes[value][0] == 0 else "w"

    def _at(self, value: int, each: bool) -> str:
        name = self._name(value)
        if name == "w":
            base = "w[r].arena" if each else "w->arena"
        else:
            base = f"{name} + r * {self.apart(value)}" if each else name
        offset = 0 if name == "to" else self.buffers.start(value)
        return f"{base} + {offset}" if offset else base
