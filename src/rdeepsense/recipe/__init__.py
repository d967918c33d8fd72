"""The two-step recipe (section 3.1): dropout on every layer, a distribution at the output."""

from rdeepsense.recipe.conversion import convert
from rdeepsense.recipe.layers import DropoutConv1d, DropoutConv2d, DropoutLayer, DropoutLinear
from rdeepsense.recipe.network import StochasticNetwork
from rdeepsense.recipe.recurrent import DropoutGRU, DropoutLSTM

__all__ = [
    "DropoutConv1d",
    "DropoutConv2d",
    "DropoutGRU",
    "DropoutLSTM",
    "DropoutLayer",
    "DropoutLinear",
    "StochasticNetwork",
    "convert",
]
