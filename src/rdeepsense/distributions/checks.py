"""Checks of a distribution's arguments: refusals name the argument, the value, what is accepted."""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.errors import InputError, share

Seed = np.random.Generator | int


def floats(name: str, value: npt.ArrayLike) -> Floats:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a number or an array of numbers; {error}") from error


def refuse(name: str, values: Floats, bad: Booleans, accepted: str) -> None:
    if np.any(bad):
        raise InputError(f"{name} must be {accepted}; got {values[bad].flat[0]}")


def finite(name: str, value: npt.ArrayLike) -> Floats:
    values = floats(name, value)
    refuse(name, values, ~np.isfinite(values), "finite")
    return values


def positive(name: str, value: npt.ArrayLike) -> Floats:
    values = finite(name, value)
    refuse(name, values, values <= 0, "greater than 0")
    return values


def numbers(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Check numbers, infinite ones too, that broadcast against the shape of a distribution."""
    values = floats(name, value)
    refuse(name, values, np.isnan(values), "a number")
    try:
        np.broadcast_shapes(values.shape, shape)
    except ValueError:
        hint = f"; for every row with each of them give {name}[:, None]"
        raise InputError(
            f"{name} must broadcast against the distribution's shape {shape}; got {values.shape}"
            f"{hint if values.ndim == 1 else ''}"
        ) from None
    return values


def fractions(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    values = numbers(name, value, shape)
    meant = share(values.flat[values.argmax()].item()) if values.size else ""
    refuse(name, values, (values < 0) | (values > 1), f"between 0 and 1{meant}")
    return values


def broadcast(**parameters: Floats) -> list[Floats]:
    try:
        return [np.array(values) for values in np.broadcast_arrays(*parameters.values())]
    except ValueError:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in parameters.items())
        raise InputError(f"shapes must broadcast against each other; got {shapes}") from None


def count(n: int) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"n must be an integer; got {n!r}") from None
    if count < 1:
        raise InputError(f"n must be 1 or greater; got {n}")
    return count


def generator(rng: Seed) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise InputError(f"rng must be a numpy Generator or a seed of 0 or greater; got {rng!r}")
