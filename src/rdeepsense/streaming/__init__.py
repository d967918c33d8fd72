"""A model of windows in a stream of samples, as firmware runs it."""

from rdeepsense.streaming.stream import Decision, Stream

__all__ = ["Decision", "Stream"]
