"""Networks that can be trained by name."""

from rdeepsense.networks.dense import dense

__all__ = ["dense"]
