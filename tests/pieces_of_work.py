"""Pieces of work that other processes can take: they import this file."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from rdeepsense.errors import TrainingError


@dataclass(frozen=True)
class Square:
    number: int

    def run(self) -> int:
        if self.number < 0:
            raise TrainingError("no number\nbelow 0")
        return self.number**2


@dataclass(frozen=True)
class Mistaken:
    def run(self) -> int:
        raise KeyError("a mistake of the piece itself")


@dataclass(frozen=True)
class Threads:
    def run(self) -> int:
        import torch

        return torch.get_num_threads()


@dataclass(frozen=True)
class Dying:
    """Kills its process the first `times`, and notes each try in a file."""

    log: Path
    times: int

    def run(self) -> int:
        with self.log.open("a") as file:
            file.write("x")
        tries = len(self.log.read_text())
        if tries <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        return tries


@dataclass(frozen=True)
class Endless:
    """Says that it has begun, and who it is, through a pipe with a name; then waits for ever."""

    pipe: Path

    def run(self) -> None:
        with self.pipe.open("w") as file:
            file.write(f"{os.getpid()}\n")
        signal.pause()
