"""Checkpoints of workers that train together: all save after the same step, each its own state.

Weights are the same on all, random states are not. The clock of the first worker says after how
many steps they save again, so that no step has to ask.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import torch
from torch import Tensor

from rdeepsense import model_file
from rdeepsense.training.checkpoint import SHARE_OF_TIME, Checkpoint
from rdeepsense.training.peers import Peers

CPU = torch.device("cpu")
LEAST = 20.0  # seconds between two states: starting workers again takes as long


class JointCheckpoint(Checkpoint):
    """A place to save this worker's state; `hand_over` takes those of all to where they are safe.

    `hand_over` is called by every worker after the same step, and may wait for the others.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: str,
        peers: Peers,
        hand_over: Callable[[], None],
        device: torch.device = CPU,
    ) -> None:
        super().__init__(path, fingerprint)
        self._peers, self._hand_over, self._device = peers, hand_over, device
        self._wait, self._steps = 1, 0
        self._since = time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time to save again; asked once after each step."""
        self._steps += 1
        return self._steps >= self._wait

    def save(self, header: model_file.Header, tensors: dict[str, Tensor]) -> None:
        """Write the state and hand it over; the next one is due when the cost is paid off."""
        begin = time.monotonic()
        pace = (begin - self._since) / max(1, self._steps)
        super().save(header, tensors)
        self._hand_over()
        self._since = time.monotonic()
        wait = max(LEAST, (self._since - begin) / SHARE_OF_TIME)
        steps = max(1, round(wait / max(pace, 1e-6)))
        self._wait, self._steps = self._peers.agreed(steps, self._device), 0
