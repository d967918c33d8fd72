"""What one prediction costs: passes, multiply-adds and bytes counted, time and energy measured.

Counted are the dense layers (a multiply-add for each weight and pass) and the float32 weights and
biases that must be stored. Measured is the network with its head, from scaled inputs to the
parameters of the distribution, on one thread and for one row.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from rdeepsense import _torch as randomness
from rdeepsense._torch import torch_threads
from rdeepsense.deploy.folded.embedding import SINE_TERMS
from rdeepsense.deploy.profile.energy import Meter
from rdeepsense.dropout import convert
from rdeepsense.heads import head_named
from rdeepsense.networks import Architecture, Dense, Periodic
from rdeepsense.networks.base import built

BYTES_OF_A_NUMBER = 4  # float32
ROUND_SECONDS = 5e-3  # of one method in one round
METER_SECONDS = 0.3  # long enough for a counter that ticks each millisecond

Call = Callable[[], object]


@dataclass(frozen=True)
class PassPlan:
    """How a method predicts one row with dense networks of the given widths."""

    widths: tuple[int, ...]  # inputs, hidden layers, columns of the output layer
    likelihood: str
    passes: int
    ensemble: bool = False  # the passes are of networks of their own, not of one with dropout on
    embedding: tuple[int, int] | None = None  # frequencies and width of each input's, if periodic

    @classmethod
    def of(
        cls,
        estimator: str,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        classes: bool,
        passes: int,
    ) -> PassPlan:
        """Plan an estimator: `RDeepSense`, `MCDrop` or `SSP`.

        The output layer has a column for each class, or mean and spread of each output; MCDrop,
        whose spread comes from the passes, has the mean alone.
        """
        likelihood = "point" if estimator == "MCDrop" else "gaussian"
        likelihood = "categorical" if classes else likelihood
        columns = outputs * head_named(likelihood).link.columns
        return cls((inputs, *hidden, columns), likelihood, passes, estimator == "SSP")

    @property
    def multiply_adds(self) -> int:
        """A weight is used once in each pass, and a sine takes a polynomial."""
        frequencies, width = self.embedding or (0, 0)
        embedding = frequencies * (1 + 2 * SINE_TERMS) + 2 * frequencies * width
        dense = sum(a * b for a, b in pairwise(self._read))
        return self.passes * (self.widths[0] * embedding + dense)

    @property
    def bytes(self) -> int:
        """Weights and biases of all networks."""
        frequencies, width = self.embedding or (0, 0)
        embedding = frequencies + 2 * frequencies * width + width
        numbers = self.widths[0] * embedding + sum(a * b + b for a, b in pairwise(self._read))
        return BYTES_OF_A_NUMBER * numbers * (self.passes if self.ensemble else 1)

    @property
    def _read(self) -> tuple[int, ...]:
        """What each layer reads, and the columns of the last."""
        inputs, *others = self.widths
        return (inputs * (1 + (self.embedding or (0, 0))[1]), *others)

    def network(self, member: int) -> nn.Module:
        """Build one network, with random weights."""
        inputs, *hidden, columns = self.widths
        outputs = columns // head_named(self.likelihood).link.columns
        form: Architecture = Dense(hidden)
        if self.embedding is not None:
            form = Periodic(hidden, *self.embedding)
        return built(form, (inputs,), outputs, member, seed=0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, without gradients, with masks of a fixed seed."""
    with torch_threads(1), torch.inference_mode(), randomness.drawing(0):
        yield


def prediction(plan: PassPlan, batched: bool = False) -> Call:
    """Make one prediction of one row, to be timed under `one_thread`.

    The passes follow one another, as in the paper; `batched` runs those of one network as one batch
    of equal rows instead. Several passes end in the mean and the variance over them.
    """
    inputs = plan.widths[0]
    bodies = (plan.network(member) for member in range(plan.passes if plan.ensemble else 1))
    networks = [convert(body, plan.likelihood, drop_prob=0.1).eval() for body in bodies]
    row = torch.linspace(-1, 1, inputs)[None]
    if plan.passes == 1:
        return lambda: networks[0](row)
    if not plan.ensemble:
        networks[0].train()  # dropout is all there is to switch on
        networks *= plan.passes
    rows = row.repeat(plan.passes, 1)

    def passes() -> object:
        if batched:
            drawn = networks[0](rows)
        else:
            drawn = map(torch.cat, zip(*(network(row) for network in networks), strict=True))
        return [(values.mean(0), values.var(0, correction=0)) for values in drawn]

    return passes


def microseconds(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Measure the median time of each call over rounds in which all calls have their turn.

    Interleaved, because a machine that is busy or throttles for a while then slows all alike.
    """
    repeats = {name: _repeats(call, ROUND_SECONDS) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - begin) / repeats[name])
    return {name: 1e6 * statistics.median(own) for name, own in times.items()}


def millijoules(calls: Mapping[str, Call], meter: Meter, rounds: int = 3) -> dict[str, float]:
    """Measure the median energy of each call, likewise in interleaved rounds."""
    repeats = {name: _repeats(call, METER_SECONDS) for name, call in calls.items()}
    used: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            used[name].append(meter.joules(_repeated(call, repeats[name])) / repeats[name])
    return {name: 1e3 * statistics.median(own) for name, own in used.items()}


def _repeated(call: Call, times: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(times):
            call()

    return work


def _repeats(call: Call, seconds: float) -> int:
    """How often to call so that it takes about so long; the first calls warm up."""
    call()
    best = min(_seconds(call) for _ in range(3))
    return max(1, round(seconds / max(best, 1e-9)))


def _seconds(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
