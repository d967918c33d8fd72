"""Sensing tasks: inputs, targets and, where the data is simulated, the true distribution."""

from __future__ import annotations
