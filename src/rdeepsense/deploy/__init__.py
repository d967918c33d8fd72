"""Models on devices: folded, exported, run without torch, their cost measured."""

from rdeepsense.deploy.folded.deployed import DeployedModel
from rdeepsense.deploy.loading import load

__all__ = ["DeployedModel", "load"]
