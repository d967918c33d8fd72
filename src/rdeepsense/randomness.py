"""Random numbers that depend on a seed alone, whatever other threads draw.

Whoever runs a pass opens a context with `drawing`; the layers below ask it for the `current`
generator. The context belongs to the thread, and the generator to the context, so threads cannot
take numbers from each other, and the caller's own generators stay where they are. Outside of any
context, as in a loop of the user's own, layers draw from torch's default generator like torch's.

Modules of the user's own may draw from the default generator inside of the library's passes too.
There is one for all threads, so such passes are `elsewhere`: one at a time, with the default
generators seeded and then put back. A thread of the caller's that draws meanwhile is not protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

from rdeepsense.process_wide import alone

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
            stack.enter_context(alone("generators"))
            borrowed = _defaults(device)
            for generator in borrowed:
                stack.callback(generator.set_state, generator.get_state())
                generator.manual_seed(seed)
        token = _source.set(_Source(seeded(seed, device), borrowed))
        stack.callback(_source.reset, token)
        yield


class Watch:
    """Whether numbers were drawn."""

    drawn = False


@contextmanager
def watching(modules: Iterable[nn.Module], device: torch.device) -> Iterator[Watch]:
    """Put torch's own generators back after passes of modules, and tell whether they drew there."""
    watch = Watch()
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
