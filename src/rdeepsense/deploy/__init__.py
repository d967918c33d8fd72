"""What a prediction costs on a device: operations, time and energy."""

from rdeepsense.deploy.folded.runtime import load

__all__ = ["load"]
