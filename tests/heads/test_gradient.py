"""Every head's written-out gradient against autograd, in float64."""

from __future__ import annotations

import pytest
import torch

from rdeepsense.errors import InputError
from rdeepsense.heads import HEADS
from rdeepsense.scoring import ScoringRule

MEMBERS, ROWS, OUTPUTS = 3, 7, 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("name", HEADS)
def test_it_is_the_gradient_of_the_scoring_rule(name: str, beta: float, weighted: bool) -> None:
    torch.manual_seed(0)
    head = HEADS[name](OUTPUTS, members=MEMBERS).double()
    raw = 2 * torch.randn(MEMBERS, ROWS, head.columns, dtype=torch.float64)
    raw.requires_grad_()
    classes = torch.randint(0, OUTPUTS, (ROWS,))
    y = classes if name == "categorical" else torch.randn(ROWS, OUTPUTS, dtype=torch.float64)
    weight = torch.rand(MEMBERS, ROWS, dtype=torch.float64) if weighted else None
    rule = ScoringRule([0.0, 0.3, 0.8], beta)
    assert isinstance(rule.alpha, torch.Tensor)
    rule.alpha = rule.alpha.double()
    shares = rule.shares(ROWS * head.entries)
    if weight is not None:
        shares = (shares[0] * weight[..., None], shares[1] * weight[..., None])
    if name == "categorical" and beta:
        with pytest.raises(InputError, match="beta-NLL"):
            head.gradient(raw, y, *shares, beta)
        return
    expected = torch.autograd.grad(rule(head(raw), y, weight).sum(), [raw, *head.parameters()])
    found = head.gradient(raw.detach(), y, *shares, beta)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "student", "point"])
def test_targets_of_another_shape_are_refused(name: str) -> None:
    head = HEADS[name](2, members=1)
    share = torch.ones(1, 1, 1)
    with pytest.raises(InputError, match="they must agree"):
        head.gradient(torch.zeros(1, 5, head.columns), torch.zeros(5, 3), share, share, 0.0)
