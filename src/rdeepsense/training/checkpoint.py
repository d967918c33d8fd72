"""Checkpoints of a training: state of the loop and of the bank, written atomically."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from rdeepsense.errors import CheckpointError, InputError
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import check_fields, several, whole

# --------------------------------------------------------------------------------------------------
# Checkpoints: the state of a run in one file
#
# The file is a model file of kind "checkpoint". It carries a fingerprint of data, networks and
# settings; a run refuses the checkpoint of another.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Check that a checkpoint has exactly the state of the run
#
# The run itself says which tensors belong to it and of what shape, so nothing in the file is used
# before it is like the state that it replaces. The fingerprint has been compared by then; it cannot
# vouch for a file that someone wrote.
# --------------------------------------------------------------------------------------------------

LARGEST_WEIGHT = 1e15
COUNTS = ("best_step", "stale")  # of steps and of evaluations


def check_state(
    path: Path,
    header: Header,
    tensors: Mapping[str, Tensor],
    present: Mapping[str, Tensor],
    last_step: int,
) -> None:
    """Refuse a checkpoint that is not a state of the run whose `present` state is given."""
    try:
        _check_header(header, last_step)
        steps, evaluations = header["steps"], len(header["evaluated_at"])
        wanted = _wanted(present, evaluations)
        for name, (shape, dtype) in wanted.items():
            found = tensors.get(name)
            if found is None:
                raise InputError(f"lacks the tensor {name}")
            if (tuple(found.shape), found.dtype) != (shape, dtype):
                raise InputError(
                    f"{name} has shape {tuple(found.shape)} and type {found.dtype}, the run asks "
                    f"for {shape} and {dtype}"
                )
        for name in tensors:
            if name not in wanted:
                raise InputError(f"{name!r:.60} is no tensor of this run")
        for name in COUNTS:
            if not bool(((tensors[name] >= 0) & (tensors[name] <= steps)).all()):
                raise InputError(f"{name} is not within the {steps} steps of the run so far")
        for name, value in tensors.items():
            # The others may have diverged; what was kept had a finite NLL.
            if name.startswith("kept.") and not bool((value.abs() <= LARGEST_WEIGHT).all()):
                raise InputError(f"{name} holds NaN or numbers beyond {LARGEST_WEIGHT:g}")
    except InputError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _check_header(header: Header, last_step: int) -> None:
    step = whole(0, last_step)
    check_fields(header, {"steps": step, "evaluated_at": several(step, 2 * last_step + 1)})
    at = header["evaluated_at"]
    if at != sorted(set(at)) or (at and at[-1] > header["steps"]):
        raise InputError(f"evaluated_at = {at!r:.60} does not rise to steps = {header['steps']}")


def _wanted(
    present: Mapping[str, Tensor], evaluations: int
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Name every tensor: those of the run, and what an evaluation adds to them."""
    wanted = {
        name: (tuple(value.shape), value.dtype)
        for name, value in present.items()
        if not name.startswith("kept.") and name != "history"
    }
    if evaluations:
        for name in [name for name in wanted if name.startswith("bank.")]:
            wanted[name.replace("bank.", "kept.", 1)] = wanted[name]
        best = present["best_nll"]
        wanted["history"] = ((evaluations, *best.shape), best.dtype)
    return wanted
