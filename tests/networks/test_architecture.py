"""What an architecture is: a specification, the user's own module, a name in a file."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rdeepsense import InputError
from rdeepsense.networks import (
    Architecture,
    DeepSense,
    Dense,
    Own,
    architecture_named,
    architecture_of,
    check_table,
    name_of,
)


def test_arguments_stand_for_an_architecture() -> None:
    assert architecture_of((8, 4), None) == Dense((8, 4))
    module = nn.Linear(2, 1)
    assert architecture_of((8,), module) == Own(module)
    spec = DeepSense()
    assert architecture_of((8,), spec) is spec
    for bad in (Dense, "dense", 3):
        with pytest.raises(InputError, match="not a torch.nn.Module or one of"):
            architecture_of((8,), bad)  # type: ignore[arg-type]


def test_a_module_is_trained_as_it_is_and_its_copies_from_new_weights() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    own = Own(module)
    assert isinstance(own, Architecture)
    assert own.build((2,), 1, member=0) is module
    before = module[0].weight.clone()
    copy = own.build((2,), 1, member=1)
    assert isinstance(copy, nn.Sequential)
    assert not torch.equal(copy[0].weight, before)
    assert torch.equal(module[0].weight, before)
    assert own.arguments() is None


def test_names_in_a_file() -> None:
    assert name_of(Dense((8,))) == "Dense"
    assert name_of(Own(nn.Linear(2, 1))) == "Linear"
    assert architecture_named("Dense") is Dense
    assert architecture_named("Linear") is None
    assert Dense([8, 4]).arguments() == {"hidden": (8, 4)}


def test_dense_layers_take_tables_alone() -> None:
    layers = Dense((8, 4)).build((3,), 2, member=0)
    shapes = [tuple(layer.weight.shape) for layer in layers if isinstance(layer, nn.Linear)]
    assert shapes == [(8, 3), (4, 8), (2, 4)]
    check_table((3,))
    with pytest.raises(InputError, match="X has 3 axes; accepted here"):
        Dense((8,)).check((5, 3))
