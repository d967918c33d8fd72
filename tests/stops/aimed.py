"""kill -9 aimed at each call that writes: the old content, the new one, and nothing left over."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from writers import Content, content, killed

HIDDEN = re.compile(r"\.target\.rdeepsense-\d+-[0-9a-f]{16}(/.*)?")


class Target:
    """One kind of file or folder, written of the first model and then of the second."""

    def __init__(self, write: Callable[[Path, int], object], folder: Path, at_once: bool) -> None:
        self._write, self._folder, self._at_once = write, folder, at_once
        self.whole = [self._clean(which) for which in (0, 1)]
        assert self.whole[0] != self.whole[1]

    def _fresh(self) -> Path:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        return self._folder / "target"

    def _clean(self, which: int) -> Content:
        self._write(self._fresh(), which)
        return content(self._folder)

    def round(self, nth: int, after: bool, present: bool = True) -> bool:
        """Kill a process that replaces the first by the second; False where it ended before.

        With `present=False` nothing was there before.
        """
        path = self._fresh()
        if present:
            self._write(path, 0)
        if not killed(lambda: self._write(path, 1), nth, after):
            return False
        found = content(self._folder)
        seen = {name: data for name, data in found.items() if not HIDDEN.fullmatch(name)}
        allowed = [self.whole[1], self.whole[0] if present else {}]
        if not self._at_once:
            allowed.append({})
        assert seen in allowed, f"call {nth}: {sorted(seen)} are neither the old ones nor the new"
        assert not killed(lambda: self._write(path, 1))
        assert content(self._folder) == self.whole[1], f"call {nth}: {sorted(content(path.parent))}"
        return True
