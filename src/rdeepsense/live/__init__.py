"""Models in a stream: one row at a time, labels that come late or never, a state that is kept."""

from rdeepsense.live.live import Live
from rdeepsense.live.targets import Prediction

__all__ = ["Live", "Prediction"]
