"""What is asked of each row: an interval, quantiles, and further columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rdeepsense.errors import InputError, share

STATUS, NOVELTY, EPISTEMIC, REJECT = FURTHER = ("status", "novelty", "epistemic", "reject")


@dataclass(frozen=True)
class Wanted:
    """The columns that are asked for, beside mean and std or the probability of each class.

    Parameters
    ----------
    coverage : probability that the interval from low to high should hold.
    quantiles : probabilities of further columns, such as (0.05, 0.5, 0.95).
    further : of "status", "novelty", "epistemic" and "reject".
    samples : passes with dropout on; None is one without.
    accept : share of the model's own validation rows that "reject" does not refuse.
    """

    coverage: float = 0.9
    quantiles: tuple[float, ...] = ()
    further: tuple[str, ...] = (STATUS,)
    samples: int | None = None
    accept: float = 0.9

    def __post_init__(self) -> None:
        for name, value in (("coverage", self.coverage), ("accept", self.accept)):
            if not 0 < value < 1:
                raise InputError(f"{name} = {value}: must lie between 0 and 1{share(value)}")
        for level in self.quantiles:
            if not 0 < level < 1:
                raise InputError(
                    f"quantiles = {level:g}: each must lie between 0 and 1{share(level)}"
                )
        for name in self.further:
            if name not in FURTHER:
                raise InputError(f"with = {name!r} is unknown; accepted: {', '.join(FURTHER)}")

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON holds them, which tells equal ones from others."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def tails(coverage: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of a central interval."""
    tail = (1 - coverage) / 2
    return tail, 1 - tail
