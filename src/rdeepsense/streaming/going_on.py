"""The running way of a stream: windows one hop apart, of which only what is new is computed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.running import Running, finished
from rdeepsense.deploy.folded.runner import Outputs, Runner
from rdeepsense.errors import InputError
from rdeepsense.windowing.sampling import Sampling


class GoingOn:
    """A model whose recurrent layers go on from window to window."""

    def __init__(self, folded: FoldedGraph, running: Running, hop: int, factor: float) -> None:
        self.folded, self.running, self.hop, self.factor = folded, running, hop, factor
        self.begin()

    @classmethod
    def of(cls, runner: Runner, sampling: Sampling, factor: float) -> GoingOn:
        """Take a model that can be computed interval by interval."""
        stream = runner.stream if isinstance(runner, FoldedGraph) else None
        if not isinstance(runner, FoldedGraph) or stream is None:
            raise InputError(
                f"running={factor!r} is for fitted estimators whose network has intervals; a file "
                "does not keep them"
            )
        interval = sampling.length // stream.count
        if sampling.hop % interval or sampling.hop > sampling.length:
            raise InputError(
                f"running={factor!r}: a hop of {sampling.hop} samples is no multiple of "
                f"{interval}, an interval, up to {sampling.length}, a window"
            )
        return cls(runner, Running(stream), sampling.hop, factor)

    def begin(self) -> None:
        """Forget what came before."""
        self.running.begin()
        self._is_first = True

    def run(self, X: NDArray[Any]) -> Outputs:
        """Predict the next window, (1, time, channels)."""
        new = X if self._is_first else X[:, -self.hop :]
        self._is_first = False
        scaled = self.folded.graph.read(self.folded.facts.inside(new))
        for z in scaled.reshape(-1, 1, self.running.stream.read):
            self.running.push(z)
        return finished(self.folded, self.running.raw(), X, self.factor)
