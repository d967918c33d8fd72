"""People and records never trained on, before and after a few of their labels.

    RDEEPSENSE_DATA=... OMP_NUM_THREADS=1 python benchmarks/drift_people.py --task hapt|bpest
        [--seeds 5] [--by block|record] [--out FILE]

Activity: UCI HAPT, 24 users to train and choose on, 6 to judge by; 216 numbers of each window of
240 samples (means and deviations of its spectra), dense layers. Windows to train on overlap, and
each has two copies that are turned at random; those to judge by share no sample. k windows of each
class, the first in time, are labels. The 216 numbers were settled after test figures of seeds 0 to
2 were seen; copies and dropout after those of all seeds, by the NLL of training users left out in
seeds 0 and 1, who are test users of other seeds. Blood pressure: 250 samples of PPG to 250 of
pressure, a fifth of the 50-record blocks to judge by; the first k windows of a record are labels.
Neighbouring records may be of one patient: `--by record` judges by a fifth of the records instead,
whose neighbours are trained on, which is easier.

Whatever is labelled for the largest k is left out of the test for every k, so that figures compare.
How far adaptation may go, and the calibration, are chosen on the training groups alone: four
networks, each without a quarter of the groups (of the blocks), predict those that they left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from adapters import bpest, columns, data_folder, hapt_recordings
from numpy.typing import NDArray

from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor, calibration, metrics
from rdeepsense.adaptation.classes import first_of_each
from rdeepsense.distributions import concatenate
from rdeepsense.experiments.tasks import hhar
from rdeepsense.files import write_whole
from rdeepsense.fitting.adaptation import prior_of, stream_of

Rows = NDArray[Any]
FOLDS, SHARE_OF_BLOCKS, TEST_USERS = 4, 0.2, 6
HOP, TURN, COPIES, DROP_PROB = 60, 0.15, 2, 0.2
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
    test: Callable[[Rows], int]  # how many units are judged by
    validation: int  # units that a fit chooses its step on


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
    """Means and deviations of the intervals' spectra, and the spectrum of the whole window."""
    sizes = [np.linalg.norm(windows[:, :, k : k + 3], axis=2) for k in (0, 3)]
    whole = np.concatenate([windows, np.stack(sizes, 2)], 2)
    rows = len(whole)
    short = hhar.spectra(whole).reshape(rows, hhar.INTERVALS, -1)
    terms = np.abs(np.fft.rfft(whole, axis=1, norm="forward"))[:, 1 : LONGEST + 1]
    long = np.log(terms + hhar.QUIET).reshape(rows, LONGEST // 3, 3, -1).mean(2).reshape(rows, -1)
    return np.concatenate([short.mean(1), short.std(1), long], 1).astype(np.float32)


def hapt_people(folder: Path) -> People:
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
        (0, 1, 3),
        first_of_each,
        lambda units: TEST_USERS,
        3,
    )


def bpest_people(folder: Path, by: str = "block") -> People:
    task = bpest(folder)
    record = columns(folder / "bpest" / "windows.parquet")["record"].astype(np.int64)
    unit = record if by == "record" else task.groups
    assert unit is not None
    return People(
        task.X,
        task.y,
        record,
        unit,
        task.X,
        task.y,
        unit,
        (0, 1, 2, 5),
        lambda y, count: np.arange(len(y)) < count,
        lambda units: round(SHARE_OF_BLOCKS * len(units)),
        6 if by == "block" else 300,
    )


def fitted_on(people: People, units: Rows, seed: int) -> Any:
    """Fit on some units, of which the last few choose the step."""
    held = np.isin(people.unit_train, units[-people.validation :])
    train = np.isin(people.unit_train, units[: -people.validation])
    classes = people.y.dtype.kind == "i"
    kind = RDeepSenseClassifier if classes else RDeepSenseRegressor
    model = kind(
        effort="quick",
        drop_prob=DROP_PROB if classes else 0.1,
        random_state=seed,
        device="cpu",
        keep_rows=0,
        verbose=False,
    )
    X, y = people.X_train, people.y_train
    return model.fit(X[train], y[train], validation=(X[held], y[held]))


def model_for(people: People, units: Rows, seed: int) -> Any:
    """Fit; calibrate, and choose how far adaptation may go, on units that were left out."""
    model = fitted_on(people, units, seed)
    parts = np.array_split(units, FOLDS)
    left = [(fitted_on(people, units[~np.isin(units, own)], seed), own) for own in parts]
    dists, truths = [], []
    for one, own in left:
        rows = np.isin(people.unit, own)
        dists.append(one.fitted_.uncalibrated(people.X[rows].astype(float)))
        truths.append(people.y[rows])
    kind = "temperature" if people.y.dtype.kind == "i" else "scale"
    chosen = calibration.fit(kind, concatenate(dists), np.concatenate(truths))
    streams = []
    for one, own in left:
        fold = replace(one.fitted_, calibration=chosen)
        for group in np.unique(people.group[np.isin(people.unit, own)]):
            rows = people.group == group
            streams.append(stream_of(fold, people.X[rows].astype(float), people.y[rows]))
    prior = prior_of(streams)
    model.fitted_ = replace(model.fitted_, calibration=chosen, adaptation=prior)
    return model


def measure(people: People, seed: int) -> dict[str, Any]:
    """Fit once; judge each number of labels on the same rows."""
    begin = time.perf_counter()
    units = np.random.default_rng(seed).permutation(np.unique(people.unit))
    test = people.test(units)
    model = model_for(people, units[:-test], seed)
    prior = model.fitted_.adaptation
    found: dict[str, Any] = {"seed": seed, "rows": prior.rows, "groups": prior.groups, "k": {}}
    dists: dict[int, list[Any]] = {count: [] for count in people.labels}
    truths, taken = [], []
    for group in np.unique(people.group[np.isin(people.unit, units[-test:])]):
        rows = people.group == group
        X, y = people.X[rows], people.y[rows]
        rest = ~people.first(y, max(people.labels))
        if not rest.any():
            continue
        truths.append(y[rest])
        for count in people.labels:
            some = people.first(y, count)
            start = time.perf_counter()
            mine = model.adapt(X[some], y[some])
            taken.append(time.perf_counter() - start)
            dists[count].append(mine.predict_dist(X[rest]))
    truth = np.concatenate(truths)
    for count, parts in dists.items():
        figures = metrics.evaluate(concatenate(parts), truth)
        if "mae" in figures:
            low, high = concatenate(parts).interval(0.9)
            figures["coverage_90"] = float(np.mean((low <= truth) & (truth <= high)))
            figures["width_90"] = float(np.mean(high - low))
        found["k"][count] = {name: float(value) for name, value in figures.items()}
    found["adapt_milliseconds"] = 1e3 * float(np.median(taken))
    found["seconds"] = time.perf_counter() - begin
    return found


def line(name: object, figures: dict[int, dict[str, float]]) -> str:
    cells = []
    for count, own in figures.items():
        if "mae" in own:
            cells.append(f"k={count}: {own['mae']:6.3f} {own['coverage_90']:.3f} {own['nll']:.3f}")
        else:
            cells.append(f"k={count}: {100 * own['accuracy']:5.2f} % {own['nll']:.4f}")
    return f"{name!s:>5}  " + "   ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=("hapt", "bpest"), required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--by", choices=("block", "record"), default="block", help="of bpest")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = data_folder()
    people = hapt_people(folder) if arguments.task == "hapt" else bpest_people(folder, arguments.by)
    print("seed   labels: accuracy, NLL; or MAE, coverage at 90 %, NLL", flush=True)
    seeds = []
    for seed in range(arguments.seeds):
        seeds.append(measure(people, seed))
        about = f"  rows {seeds[-1]['rows']:g}, {seeds[-1]['adapt_milliseconds']:.1f} ms"
        print(line(seed, seeds[-1]["k"]) + about, flush=True)
    names = next(iter(seeds[0]["k"].values()))
    mean = {
        count: {name: float(np.mean([one["k"][count][name] for one in seeds])) for name in names}
        for count in seeds[0]["k"]
    }
    print(line("mean", mean))
    if arguments.out:
        about = {
            "date": date.today().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, torch {torch.__version__}",
            "task": arguments.task,
        }
        content = about | {"mean": mean, "seeds": seeds}
        write_whole(arguments.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
