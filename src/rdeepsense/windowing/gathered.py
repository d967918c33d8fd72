"""Windows as an array that is gathered where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Integers
from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.report import WindowReport


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """Windows (n, time, channels) of a log, of which only the samples are in memory.

    Indexing gathers: ``w[3]`` is one window, ``w[:100]`` and ``w[indices]`` are arrays of them,
    ``np.asarray(w)`` is all. Overlapping windows share their samples until then. Estimators take
    a `Windows` as X, and keep its recipe.

    Parameters
    ----------
    y : the label or value of each window; None without `label`.
    groups : for each column of `by`, the value of each window's recording.
    starts : the time of each window's first sample, in seconds or as a date.
    recipe : how they were cut, with the rate and the gap that were found.
    report : what became of the log's samples and windows.
    """

    signal: NDArray[Any]  # float32; float64 where the recipe says so
    first: Integers  # the sample that each window begins with
    y: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    starts: NDArray[Any]
    recipe: Recipe
    report: WindowReport

    @property
    def sensors(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each sensor, in the order of the channels."""
        return self.recipe.sensors

    @property
    def ends(self) -> NDArray[Any]:
        """The time of each window's last sample."""
        assert self.recipe.rate is not None
        length = (self.recipe.length - 1) / self.recipe.rate
        if self.starts.dtype.kind == "M":
            return self.starts + np.timedelta64(round(length * 1e9), "ns")
        found: NDArray[Any] = self.starts + length
        return found

    @property
    def runs(self) -> list[slice]:
        """Windows that follow each other by one hop within their recording, run by run."""
        hop = self.recipe.step / self.recipe.rate if self.recipe.rate else self.recipe.hop
        apart = np.diff(self.starts)
        passed = apart / np.timedelta64(1, "s") if self.starts.dtype.kind == "M" else apart
        follows = np.abs(passed - hop) < 1e-3 * hop
        for values in self.groups.values():
            follows &= values[1:] == values[:-1]
        begins = np.flatnonzero(~follows) + 1
        ends = [0, *begins.tolist(), len(self.first)]
        return [slice(a, b) for a, b in pairwise(ends) if b > a]

    @property
    def shape(self) -> tuple[int, int, int]:
        """What `np.asarray` will have."""
        return len(self.first), self.recipe.length, self.signal.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a sample: float32, or float64 where that does not tell samples apart."""
        return self.signal.dtype

    @property
    def ndim(self) -> int:
        """Three: windows, time, channels."""
        return 3

    def __len__(self) -> int:
        return len(self.first)

    def gather(self, indices: Any) -> NDArray[Any]:  # Any: whatever numpy takes between brackets
        """Return some windows as an array."""
        first = self.first[indices]
        if not len(self.signal):
            return np.zeros((*np.shape(first), *self.shape[1:]), self.dtype)
        samples, channels = self.signal.strides
        rows = len(self.signal) - self.recipe.length + 1
        view = np.lib.stride_tricks.as_strided(
            self.signal, (rows, *self.shape[1:]), (samples, samples, channels), writeable=False
        )
        found: NDArray[Any] = np.array(view[first])
        return found

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        if isinstance(indices, tuple):
            raise InputError("windows are taken by one index; gather them, then take of the array")
        return self.gather(indices)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("windows are gathered, which copies")
        found = self.gather(slice(None))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __repr__(self) -> str:
        sensors = ", ".join(f"{name} {len(own)}" for name, own in self.sensors.items())
        return f"Windows(shape={self.shape}, sensors=({sensors}), rate={self.recipe.rate:g})"
