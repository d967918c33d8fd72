"""State that all threads of a process share: one thread at a time changes it, and puts it back.

Python's filters of warnings, torch's default generators and the precision of its matrix products
exist once. Two threads that each save, change and restore one of them leave it changed: what the
second one saved is what the first one had set. So each has a lock, held as long as the change.
Whoever needs several takes them in the order of `STATES`.

A forked child has none of its parent's threads, but torch's OpenMP waits for them for ever at the
next operation large enough to be shared out. So a child takes one thread, which waits for nobody,
and new locks: the holder of an old one may not be there. Children that are spawned have all cores.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

STATES = ("warnings", "generators", "precision", "threads")
_locks = {state: threading.RLock() for state in STATES}


@contextmanager
def alone(state: str) -> Iterator[None]:
    """Keep other threads from one of `STATES`."""
    with _locks[state]:
        yield


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category."""
    with alone("warnings"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Compute a GPU's matrix products in TF32, whatever is set outside."""
    with alone("precision"):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


class _Threads:
    """How many threads of Python have set torch's number, and what it was before the first."""

    changed, before = 0, 1


def threads_outside() -> int:
    """Return torch's number of threads before all changes."""
    with alone("threads"):
        return _Threads.before if _Threads.changed else torch.get_num_threads()


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Let torch use this number of threads; None is the number set outside.

    Torch has a number for each thread of Python, and one that new threads begin with, which may be
    what another thread has set for a while: so the number outside is that before all changes.
    """
    with alone("threads"):
        present = torch.get_num_threads()  # asked in any case: a new thread begins with it then
        if not _Threads.changed:
            _Threads.before = present
        _Threads.changed += 1
        before = _Threads.before
        torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        with alone("threads"):
            _Threads.changed -= 1
            torch.set_num_threads(before)


def _begin_child() -> None:
    _locks.update({state: threading.RLock() for state in STATES})
    _Threads.changed = 0
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_begin_child)
