"""A model of windows in a stream of samples, as firmware runs it."""

from rdeepsense.streaming.decision import Decision
from rdeepsense.streaming.stream import Stream

__all__ = ["Decision", "Stream"]
