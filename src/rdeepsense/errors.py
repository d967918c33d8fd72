"""Errors and warnings that the package raises on purpose."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any


class RDeepSenseError(Exception):
    """Base of all errors raised on purpose by this package."""


class InputError(RDeepSenseError, ValueError):
    """An argument, array or table that cannot be used; raised where it enters."""


class ConversionError(RDeepSenseError, ValueError):
    """A network that the two-step recipe cannot convert."""


class ModelFileError(RDeepSenseError, ValueError):
    """A model file that is truncated, corrupted, foreign or from a newer version."""


class CheckpointError(RDeepSenseError, ValueError):
    """A checkpoint that belongs to another run or cannot be read."""


class TrainingError(RDeepSenseError, RuntimeError):
    """Training that produced no usable network."""


class MissingExtraError(RDeepSenseError, ImportError):
    """A library of an optional extra that is not installed."""


class ColumnWarning(UserWarning):
    """A column whose numbers make a poor model: far too large or small, or a few of them far out.

    The message names the column and what to do.
    """


class DataWarning(UserWarning):
    """A fault of the data that makes a model look better than it is, and what to do about it.

    `rdeepsense.check` lists the same faults; the estimators' ``check=False`` leaves the check out.
    """


class LabelWarning(UserWarning):
    """Labels that contradict the model, or that are so far off that nothing was learnt of them."""


class InterruptedTraining(UserWarning):
    """A training that Ctrl-C stopped; the estimator keeps its best step so far.

    Turn it into an error where a half-trained model is no result:
    `warnings.simplefilter("error", InterruptedTraining)`.
    """


def nearest(name: object, names: Iterable[object]) -> str:
    """Return " (did you mean 'temp_max'?)" for the name that is most like one; nothing for none."""
    from difflib import get_close_matches

    plain = {_plain(known): str(known) for known in names}
    found = get_close_matches(_plain(name), plain, n=1, cutoff=0.65)
    return f" (did you mean {plain[found[0]]!r}?)" if found else ""


def share(value: Any) -> str:  # Any: whatever an argument takes
    """Return " (did you mean 0.9?)" for 90, a percentage in place of a share; else nothing."""
    is_percentage = isinstance(value, int | float) and 5 <= value < 100
    return f" (did you mean {value / 100:g}?)" if is_percentage else ""


def _plain(name: object) -> str:
    return "".join(letter for letter in str(name).casefold() if letter.isalnum())


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or name the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is not installed; it comes with: pip install 'rdeepsense[{extra}]'"
        ) from error
