"""Process-wide state of torch: threads, random generators, interrupts."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

# --------------------------------------------------------------------------------------------------
# Process-wide state of torch, changed by one thread at a time
#
# Python's filters of warnings, torch's default generators and the precision of its matrix products
# exist once. Two threads that each save, change and restore one of them leave it changed: what the
# second one saved is what the first one had set. So each has a lock, held as long as the change.
# Whoever needs several takes them in the order of `STATES`.
#
# A forked child has none of its parent's threads, but torch's OpenMP waits for them for ever at the
# next operation large enough to be shared out. So a child takes one thread, which waits for nobody,
# and new locks: the holder of an old one may not be there. Children that are spawned have all
# cores.
# --------------------------------------------------------------------------------------------------

STATES = ("warnings", "generators", "precision", "threads")
_locks = {state: threading.RLock() for state in STATES}


@contextmanager
def exclusive(state: str) -> Iterator[None]:
    """Keep other threads from one of `STATES`."""
    with _locks[state]:
        yield


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category."""
    with exclusive("warnings"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Compute a GPU's matrix products in TF32, whatever is set outside."""
    with exclusive("precision"):
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
    with exclusive("threads"):
        return _Threads.before if _Threads.changed else torch.get_num_threads()


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Let torch use this number of threads; None is the number set outside.

    Torch has a number for each thread of Python, and one that new threads begin with, which may be
    what another thread has set for a while: so the number outside is that before all changes.
    """
    with exclusive("threads"):
        present = torch.get_num_threads()  # asked in any case: a new thread begins with it then
        if not _Threads.changed:
            _Threads.before = present
        _Threads.changed += 1
        before = _Threads.before
        torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        with exclusive("threads"):
            _Threads.changed -= 1
            torch.set_num_threads(before)


def _begin_child() -> None:
    _locks.update({state: threading.RLock() for state in STATES})
    _Threads.changed = 0
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_begin_child)


# --------------------------------------------------------------------------------------------------
# Random numbers that depend on a seed alone, in any thread
#
# Whoever runs a pass opens a context with `drawing`; the layers below ask it for the `current`
# generator. The context belongs to the thread, and the generator to the context, so threads cannot
# take numbers from each other, and the caller's own generators stay where they are. Outside of any
# context, as in a loop of the user's own, layers draw from torch's default generator like torch's.
#
# Modules of the user's own may draw from the default generator inside of the library's passes too.
# There is one for all threads, so such passes are `elsewhere`: one at a time, with the default
# generators seeded and then put back. A thread of the caller's that draws meanwhile is not
# protected.
# --------------------------------------------------------------------------------------------------

CPU = torch.device("cpu")
# Modules of torch's that draw; dropouts and recurrent layers are converted, where they can be.
DRAWING = (_DropoutNd, nn.RNNBase, nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
INITIAL = (Tensor.uniform_, Tensor.normal_)  # what torch's layers draw their first weights with


class _Source(NamedTuple):
    generator: torch.Generator
    borrowed: tuple[torch.Generator, ...]  # torch's own, for modules that draw there


_source: ContextVar[_Source | None] = ContextVar("rdeepsense_random_numbers", default=None)


def seeded(seed: int, device: torch.device = CPU) -> torch.Generator:
    """Return a new generator of a device."""
    return torch.Generator(device).manual_seed(seed)


def current(device: torch.device) -> torch.Generator | None:
    """Return the generator to draw from on a device; None is torch's default."""
    source = _source.get()
    if source is None or source.generator.device.type != device.type:
        return None
    return source.generator


@contextmanager
def drawing(seed: int, device: torch.device = CPU, elsewhere: bool = False) -> Iterator[None]:
    """Draw from a generator of this seed; with `elsewhere` seed torch's own as well, for a while.

    The states of the latter come back at the end.
    """
    with ExitStack() as stack:
        borrowed: tuple[torch.Generator, ...] = ()
        if elsewhere:
            stack.enter_context(exclusive("generators"))
            borrowed = _defaults(device)
            for generator in borrowed:
                stack.callback(generator.set_state, generator.get_state())
                generator.manual_seed(seed)
        token = _source.set(_Source(seeded(seed, device), borrowed))
        stack.callback(_source.reset, token)
        yield


class DrawDetector:
    """Whether numbers were drawn."""

    drawn = False


@contextmanager
def watching(modules: Iterable[nn.Module], device: torch.device) -> Iterator[DrawDetector]:
    """Put torch's own generators back after passes of modules, and tell whether they drew there."""
    watch = DrawDetector()
    with drawing(0, device, draws_elsewhere(modules)):
        before = states()
        yield watch
        watch.drawn = any(not torch.equal(before[n], state) for n, state in states().items())


@contextmanager
def initialising(seed: int, elsewhere: bool = False) -> Iterator[None]:
    """Let torch's layers draw their first weights from a generator of this seed."""
    with drawing(seed, elsewhere=elsewhere), _Initialising(seeded(seed)):
        yield


def states() -> dict[str, Tensor]:
    """Return the states of all generators of the context, for a checkpoint."""
    return {str(number): g.get_state() for number, g in enumerate(_generators())}


def restore(saved: dict[str, Tensor]) -> None:
    """Go on from saved states."""
    for number, generator in enumerate(_generators()):
        generator.set_state(saved[str(number)])


def draws_elsewhere(things: Iterable[object]) -> bool:
    """Tell whether a module or an architecture may draw from torch's default generator.

    Those of the user's own classes may: nobody can tell from outside what their code does.
    """
    return any(_draws_elsewhere(type(thing)) for thing in things)


def _draws_elsewhere(kind: type) -> bool:
    if kind.__module__.startswith("rdeepsense."):
        return False
    return not kind.__module__.startswith("torch.nn.") or issubclass(kind, DRAWING)


def _generators() -> tuple[torch.Generator, ...]:
    source = _source.get()
    return () if source is None else (source.generator, *source.borrowed)


def _defaults(device: torch.device) -> tuple[torch.Generator, ...]:
    if device.type != "cuda":
        return (torch.default_generator,)
    torch.cuda.init()
    number = torch.cuda.current_device() if device.index is None else device.index
    return torch.default_generator, torch.cuda.default_generators[number]


class _Initialising(TorchFunctionMode):
    """A mode in which first weights come from a generator; like every mode, of its thread alone."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    # Any: as torch's own signature has it.
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        # The functions of torch.nn.init pass their generator on, None where none is given.
        if (func in INITIAL or "generator" in kwargs) and kwargs.get("generator") is None:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)


# --------------------------------------------------------------------------------------------------
# The number of threads of a training step
# --------------------------------------------------------------------------------------------------

ONE_THREAD_BELOW = 16_000_000  # multiply-adds of the widest layer, over members and rows


def sensible_threads(work: int, sharing: int = 1) -> AbstractContextManager[None]:
    """Use one thread for small steps; the number that was set comes back afterwards.

    Where several runs go on at the same time, those `sharing` the cores have a part each.
    """
    return torch_threads(1 if work < ONE_THREAD_BELOW else max(1, threads_outside() // sharing))


# --------------------------------------------------------------------------------------------------
# Interruption by Ctrl-C between two steps
# --------------------------------------------------------------------------------------------------


class StopOnInterrupt:
    """A context in which the first Ctrl-C sets `requested`; the second interrupts as usual."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> StopOnInterrupt:
        # Only the main thread may handle signals, and a process told to ignore Ctrl-C does so.
        self._handles = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) != signal.SIG_IGN
        )
        if self._handles:
            self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, self._before)
