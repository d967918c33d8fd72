"""Weights of layers in the order that C reads them.

Floats lie in panels of outputs, in a panel input by input. Bytes lie in blocks of outputs, in a
block in groups of four inputs, in a group output by output, as those of fully-connected networks.
Inputs of a convolution follow one another column by column of its kernel; among bytes each column
is filled up to fours with zeros. Groups of a convolution lie one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.quantise import BLOCK

PANEL = 64  # outputs, see runtime/weighted.h


def by_columns(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Arrange weights as (groups, outputs, columns of the kernel, inputs of a column)."""
    split = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    if split.ndim == 3:
        return split[:, :, None]
    turned = split.transpose(0, 1, 4, 3, 2)
    return turned.reshape(*turned.shape[:3], -1)


def panels(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Lay floats out."""
    columns = by_columns(weight, groups)
    rows = columns.reshape(*columns.shape[:2], -1).transpose(0, 2, 1)
    parts = [
        one[:, first : first + PANEL].ravel()
        for one in rows
        for first in range(0, rows.shape[-1], PANEL)
    ]
    return np.concatenate(parts)


def fours(weight: NDArray[np.int8], groups: int) -> tuple[NDArray[np.int8], int]:
    """Lay bytes out; returns also how many groups of four a group of outputs reads."""
    columns = by_columns(weight, groups)
    more = -columns.shape[-1] % 4
    filled = np.pad(columns, ((0, 0), (0, 0), (0, 0), (0, more)))
    rows = filled.reshape(*filled.shape[:2], -1, 4)
    parts = [
        one[first : first + BLOCK].transpose(1, 0, 2).ravel()
        for one in rows
        for first in range(0, rows.shape[1], BLOCK)
    ]
    return np.concatenate(parts), rows.shape[2]
