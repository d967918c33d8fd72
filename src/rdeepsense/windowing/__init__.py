"""Windows of a sensor log: from timestamps, however untidy, to (windows, time, channels)."""

from rdeepsense.windowing.cut import cut, windows
from rdeepsense.windowing.gathered import Windows
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.report import WindowReport

__all__ = ["Recipe", "WindowReport", "Windows", "cut", "windows"]
