"""The arguments of `model.live`, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rdeepsense.adaptation.rates import ABOVE_0, BELOW_1, Rates, is_real
from rdeepsense.data.checks import check_choice
from rdeepsense.errors import InputError, share

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
        kinds: list[tuple[str, type[float | int], float, float, str]] = [
            ("coverage", float, ABOVE_0, BELOW_1, "between 0 and 1"),
            ("alarm", float, 0, BELOW_1, "True, False, or a rate between 0 and 1"),
            ("pending", int, 1, MOST_PENDING, f"1 to {MOST_PENDING}"),
        ]
        for name, kind, least, most, accepted in kinds:
            value = getattr(self, name)
            if not is_real(value) or not least <= value <= most or kind(value) != value:
                meant = share(value) if most == BELOW_1 else ""
                raise InputError(f"{name} = {value!r:.60}; accepted: {accepted}{meant}")
            object.__setattr__(self, name, kind(value))

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
        if not isinstance(rates, Rates):
            raise InputError(f"rates = {rates!r:.60}; accepted: None, adaptation.rates.Rates(...)")
        if forget is not None:
            given = tuple(forget) if isinstance(forget, Iterable) else (forget,)
            if not given or not all(is_real(share) and 0 < share < 1 for share in given):
                raise InputError(
                    f"forget = {forget!r:.60}; accepted: None, a share above 0 and below 1, or "
                    "several"
                )
            rates = replace(rates, keep=tuple(1 - float(share) for share in given))
        rate = (FALSE_ALARMS if alarm else 0.0) if isinstance(alarm, bool) else alarm
        return cls(coverage, rates, labels, rate, pending)
