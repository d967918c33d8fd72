"""Windows of a sensor log: from timestamps, however untidy, to (windows, time, channels)."""

from rdeepsense.windowing.cut import cut, windows
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.report import WindowReport
from rdeepsense.windowing.gathered import Windows

__all__ = ["Recipe", "WindowReport", "Windows", "cut", "windows"]
