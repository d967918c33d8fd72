"""What a checkpoint may hold: exactly the state of the run that takes it up.

The run itself says which tensors belong to it and of what shape, so nothing in the file is used
before it is like the state that it replaces. The fingerprint has been compared by then; it cannot
vouch for a file that someone wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from rdeepsense.container import Header
from rdeepsense.errors import CheckpointError, InputError
from rdeepsense.fields import check_fields, several, whole

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
