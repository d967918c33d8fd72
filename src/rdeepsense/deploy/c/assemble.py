"""Runtime files of C made into one file of an export.

The runtime is C that compiles as it lies there, with switches (`#if LAPLACE`) for what only some
models need. An export is the same text, less what its switches turn off, with the files it includes
in their places, and with the model's own prefix: `model_predict` of the runtime is `gait_predict`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RUNTIME = Path(__file__).parent / "runtime"
SWITCHES = "switches.h"  # there are none left in an export
INCLUDE = re.compile(r'#include "(\w+\.h)"')
DIRECTIVE = re.compile(r"#(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")


@dataclass(frozen=True)
class Assembly:
    """What a file's text depends on; `sections` stand where it includes a file of their name."""

    name: str
    switches: Mapping[str, bool]
    sections: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: Path) -> str:
        """The text of a runtime file, as the export has it."""
        return re.sub(r"\n{3,}", "\n\n", "".join(self._lines(path, set())))

    def _lines(self, path: Path, included: set[str]) -> Iterator[str]:
        lines = path.read_text().splitlines(keepends=True)
        for line in chosen(lines, self.switches):
            found = INCLUDE.match(line)
            if found and found[1] == SWITCHES:
                continue
            if found and found[1] in self.sections:
                yield self.sections[found[1]]
            elif found and found[1] != "model.h" and (RUNTIME / found[1]).exists():
                yield from self._lines(RUNTIME / found[1], included)
            elif not (line.startswith("#include <std") and line in included):
                included.add(line)
                yield renamed(line, self.name)


def renamed(text: str, name: str) -> str:
    """The text with this prefix in place of the runtime's own, `model`."""
    text = re.sub(r"\bmodel_(?=\w)", f"{name}_", text)
    return re.sub(r"\bMODEL_(?=\w)", f"{name.upper()}_", text)


def chosen(lines: list[str], switches: Mapping[str, bool]) -> Iterator[str]:
    """The lines that the preprocessor would leave, as far as switches alone decide it.

    A condition of switches is one without parentheses, such as `A && !B || C`. Any other, such as
    one on the processor, stays with all its branches.
    """
    # Of every open #if: whether it is ours, whether this branch is on, whether one has been.
    depth: list[tuple[bool, bool, bool]] = []
    for line in lines:
        found = DIRECTIVE.match(line)
        if found is None:
            if all(on for _, on, _ in depth):
                yield line
            continue
        word, condition = found[1], found[2]
        holds = _holds(condition, switches) if word in ("if", "elif") else None
        if word in ("if", "ifdef", "ifndef"):
            ours = holds is not None
            depth.append((ours, holds is not False, holds is not False))
        else:
            ours, _, before = depth.pop()
            if ours and word == "elif" and holds is None:
                raise ValueError(
                    f"{line.strip()}: part of an #if on switches, but not on them alone"
                )
            if ours and word != "endif":
                depth.append((True, not before and holds is not False, before or holds is True))
            elif word != "endif":
                depth.append((False, True, True))
        if not ours and all(on for _, on, _ in depth):
            yield line


def _holds(condition: str, switches: Mapping[str, bool]) -> bool | None:
    """Whether a condition of switches holds; None for any other."""
    alternatives = [[term.strip() for term in one.split("&&")] for one in condition.split("||")]
    if any(term.removeprefix("!") not in switches for one in alternatives for term in one):
        return None
    return any(
        all(switches[term.removeprefix("!")] != term.startswith("!") for term in one)
        for one in alternatives
    )
