"""The two-step recipe on networks of every form, and what it refuses."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn

from rdeepsense import ConversionError, InputError, convert
from rdeepsense.dropout import DropoutLinear


class Registered(nn.Module):
    """Layers registered in another order than they run in."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.last = nn.Linear(8, outputs)
        self.first = nn.Linear(4, 8)
        self.mid = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        return self.last(torch.relu(self.mid(h)) + h)


def sequential(*dropouts: bool) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


def drops(network: nn.Module) -> list[float]:
    return [m.drop_prob for m in network.modules() if isinstance(m, DropoutLinear)]


def test_every_layer_but_the_first_drops_its_input() -> None:
    converted = convert(sequential(), drop_prob=0.3)
    assert drops(converted) == [0.0, 0.3, 0.3]
    assert drops(convert(sequential(), drop_prob=0.3, input_drop_prob=0.1)) == [0.1, 0.3, 0.3]
    assert drops(convert(sequential(), drop_prob=(0.2, 0.4))) == [0.0, 0.2, 0.4]


@pytest.mark.parametrize(
    ("likelihood", "columns"), [("gaussian", 4), ("student", 4), ("categorical", 2)]
)
def test_trained_weights_stay_and_the_original_is_untouched(likelihood: str, columns: int) -> None:
    network = sequential()
    before = copy.deepcopy(network.state_dict())
    x = torch.randn(5, 4)
    converted = convert(network, likelihood, drop_prob=0.5).eval()
    params = converted(x)
    torch.testing.assert_close(params[0], network(x))
    assert converted.body[-1].out_features == columns
    assert not any(isinstance(m, DropoutLinear) for m in network.modules())
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_nested_and_own_class_run_as_they_are() -> None:
    x = torch.randn(6, 4)
    nested = nn.Sequential(
        nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Sequential(nn.Linear(8, 1))
    )
    own = Registered()
    for network, options in ((nested, {}), (own, {"example": x}), (own, {"output": "last"})):
        converted = convert(network, drop_prob=0.2, **options).eval()
        torch.testing.assert_close(converted(x).mean, network(x))


def test_the_example_finds_the_order_of_execution() -> None:
    converted = convert(Registered(), drop_prob=0.2, input_drop_prob=0.1, example=torch.zeros(2, 4))
    assert converted.output == "last"
    body = converted.body
    assert (body.first.drop_prob, body.mid.drop_prob, body.last.drop_prob) == (0.1, 0.2, 0.2)


def test_registration_order_is_refused_when_it_points_to_an_inner_layer() -> None:
    with pytest.raises(ConversionError, match=r"does not return the columns.*'mid'.*example="):
        convert(Registered(outputs=3))


def test_a_dropout_that_is_there_keeps_its_place() -> None:
    network = nn.Sequential(
        nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    )
    converted = convert(network, drop_prob=0.25)
    assert converted.body[1].p == 0.25
    assert drops(converted) == [0.0, 0.0, 0.25]
    assert network[1].p == 0.5


def test_dropout_on_inputs_and_after_the_output() -> None:
    network = nn.Sequential(
        nn.Dropout(0.5), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Dropout(0.5)
    )
    converted = convert(network, drop_prob=0.25)
    assert (converted.body[0].p, converted.body[4].p) == (0.0, 0.0)
    assert convert(network, drop_prob=0.25, input_drop_prob=0.1).body[0].p == 0.1


def test_paper_form_and_inverted_form_give_the_same_test_time_function() -> None:
    """Section 3.1.1: training with z ~ Bernoulli(keep) and W, testing with keep * W."""
    torch.manual_seed(0)
    keep, x = 0.8, torch.randn(1, 8).double()
    layer = convert(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)), drop_prob=1 - keep).double()
    inverted = layer.body[1].eval()
    # A network trained in the paper's form carries weights W / keep: x z W_paper = x z W / keep.
    weight_in_paper = inverted.weight / keep
    at_test_in_paper = x @ (keep * weight_in_paper).T + inverted.bias
    torch.testing.assert_close(inverted(x), at_test_in_paper)
    inverted.train()
    many = inverted(x.expand(200_000, 8)).mean(0)
    torch.testing.assert_close(many, inverted.eval()(x)[0], atol=0.01, rtol=0.01)


def test_biases_are_never_dropped_and_mean_and_variance_share_the_mask() -> None:
    torch.manual_seed(0)
    converted = convert(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)), drop_prob=0.5).train()
    last = converted.body[1]
    with torch.no_grad():
        last.weight.fill_(1.0)
        last.bias.copy_(torch.tensor([5.0, 7.0]))
    raw = last(torch.full((1000, 1), 2.0))
    # dropped: only the biases; kept: bias + 2 / 0.5, in both columns together
    assert set(map(tuple, raw.tolist())) == {(5.0, 7.0), (9.0, 11.0)}


def test_sampling_turns_on_dropout_alone() -> None:
    network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    converted = convert(network, drop_prob=0.5).train()
    with converted.sampling():
        assert converted.body[3].training
        assert not converted.body[1].training
        assert not torch.equal(converted(torch.ones(3, 4)).mean, converted(torch.ones(3, 4)).mean)
    assert converted.body[1].training


def test_a_layer_without_bias_and_a_bare_layer() -> None:
    converted = convert(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1, bias=False))).eval()
    assert converted(torch.zeros(2, 4)).var.shape == (2, 1)
    bare = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    torch.testing.assert_close(convert(bare).eval()(x).mean, bare(x))


def test_converted_networks_can_be_copied_and_pickled() -> None:
    converted = convert(sequential(), drop_prob=0.3).eval()
    again = pickle.loads(pickle.dumps(copy.deepcopy(converted)))
    x = torch.randn(3, 4)
    assert torch.equal(again(x).mean, converted(x).mean)
    assert drops(again) == [0.0, 0.3, 0.3]


def test_refusals() -> None:
    with pytest.raises(ConversionError, match="Conv1d has no Linear layer for the output"):
        convert(nn.Conv1d(1, 1, 3))
    with pytest.raises(InputError, match="unknown likelihood 'beta'"):
        convert(sequential(), "beta")
    with pytest.raises(ConversionError, match="'nothing' is not a Linear layer.*it has: 0, 2, 4"):
        convert(sequential(), output="nothing")
    with pytest.raises(ConversionError, match="does not return the columns.*activation"):
        convert(nn.Sequential(*sequential(), nn.Softplus()))
    with pytest.raises(ConversionError, match="likelihood needs 2 or more"):
        convert(nn.Sequential(nn.Linear(4, 1)), "categorical")
    with pytest.raises(InputError, match="3 values, the network 2 layers"):
        convert(sequential(), drop_prob=(0.1, 0.1, 0.1))
    for bad in (1.0, -0.1, float("nan"), "auto"):
        with pytest.raises(InputError, match=r"drop_prob = .* is not in \[0, 1\)"):
            convert(sequential(), drop_prob=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="input_drop_prob = 1"):
        convert(sequential(), input_drop_prob=1)


def test_a_forward_that_returns_something_else_is_refused_when_it_runs() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Tensor, more: Tensor | None = None) -> object:
            return self.layer(x), 1

    with pytest.raises(ConversionError, match="returned a tuple"):
        convert(Pair(), example=torch.zeros(2, 4))

    class Image(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.flatten(2).mean(1))[:, :1]

    converted = convert(Image())  # its input cannot be guessed, so the first call tells
    with pytest.raises(ConversionError, match=r"must return the 4 columns.*shape \(5, 1\)"):
        converted(torch.zeros(5, 3, 2, 2))


class Scaled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def test_a_linear_layer_with_a_forward_of_its_own_is_refused() -> None:
    with pytest.raises(ConversionError, match="'0' is a Scaled with a forward of its own"):
        convert(nn.Sequential(Scaled(4, 4), nn.Linear(4, 1)))
