"""The two-step recipe (section 3.1): dropout on every layer, a distribution at the output."""

from rdeepsense.dropout.conversion import StochasticNetwork, convert
from rdeepsense.dropout.layers import (
    DropoutConv1d,
    DropoutConv2d,
    DropoutGRU,
    DropoutLayer,
    DropoutLinear,
    DropoutLSTM,
)

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
