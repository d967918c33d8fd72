"""The two efforts of a fit: what stands for "auto" when nothing is to be searched."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdeepsense.data.checks import check_choice

EFFORTS = ("full", "quick")
QUICK: dict[str, Any] = {
    "hidden": (64, 64),
    "drop_prob": 0.05,
    "alpha": 0.5,
    "likelihood": "student",  # one row far out costs a Gaussian tens of nats
}
# A step of DeepSense takes ten times as long as one of dense layers, so a quick fit has fewer.
QUICK_STEPS, QUICK_FOLDS = 300, 3


def widths(hidden: Any) -> Any:  # Any: whatever the argument takes
    """Return one width as a sequence of widths, and anything else as it is."""
    is_one = isinstance(hidden, int | np.integer) and not isinstance(hidden, bool)
    return (int(hidden),) if is_one else hidden


def settled(name: str, value: Any, effort: str) -> Any:  # Any: whatever the argument takes
    """Return an argument as it is, or for a quick fit what its "auto" stands for."""
    check_choice("effort", effort, EFFORTS)
    is_open = isinstance(value, str) and value == "auto"
    return QUICK[name] if is_open and effort == "quick" else value
