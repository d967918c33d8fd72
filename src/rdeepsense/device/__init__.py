"""What a prediction costs on a device: operations, time and energy."""

from rdeepsense.device.runtime import load

__all__ = ["load"]
