"""The arguments of `model.live`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rdeepsense.adaptation.rates import Rates
from rdeepsense.data.checks import check_choice
from rdeepsense.errors import InputError

LABELS = ("some", "all", "none")
FALSE_ALARMS = 0.01
MOST_PENDING = 1 << 16


@dataclass(frozen=True)
class Settings:
    """How a model is live: what it promises, what it learns by, what it watches."""

    coverage: float
    rates: Rates
    labels: str
    alarm: float  # the rate of false alarms; 0 watches nothing
    pending: int

    def __post_init__(self) -> None:
        check_choice("labels", self.labels, LABELS)
        for name, good, accepted in (
            ("coverage", 0 < self.coverage < 1, "between 0 and 1"),
            ("alarm", 0 <= self.alarm < 1, "True, False, or a rate between 0 and 1"),
            ("pending", 1 <= self.pending <= MOST_PENDING, f"1 to {MOST_PENDING}"),
        ):
            if not good:
                raise InputError(f"{name} = {getattr(self, name)!r}; accepted: {accepted}")

    @classmethod
    def of(
        cls,
        coverage: float,
        forget: float | Sequence[float] | None,
        labels: str,
        alarm: bool | float,
        pending: int,
        rates: Rates,
    ) -> Settings:
        """Take arguments as they are given; `forget` is what a label takes of earlier ones."""
        if forget is not None:
            given = (forget,) if isinstance(forget, int | float) else tuple(forget)
            if not given or not all(0 < share < 1 for share in given):
                raise InputError(
                    f"forget = {forget!r}; accepted: None, a share above 0 and below 1, or several"
                )
            rates = replace(rates, keep=tuple(1 - float(share) for share in given))
        rate = (FALSE_ALARMS if alarm else 0.0) if isinstance(alarm, bool) else float(alarm)
        return cls(float(coverage), rates, labels, rate, int(pending))
