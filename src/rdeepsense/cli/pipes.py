"""A stdout whose reader may go away, as that of `rdeepsense ... | head` does."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

BROKEN_PIPE = 141  # 128 and the number of SIGPIPE, as shells have it


class PatientOutput:
    """A stream that forgets what nobody reads any more, so that the work goes on to its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, text: str) -> int:
        """Write, or forget."""
        try:
            return len(text) if self.broken else self._stream.write(text)
        except BrokenPipeError:
            self.broken = True
            return len(text)

    def flush(self) -> None:
        """Flush, or forget."""
        try:
            if not self.broken:
                self._stream.flush()
        except BrokenPipeError:
            self.broken = True

    def __getattr__(self, name: str) -> Any:  # Any: whatever a stream has
        return getattr(self._stream, name)


def silence_stdout() -> None:
    """Send what Python has still in its buffers to nowhere, where it cannot fail."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # a stream without a file, as tests have it
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
