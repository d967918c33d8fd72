"""Windows of a sensor log: from timestamps, however untidy, to (windows, time, channels)."""

from rdeepsense.windowing.cut import Windows, cut, windows
from rdeepsense.windowing.grid import WindowReport
from rdeepsense.windowing.recipe import Recipe

__all__ = ["Recipe", "WindowReport", "Windows", "cut", "windows"]
