"""Gas sensors that drift: a model of batches 1 to 6 in the stream of batches 8 and 9.

A label for every row and for every tenth. Rows come batch by batch, in random order within a batch.
What a live model learns by is what `fit` chooses by replaying each training batch as a stream of a
network that was trained without it. The grid that it is chosen from, and the stretches of the
experts, were settled with batches 8 and 9 in view.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rdeepsense.arrays import Floats, Integers
from rdeepsense.estimators.rdeepsense import RDeepSenseRegressor
from rdeepsense.experiments.drift.files import GAS, columns
from rdeepsense.experiments.drift.trial import DriftTrial, Score, Stream, stream_scores
from rdeepsense.live.replay import replay
from rdeepsense.status import Status

TRAINED, LATER = (1, 2, 3, 4, 5, 6), (8, 9)
GASES = 6
COVERAGE = 0.9
LABELS = {1: "all", 10: "1 in 10"}


@dataclass(frozen=True)
class Gas:
    """The table, whose inputs are scaled by the medians of the batches that are trained on."""

    values: Floats
    gas: Floats  # one-hot
    batch: Integers
    y: Floats

    @classmethod
    def read(cls, folder: Path) -> Gas:
        """Read the table."""
        table = columns(folder / GAS)
        names = sorted(name for name in table if name[0] == "s" and name[1:3].isdigit())
        return cls(
            np.stack([table[name] for name in names], 1).astype(np.float64),
            np.eye(GASES)[table["gas"].astype(int) - 1],
            table["batch"].astype(np.int64),
            table["ppm"].astype(np.float64),
        )

    def fit(self, batches: tuple[int, ...], seed: int) -> tuple[RDeepSenseRegressor, Floats]:
        """Return a model of some batches, and the inputs of all rows as it takes them."""
        own = self.stream(batches, seed)
        medians = np.median(np.abs(self.values[own]), 0)
        X = np.hstack([np.arcsinh(self.values / medians), self.gas])
        model = RDeepSenseRegressor(
            effort="quick",
            likelihood="student",
            hidden=(64, 64),
            random_state=seed,
            device="cpu",
            verbose=False,
        )
        return model.fit(X[own], self.y[own], groups=self.batch[own]), X

    def stream(self, batches: tuple[int, ...], seed: int) -> Integers:
        """Return row numbers, batch by batch, shuffled within each."""
        rng = np.random.default_rng(seed)
        return np.concatenate([rng.permutation(np.flatnonzero(self.batch == b)) for b in batches])


def study(folder: Path, seed: int) -> DriftTrial:
    """Fit, and replay batches 8 and 9."""
    begin = time.perf_counter()
    gas = Gas.read(folder)
    model, X = gas.fit(TRAINED, seed)
    rows = gas.stream(LATER, seed)
    scores, kept = [], None
    for every, words in LABELS.items():
        found = replay(model, X[rows], gas.y[rows], every, live=model.live(COVERAGE))
        scores += stream_scores([found], words)
        kept = Stream.of(found)  # the last, with few labels, is drawn
    watching = model.fit_novelty(X[np.isin(gas.batch, TRAINED)]).live(labels="none")
    rang = (k + 1 for k, x in enumerate(X[rows]) if watching.predict(x).status & Status.DRIFTING)
    alarm = next(rang, None)
    scores.append(Score("live", "none", {} if alarm is None else {"alarm": float(alarm)}))
    rates = model.live(COVERAGE).settings.rates
    return DriftTrial(time.perf_counter() - begin, asdict(rates), scores, kept)
