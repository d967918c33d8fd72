"""Everything that is written of two models, by a process that may kill itself at any call."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rdeepsense as rds
from rdeepsense import _files
from rdeepsense.paper.cells import write_cell
from rdeepsense.training.checkpoint import Checkpoint

CALLS = ("fsync", "replace", "rename", "mkdir", "unlink")
Content = dict[str, bytes]


def two_models() -> list[Any]:
    """Fit two models of different shapes, so that a mixture of their files could not work."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + 0.2 * rng.normal(size=120)
    settings: dict[str, Any] = {"epochs": 2, "random_state": 0, "verbose": False, "device": "cpu"}
    return [
        rds.RDeepSenseRegressor(hidden=h, **settings, effort="quick").fit(X, y)
        for h in ((4,), (7, 5))
    ]


def writers(models: list[Any]) -> Mapping[str, Callable[[Path, int], object]]:
    """Return what writes each kind of file or folder of the first or the second model."""

    def checkpoint(path: Path, which: int) -> None:
        state = {name: p.detach() for name, p in models[which].network_.named_parameters()}
        Checkpoint(path, "a run").save({"steps": which}, state)

    def cell(path: Path, which: int) -> None:
        write_cell(path, {"name": "a cell"}, {"nll": [which + 0.5] * 200})

    def folder(path: Path, which: int) -> None:
        texts = [{"a": "old", "in/b": "old", "gone": "old"}, {"a": "new", "in/b": "new"}]
        _files.write_folder(path, texts[which], ("a", "in/b", "gone"))

    return {
        "folder": folder,
        "model": lambda path, which: models[which].save(path),
        "live": lambda path, which: models[which].live().save(path),
        "checkpoint": checkpoint,
        "cell": cell,
        "folded": lambda path, which: rds.export(models[which], path, to="folded"),
        "onnx": lambda path, which: rds.export(models[which], path, to="onnx"),
        "c99": lambda path, which: rds.export(models[which], path, to="c99"),
        "c99 by renames": lambda path, which: _by_renames(models[which], path),
    }


def _by_renames(model: Any, path: Path) -> None:
    """Export as where two names cannot be exchanged at once."""
    once, _files.exchanged_at_once = _files.exchanged_at_once, lambda a, b: False
    try:
        rds.export(model, path, to="c99")
    finally:
        _files.exchanged_at_once = once


def content(folder: Path) -> Content:
    """Return every file below a folder, hidden ones and empty folders too."""
    return {
        path.relative_to(folder).as_posix(): b"" if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def killed(work: Callable[[], object], nth: int | None = None, after: bool = False) -> bool:
    """Do the work in a child that kills itself at the nth call; tell whether it came to that."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if nth is not None:
                _die_at(nth, after)
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status not in (0, signal.SIGKILL):
        raise AssertionError(f"the child ended with status {status}")
    return status == signal.SIGKILL


def _die_at(nth: int, after: bool) -> None:
    """Kill this process before or after the nth of the calls that change what is on the disk."""
    count = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            mine = count == nth
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **options)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    _files.exchanged_at_once = counted(_files.exchanged_at_once)


def one_thread() -> None:
    """Let forked children use torch: threads do not come along."""
    torch.set_num_threads(1)
