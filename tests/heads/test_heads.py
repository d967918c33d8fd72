"""Heads: exact values, torch.distributions as the second opinion, shapes that must agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rdeepsense.distributions import Categorical, Gaussian, StudentT
from rdeepsense.errors import InputError
from rdeepsense.heads import (
    HEADS,
    CategoricalHead,
    CategoricalParams,
    GaussianHead,
    GaussianParams,
    StudentHead,
    StudentTParams,
    head_named,
)


def test_gaussian_nll_by_hand() -> None:
    params = GaussianParams(torch.tensor([[1.0]]), torch.tensor([[4.0]]))
    # 1/2 log(2 pi 4) + (3 - 1)^2 / 8
    assert params.nll(torch.tensor([[3.0]])).item() == pytest.approx(
        0.5 * math.log(8 * math.pi) + 0.5
    )
    assert params.error(torch.tensor([[3.0]])).item() == 4.0


def test_softplus_gives_the_variance_not_the_std() -> None:
    params = GaussianHead(1)(torch.tensor([[0.0, 0.0]]))
    assert params.var.item() == pytest.approx(math.log(2) + 1e-4)
    assert params.numpy().std.item() == pytest.approx(math.sqrt(math.log(2) + 1e-4))


def test_columns_are_means_first_then_variances() -> None:
    params = GaussianHead(2)(torch.tensor([[1.0, 2.0, 30.0, 40.0]]))
    assert params.mean.tolist() == [[1.0, 2.0]]
    assert params.var[0].tolist() == pytest.approx([30.0, 40.0], rel=1e-4)


def test_nlls_agree_with_torch_distributions() -> None:
    torch.manual_seed(0)
    loc, scale, df = torch.randn(50, 3), torch.rand(50, 3) + 0.1, 2 + 5 * torch.rand(50, 3)
    y = 3 * torch.randn(50, 3)
    gaussian = torch.distributions.Normal(loc, scale)
    student = torch.distributions.StudentT(df, loc, scale)
    classes = torch.distributions.Categorical(logits=loc)
    index = torch.randint(0, 3, (50,))
    torch.testing.assert_close(GaussianParams(loc, scale**2).nll(y), -gaussian.log_prob(y))
    torch.testing.assert_close(StudentTParams(loc, scale, df).nll(y), -student.log_prob(y))
    torch.testing.assert_close(CategoricalParams(loc).nll(index), -classes.log_prob(index))


def test_brier_score_is_summed_over_classes() -> None:
    params = CategoricalParams(torch.log(torch.tensor([[0.2, 0.3, 0.5]])))
    # (0.2)^2 + (1 - 0.3)^2 + (0.5)^2
    assert params.error(torch.tensor([1])).item() == pytest.approx(0.04 + 0.49 + 0.25)


def test_student_error_is_absolute_and_df_above_two() -> None:
    head = StudentHead(2)
    with torch.no_grad():
        head.raw_df.fill_(-100.0)
    params = head(torch.zeros(4, 4))
    assert (params.df > 2).all()
    assert params.error(torch.full((4, 2), -3.0)).tolist() == [[3.0, 3.0]] * 4


@pytest.mark.parametrize("name", HEADS)
def test_numpy_gives_the_same_nll(name: str) -> None:
    torch.manual_seed(1)
    head = head_named(name)(3).double()
    params = head(torch.randn(20, head.columns, dtype=torch.float64))
    y = torch.randint(0, 3, (20,)) if name == "categorical" else torch.randn(20, 3).double()
    np.testing.assert_allclose(
        -params.numpy().log_prob(y.numpy()), params.nll(y).detach().numpy(), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "kind"), [("gaussian", Gaussian), ("student", StudentT), ("categorical", Categorical)]
)
def test_names_and_distributions(name: str, kind: type) -> None:
    head = head_named(name)(2)
    assert isinstance(head(torch.zeros(1, head.columns)).numpy(), kind)


def test_one_output_may_come_without_its_axis() -> None:
    params = GaussianParams(torch.zeros(4, 1), torch.ones(4, 1))
    assert params.nll(torch.zeros(4)).shape == (4, 1)


def test_members_share_targets() -> None:
    params = GaussianParams(torch.zeros(5, 4, 2), torch.ones(5, 4, 2))
    assert params.nll(torch.zeros(4, 2)).shape == (5, 4, 2)
    assert CategoricalParams(torch.zeros(5, 4, 3)).error(torch.zeros(4)).shape == (5, 4)


def test_shapes_that_would_broadcast_wrongly_are_refused() -> None:
    params = GaussianParams(torch.zeros(4, 2), torch.ones(4, 2))
    with pytest.raises(InputError, match=r"y has shape \(4,\), the network's output \(4, 2\)"):
        params.nll(torch.zeros(4))
    with pytest.raises(InputError, match="class indices"):
        CategoricalParams(torch.zeros(4, 3)).nll(torch.zeros(4, 3))


def test_unknown_likelihood_names_the_accepted_ones() -> None:
    with pytest.raises(InputError, match="unknown likelihood 'poisson'; accepted: student, ga"):
        head_named("poisson")


def test_stays_finite_far_out() -> None:
    for head in (GaussianHead(1), StudentHead(1)):
        raw = torch.tensor([[1e4, -1e4], [-1e4, 1e4]])
        nll = head(raw).nll(torch.zeros(2, 1))
        assert torch.isfinite(nll).all()
    assert torch.isfinite(CategoricalHead(2)(raw).nll(torch.zeros(2))).all()
