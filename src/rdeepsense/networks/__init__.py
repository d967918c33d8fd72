"""Networks that can be trained by name."""

from rdeepsense.networks.deepsense import DeepSense
from rdeepsense.networks.dense import dense

NAMED = {"DeepSense": DeepSense}  # those that a model file can name, by their class

__all__ = ["NAMED", "DeepSense", "dense"]
