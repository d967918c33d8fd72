"""The scoring rule: exact values, what alpha and beta do, what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from rdeepsense import InputError, ScoringRule
from rdeepsense.heads import CategoricalParams, GaussianParams, StudentTParams

MEAN = torch.tensor([[0.0], [1.0]])
VAR = torch.tensor([[1.0], [4.0]])
Y = torch.tensor([[2.0], [1.0]])
NLL = [0.5 * math.log(2 * math.pi) + 2.0, 0.5 * math.log(8 * math.pi)]
ERROR = [4.0, 0.0]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9])
def test_weighted_sum_by_hand(alpha: float) -> None:
    loss = ScoringRule(alpha)(GaussianParams(MEAN, VAR), Y)
    assert loss.item() == pytest.approx((1 - alpha) * sum(NLL) / 2 + alpha * sum(ERROR) / 2)


def test_one_alpha_per_member_gives_one_loss_per_member() -> None:
    params = GaussianParams(MEAN.expand(3, 2, 1), VAR.expand(3, 2, 1))
    losses = ScoringRule([0.0, 0.5, 0.9])(params, Y)
    alone = [ScoringRule(a)(GaussianParams(MEAN, VAR), Y).item() for a in (0.0, 0.5, 0.9)]
    assert losses.tolist() == pytest.approx(alone)


def test_row_weights() -> None:
    params, rule = GaussianParams(MEAN, VAR), ScoringRule(0.0)
    assert rule(params, Y, torch.tensor([2.0, 0.0])).item() == pytest.approx(NLL[0])
    assert rule(params, Y.squeeze(1), torch.tensor([0.0, 2.0])).item() == pytest.approx(NLL[1])


def test_weights_per_member_and_row() -> None:
    params = GaussianParams(MEAN.expand(2, 2, 1), VAR.expand(2, 2, 1))
    losses = ScoringRule([0.0, 0.0])(params, Y, torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    assert losses.tolist() == pytest.approx(NLL)


def test_beta_weighs_by_the_variance_without_its_gradient() -> None:
    var = VAR.clone().requires_grad_()
    loss = ScoringRule(0.0, beta=0.5)(GaussianParams(MEAN, var), Y)
    assert loss.item() == pytest.approx((1.0 * NLL[0] + 2.0 * NLL[1]) / 2)
    loss.backward()
    # d/dv [1/2 log v + r^2 / (2 v)] = 1/(2 v) - r^2 / (2 v^2), times sqrt(v) held constant, halved
    expected = [(0.5 - 2.0) / 2, 2.0 * (1 / 8) / 2]
    assert var.grad is not None
    assert var.grad.flatten().tolist() == pytest.approx(expected)


def test_student_and_classes_use_their_own_error() -> None:
    student = StudentTParams(MEAN, VAR.sqrt(), torch.full_like(MEAN, 5.0))
    rule = ScoringRule(0.999999)
    assert rule(student, Y).item() == pytest.approx((2.0 + 0.0) / 2, abs=1e-4)
    classes = CategoricalParams(torch.zeros(2, 2))
    assert rule(classes, torch.tensor([0, 1])).item() == pytest.approx(0.5, abs=1e-4)


def test_the_optimum_does_not_depend_on_alpha() -> None:
    torch.manual_seed(0)
    y = 3 + 2 * torch.randn(200, 1, dtype=torch.float64)
    for alpha in (0.0, 0.8):
        mean = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        log_var = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [mean, log_var], max_iter=200, tolerance_change=1e-14, line_search_fn="strong_wolfe"
        )

        def loss(mean=mean, log_var=log_var, optimiser=optimiser, alpha=alpha):  # type: ignore[no-untyped-def]
            optimiser.zero_grad()
            params = GaussianParams(mean.expand(200, 1), log_var.exp().expand(200, 1))
            value = ScoringRule(alpha)(params, y)
            value.backward()
            return value

        optimiser.step(loss)
        assert mean.item() == pytest.approx(y.mean().item(), abs=1e-5)
        assert log_var.exp().item() == pytest.approx(y.var(correction=0).item(), rel=1e-4)


@pytest.mark.parametrize("alpha", [1.0, 1, -0.1, 1.5, float("nan"), "auto", True])
def test_alpha_outside_is_refused_with_the_reason(alpha: object) -> None:
    with pytest.raises(InputError, match=r"not in \[0, 1\).*leaves the variance untrained"):
        ScoringRule(alpha)  # type: ignore[arg-type]


def test_bad_beta_and_beta_for_classes() -> None:
    with pytest.raises(InputError, match="beta = 2"):
        ScoringRule(0.5, beta=2)
    with pytest.raises(InputError, match="beta-NLL weighs by a variance"):
        ScoringRule(0.5, beta=0.5)(CategoricalParams(torch.zeros(1, 2)), torch.tensor([0]))
