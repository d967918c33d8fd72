"""A device's budget in the words of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rdeepsense.deploy.budget import Budget


def budget_of(text: str | None) -> Budget | None:
    """Read --budget flash=64kB,ram=8kB."""
    if text is None:
        return None
    from rdeepsense.deploy.budget import Budget

    try:
        return Budget.parse(text)
    except InputError as error:
        raise InputError(f"--budget: {error}") from None


def front_beside(plot: Path) -> Path:
    """Name the picture of the front, beside that of the selection."""
    return plot.with_name(f"{plot.name}-front")


def budget_line(budget: Budget, training: dict[str, Any]) -> str:
    """Say what of a budget the fitted model needs."""
    from rdeepsense.fitting.records import Need

    return f"budget    {budget.words(Need(**training['budget']['need']))}"
