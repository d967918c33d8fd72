"""Functions that a forward calls, as steps.

Functions that only move numbers are run a second time on the numbers' places, which tells what
they move where, whatever their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import torch
from torch import Tensor

from rdeepsense.deploy.folded.graph.pointwise import ACTIVATIONS, Activation, Mean, Sum
from rdeepsense.deploy.folded.graph.shaping import Concatenated
from rdeepsense.deploy.tracing.tape import Tape

MOVING = frozenset(
    ("transpose", "permute", "flatten", "reshape", "view", "unflatten", "unsqueeze", "squeeze",
     "movedim", "moveaxis", "swapaxes", "swapdims", "__getitem__", "split", "chunk", "unbind",
     "select", "narrow", "cat", "concat", "stack", "contiguous", "clone", "flip", "expand",
     "expand_as", "tensor_split", "detach", "t", "ravel", "__get__")
)  # fmt: skip
SAME = frozenset(("dropout", "to", "float", "double", "requires_grad_"))
READING = frozenset(("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__"))
ADDING = frozenset(("add", "__add__", "__radd__", "__iadd__"))

# Any: arguments and results of torch's functions are of all kinds.
Arguments = tuple[Any, ...]


def record(
    tape: Tape, function: Callable[..., Any], given: Arguments, named: dict[str, Any], out: Any
) -> None:
    """Add what a function did; refuse one that is not known."""
    name = function.__name__
    tensors = list(_tensors((given, named)))
    if not any(map(tape.knows, tensors)):
        return  # of constants alone
    if name in READING:
        raise tape.refusal(f"its forward reads numbers of a row into Python ({name})")
    results = list(_tensors(out))
    if not results:
        return  # shapes and the like
    if name in MOVING:
        _moved(tape, function, given, named, results)
    elif name in SAME:
        tape.note(tape.value(tensors[0]), results[0])
    elif name.rstrip("_") in ACTIVATIONS:
        tape.note(tape.add(Activation((tape.value(tensors[0]),), name.rstrip("_"))), results[0])
    elif name == "mean":
        _mean(tape, tensors[0], _dims(given[1:], named), results[0])
    elif name in ADDING and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
        tape.note(tape.add(Sum((tape.value(tensors[0]), tape.value(tensors[1])))), results[0])
    else:
        raise tape.refusal(f"its forward calls {name}")


def _moved(
    tape: Tape,
    function: Callable[..., Any],
    given: Arguments,
    named: dict[str, Any],
    results: list[Tensor],
) -> None:
    """Find out where each number comes from."""
    sources: dict[int, int] = {}  # the value of each tensor read, and where it begins
    total = 0

    def places(tensor: Tensor) -> Tensor:
        nonlocal total
        value = tape.value(tensor)
        if value not in sources:
            sources[value] = total
            total += tensor.numel()
        start = sources[value]
        return torch.arange(start, start + tensor.numel()).reshape(tensor.shape)

    found = list(_tensors(function(*_mapped(given, places), **_mapped(named, places))))
    whole = None
    for place, result in zip(found, results, strict=True):
        for value, start in sources.items():
            size = tape.size(value)
            if bool(((place >= start) & (place < start + size)).all()):
                tape.note(tape.add_moved(value, place - start, size), result)
                break
        else:
            whole = tape.add(Concatenated(tuple(sources))) if whole is None else whole
            tape.note(tape.add_moved(whole, place, total), result)


def _mean(tape: Tape, x: Tensor, dims: list[int] | None, out: Tensor) -> None:
    value, shape = tape.value(x), list(x.shape)
    axes = range(x.ndim) if dims is None else sorted({d % x.ndim for d in dims})
    for axis in reversed(axes):
        count, inner = shape[axis], prod(shape[axis + 1 :])
        if count > 1:
            value = tape.add(Mean((value,), count, inner))
        shape[axis] = 1
    tape.note(value, out)


def _dims(given: Arguments, named: dict[str, Any]) -> list[int] | None:
    """Return the axes that `mean` was given."""
    dims = named.get("dim", named.get("axis", given[0] if given else None))
    if dims is None:
        return None
    return [dims] if isinstance(dims, int) else list(dims)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change the tensors among arguments."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(one, change) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_mapped(one, change) for one in value)
    return value
