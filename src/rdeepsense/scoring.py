"""The tunable proper scoring rule of the paper (section 3.1.2)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from rdeepsense.errors import InputError
from rdeepsense.heads import Params


def check_alpha(alpha: float) -> float:
    """Check that alpha is in [0, 1): at 1 nothing trains the variance."""
    if isinstance(alpha, str | bool) or not 0 <= alpha < 1:
        raise InputError(
            f"alpha = {alpha!r} is not in [0, 1); at alpha = 1 the loss is the error alone and "
            "leaves the variance untrained"
        )
    return float(alpha)


class ScoringRule:
    """(1 - alpha) NLL + alpha error, the mean over rows and outputs.

    The error is the head's own: squared for a Gaussian, absolute for a Student-t, the Brier score
    for classes. Targets are assumed standardised, otherwise the two terms have different units.
    The population optimum does not depend on alpha < 1; the path of training does.

    `beta` > 0 weighs each NLL entry by its own variance to the power beta, held constant
    (beta-NLL, Seitzer et al. 2022), which keeps badly fitted rows from being explained away.

    With one alpha for each of K members, the parameters carry a leading K and so does the result.
    """

    def __init__(self, alpha: float | Sequence[float] = 0.5, beta: float = 0.0) -> None:
        self.alpha: float | Tensor
        if isinstance(alpha, list | tuple):
            self.alpha = torch.tensor([check_alpha(a) for a in alpha])
        else:
            self.alpha = check_alpha(alpha)  # type: ignore[arg-type]
        if not 0 <= beta <= 1:
            raise InputError(f"beta = {beta!r} is not in [0, 1]")
        self.beta = beta

    def to(self, device: torch.device) -> ScoringRule:
        """Move the members' alphas to a device."""
        if isinstance(self.alpha, Tensor):
            self.alpha = self.alpha.to(device)
        return self

    def __call__(self, params: Params, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the loss, a scalar or one per member; `weight` is per row (and member)."""
        nll = params.nll(y)
        if self.beta:
            nll = nll * params.spread().detach() ** self.beta
        alpha, rows_at = self.alpha, 0
        if isinstance(alpha, Tensor):
            alpha, rows_at = alpha.view(-1, *[1] * (nll.ndim - 1)), 1
        entries = nll + alpha * (params.error(y) - nll)
        if weight is not None:
            outputs = entries.ndim - 1 - rows_at
            entries = entries * weight.view(*weight.shape, *[1] * outputs)
        return entries.flatten(1).mean(1) if rows_at else entries.mean()

    def members(self, part: slice) -> ScoringRule:
        """Return the rule of some of the members."""
        own = copy.copy(self)
        if isinstance(self.alpha, Tensor):
            own.alpha = self.alpha[part]
        return own

    def shares(self, entries: int) -> tuple[Tensor, Tensor]:
        """Return the weights (K, 1, 1) of an entry's NLL and of its error in a member's mean."""
        assert isinstance(self.alpha, Tensor)
        alpha = self.alpha.view(-1, 1, 1)
        return (1 - alpha) / entries, alpha / entries

    def __repr__(self) -> str:
        return f"ScoringRule(alpha={self.alpha}, beta={self.beta})"


class BrierScore(ScoringRule):
    """The error alone, which for classes is the Brier score and trains all there is to train."""

    def __init__(self, members: int) -> None:
        super().__init__(0.0)
        self.alpha = torch.ones(members)
