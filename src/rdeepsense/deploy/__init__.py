"""Models on devices: folded, exported, run without torch, their cost measured."""

from rdeepsense.deploy.folded.deployed import DeployedModel, load

__all__ = ["DeployedModel", "load"]
