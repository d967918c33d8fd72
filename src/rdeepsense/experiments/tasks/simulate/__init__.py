"""Simulated tasks: the paper's four, with its shapes and a known conditional distribution.

This is what runs where no data is at hand. Everything made from it is to be labelled simulated.
"""

from collections.abc import Callable

from rdeepsense.experiments.tasks.simulate import bpest, gassen, hhar, nycommute
from rdeepsense.experiments.tasks.simulate.truth import kl_from_truth
from rdeepsense.experiments.tasks.task import Task

SIMULATORS: dict[str, Callable[[int, int], Task]] = {  # (rows, seed) -> the task
    "BPEst": bpest.simulate,
    "NYCommute": nycommute.simulate,
    "GasSen": gassen.simulate,
    "HHAR": hhar.simulate,
}

__all__ = ["SIMULATORS", "kl_from_truth"]
