"""The start of every simulator: a checked number of rows and a seeded generator."""

from __future__ import annotations

import numpy as np

from rdeepsense.distributions import base as checks
from rdeepsense.errors import InputError


def generator(rows: int, seed: int) -> np.random.Generator:
    """Return the generator of this seed, once the number of rows is known to be usable."""
    if rows < 1:
        raise InputError(f"rows = {rows}: at least one row is needed")
    return checks.generator(seed)
