"""Checkpoints: a run's whole state in one file, so that a killed run ends like any other.

The file is a model file of kind "checkpoint". It carries a fingerprint of data, networks and
settings; a run refuses the checkpoint of another.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from rdeepsense import model_file
from rdeepsense.errors import CheckpointError

SHARE_OF_TIME = 0.05


class Checkpoint:
    """A place to save a run's state, as often as a twentieth of the time allows."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self._next = 0.0

    def load(self) -> tuple[model_file.Header, dict[str, Tensor]] | None:
        """Return the saved state of this very run, or None when there is none yet."""
        if not self.path.exists():
            return None
        header, tensors = model_file.read(self.path)
        if header.get("kind") != "checkpoint":
            raise CheckpointError(f"{self.path}: is a model, not a checkpoint; it is left as it is")
        if header.get("fingerprint") != self.fingerprint:
            raise CheckpointError(
                f"{self.path}: belongs to a run with other data, settings or networks; "
                "delete it or give another path"
            )
        return header, {name: torch.from_numpy(value) for name, value in tensors.items()}

    def due(self) -> bool:
        """Tell whether it is time to save again."""
        return time.monotonic() >= self._next

    def save(self, header: model_file.Header, tensors: dict[str, Tensor]) -> None:
        """Write the state; the next one is due when this one's cost is paid off."""
        start = time.monotonic()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        full = {"kind": "checkpoint", "fingerprint": self.fingerprint, **header}
        model_file.write(self.path, full, arrays)
        end = time.monotonic()
        self._next = end + (end - start) / SHARE_OF_TIME


def fingerprint(settings: str, contents: Iterable[Tensor | str | None]) -> str:
    """Return one digest of everything that a run's result depends on."""
    digest = hashlib.sha256(f"{torch.__version__} {settings}".encode())
    for content in contents:
        if isinstance(content, Tensor):
            digest.update(f"{content.dtype} {tuple(content.shape)}".encode())
            digest.update(content.detach().cpu().contiguous().numpy().data)
        else:
            digest.update(str(content).encode())
    return digest.hexdigest()
