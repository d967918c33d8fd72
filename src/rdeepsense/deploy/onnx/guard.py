"""The guard of a model as ONNX nodes, and the same in torch for graphs that torch writes.

`status` (batch,) is a number of `rdeepsense.Status`, `flagged_input` (batch,) the first input that
it is for, or -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense.arrays import Singles
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.onnx.nodes import INPUT, Nodes
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.guard import LARGEST, Guard
from rdeepsense.status import Status

NAMES = ("status", "flagged_input")


def guard_nodes(nodes: Nodes, guard: Guard, named: str = NAMES[0]) -> str:
    """Add the two outputs, a status of this name; returns whether rows (batch, 1) are flagged."""
    below = nodes.node("Less", [INPUT, nodes.single("low", _held(guard).low)], "below")
    above = nodes.node("Greater", [INPUT, nodes.single("high", _held(guard).high)], "above")
    out = nodes.node("Or", [below, above], "beyond")
    if guard.levels is not None:
        numbers = nodes.constant("is_number", guard.levels == 0)
        out = nodes.node("And", [out, numbers], "numbers_beyond")
    unknown = nodes.constant("never_missing", guard.missing == 0)
    missing = nodes.node("And", [nodes.node("IsNaN", [INPUT], "is_nan"), unknown], "not_known")
    strange = None if guard.levels is None else _unknown_levels(nodes, guard.levels)
    told = [("out", out, Status.OUT_OF_RANGE), ("missing_any", missing, Status.MISSING)]
    told += [] if strange is None else [("unknown", strange, Status.UNKNOWN_LEVEL)]
    found = [
        nodes.node("Mul", [_any(nodes, name, flags), _whole(nodes, name, value)], f"{name}_flag")
        for name, flags, value in told
    ]
    status = nodes.node("Add", found[:2], "status_column")
    for more in found[2:]:
        status = nodes.node("Add", [status, more], "whole_status")
    nodes.node("Squeeze", [status, nodes.constant("last_axis", np.array([1]))], named)
    flagged = nodes.node("Cast", [status], "flagged", to=nodes.onnx.TensorProto.BOOL)
    either = nodes.node("Or", [out, missing], "either")
    if strange is not None:
        either = nodes.node("Or", [either, strange], "any_of_them")
    first = nodes.node("Cast", [either], "either_whole", to=nodes.onnx.TensorProto.INT32)
    first = nodes.node("ArgMax", [first], "first", axis=1, keepdims=1)
    none = nodes.constant("none", np.array(-1))
    column = nodes.node("Where", [flagged, first, none], "flagged_column")
    nodes.node("Squeeze", [column, "last_axis"], "flagged_input")
    return flagged


def moved(nodes: Nodes, guard: Guard, network: FloatNetwork | Int8Network, z: str) -> str:
    """Add z of numbers that are moved into their ranges; of what is encoded it is left alone.

    As z is monotone, also once it is rounded, its ends are those of the ranges.
    """
    per_scale: Singles | None = network.per_scale
    if isinstance(network, Int8Network) and per_scale is None:
        per_scale = network.per_step / np.float32(2)
    assert per_scale is not None
    ends, held = [], _held(guard)
    for name, values, none in (("low_z", held.low, -LARGEST), ("high_z", held.high, LARGEST)):
        numbers = slice(None) if network.encoding is None else list(network.encoding.numbers)
        own = values.astype(np.float32)[numbers]
        with np.errstate(over="ignore"):
            scaled = (own - network.centre[: len(own)]) * per_scale[: len(own)]
        end = np.full(len(network.centre), none, np.float32)
        end[: len(own)] = np.clip(scaled, -LARGEST, LARGEST)
        ends.append(nodes.single(name, end))
    return nodes.node("Min", [nodes.node("Max", [z, ends[0]], "z_from"), ends[1]], "z_within")


def widened(nodes: Nodes, guard: Guard, flagged: str, std: str) -> None:
    """Add `std`: at least that of the training targets where a row is flagged."""
    wide = nodes.node("Max", [std, nodes.single("fallback", guard.fallback)], "wide")
    nodes.node("Where", [flagged, wide, std], "std")


def mixed(nodes: Nodes, guard: Guard, flagged: str, probs: str) -> None:
    """Add `probs`: half the training frequencies where a row is flagged."""
    total = nodes.node("Add", [probs, nodes.single("fallback", guard.fallback)], "both")
    half = nodes.node("Mul", [total, nodes.single("half", 0.5)], "mixed")
    nodes.node("Where", [flagged, half, probs], "probs")


class TorchGuard(torch.nn.Module):
    """The guard of windows, or of any rows."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        held = _held(guard)
        self.low, self.high, self.fallback = (
            torch.from_numpy(values.astype(np.float32))
            for values in (held.low, held.high, held.fallback)
        )
        self.unknown = torch.from_numpy(held.missing == 0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return `status` and `flagged_input`."""
        out = (x < self.low) | (x > self.high)
        missing = torch.isnan(x) & self.unknown
        flags = [part.flatten(1).any(1).to(torch.int32) for part in (out, missing)]
        status = flags[0] * int(Status.OUT_OF_RANGE) + flags[1] * int(Status.MISSING)
        either = (out | missing).reshape(x.shape[0], -1, x.shape[-1]).any(1).to(torch.int32)
        first = either.argmax(1)
        return status, torch.where(status > 0, first, torch.full_like(first, -1))

    def widened(self, std: Tensor, status: Tensor) -> Tensor:
        """Return the stds of flagged rows, at least those of the training targets."""
        return torch.where((status > 0)[:, None], torch.maximum(std, self.fallback), std)

    def mixed(self, probs: Tensor, status: Tensor) -> Tensor:
        """Return probabilities, half the training frequencies where a row is flagged."""
        return torch.where((status > 0)[:, None], (probs + self.fallback) * 0.5, probs)


def _held(guard: Guard) -> Guard:
    """Return the guard with ranges that float32 holds."""
    low, high = np.maximum(guard.low, -LARGEST), np.minimum(guard.high, LARGEST)
    return Guard(low, high, guard.missing, guard.fallback, guard.levels)


def _unknown_levels(nodes: Nodes, levels: NDArray[Any]) -> str:
    """Add which inputs are categories with a code that is none."""
    floor = nodes.node("Floor", [INPUT], "whole_code")
    known = [
        nodes.node("Equal", [INPUT, floor], "is_whole"),
        nodes.node("Greater", [INPUT, nodes.single("least_code", -0.5)], "is_code"),
        nodes.node("Less", [INPUT, nodes.single("level_counts", levels - 0.5)], "is_below"),
    ]
    both = nodes.node("And", known[:2], "is_whole_code")
    level = nodes.node("And", [both, known[2]], "is_level")
    level = nodes.node("Or", [level, "is_nan"], "is_level_or_missing")
    other = nodes.node("Not", [level], "is_other")
    return nodes.node("And", [other, nodes.constant("is_category", levels > 0)], "unknown_level")


def _any(nodes: Nodes, name: str, flags: str) -> str:
    """Add 1 for rows (batch, 1) with a flag, else 0."""
    whole = nodes.node("Cast", [flags], f"{name}_whole", to=nodes.onnx.TensorProto.INT32)
    return nodes.node("ReduceMax", [whole], f"{name}_any", axes=[1], keepdims=1)


def _whole(nodes: Nodes, name: str, value: int) -> str:
    return nodes.constant(f"{name}_value", np.array(int(value), np.int32))
