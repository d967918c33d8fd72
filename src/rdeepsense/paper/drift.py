"""`rdeepsense benchmark drift`: sensors that drift, people and records never trained on."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from html import escape
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import __version__, calibration, metrics
from rdeepsense._progress import Progress
from rdeepsense._records import Record
from rdeepsense.adaptation.corrections import first_of_each
from rdeepsense.arrays import Floats, Integers
from rdeepsense.comparison.page import STYLE
from rdeepsense.comparison.statistics import with_error
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError, require
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.fitting.adaptation import prior_of, stream_of
from rdeepsense.live.replay import WAYS as REPLAY_WAYS
from rdeepsense.live.replay import Outcome, Replayed, replay
from rdeepsense.pages.html import TextTable, page, table
from rdeepsense.paper.cells import VERSION, Machine, read_cell, run_kept, write_cell
from rdeepsense.paper.tasks import hhar
from rdeepsense.paper.tasks.bpest import LENGTH
from rdeepsense.reporting.replay import charts
from rdeepsense.status import Status

# --------------------------------------------------------------------------------------------------
# The data of the studies: a folder with `gassen`, `har` and `bpest`
#
# gassen/uci270_drift.parquet   batch, gas (1 to 6), ppm, and 8 features of each of 16 sensors
# har/hapt.parquet              user, experiment, segment, label, ax to az, gx to gz
# bpest/waves.parquet           ppg_diff, abp_diff: differences of samples, 250 to a window
# bpest/windows.parquet         record, abp_gain
# --------------------------------------------------------------------------------------------------

Rows = NDArray[Any]
GAS = "gassen/uci270_drift.parquet"
PEOPLE = "har/hapt.parquet"
PRESSURE = ("bpest/waves.parquet", "bpest/windows.parquet")


def columns(path: Path) -> dict[str, Rows]:
    """Return a Parquet file as arrays."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read: {error!s:.200}") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def digest(folder: Path, names: tuple[str, ...]) -> str:
    """Return SHA-256 of files, whose figures are then known by it."""
    found = hashlib.sha256()
    for name in names:
        if not (folder / name).is_file():
            raise InputError(f"--data {folder}: there is no {name}")
        found.update((folder / name).read_bytes())
    return found.hexdigest()[:16]


def hapt_recordings(folder: Path) -> tuple[Rows, list[Rows], dict[str, Rows]]:
    """Return HAPT's samples (time, 6) in g and rad/s, the places of each recording, the table."""
    table = columns(folder / PEOPLE)
    acceleration = np.stack([table[name] for name in ("ax", "ay", "az")], axis=1) / 720
    rotation = np.stack([table[name] for name in ("gx", "gy", "gz")], axis=1) * 0.000305433
    signal = np.hstack([acceleration, rotation]).astype(np.float32)
    key = np.stack([table[name].astype(np.int64) for name in ("user", "experiment", "segment")])
    cuts = np.flatnonzero(np.any(np.diff(key, axis=1), axis=0)) + 1
    return signal, np.split(np.arange(len(signal)), cuts), table


def pressure_windows(folder: Path) -> tuple[Rows, Rows, Integers]:
    """Return windows of PPG, of blood pressure in mmHg, and the record of each."""
    waves, about = (columns(folder / name) for name in PRESSURE)
    steps = (waves[name].reshape(-1, LENGTH) for name in ("ppg_diff", "abp_diff"))
    ppg, abp = (np.cumsum(step, axis=1, dtype=np.int32) for step in steps)
    pressure = (abp * about["abp_gain"][:, None]).astype(np.float32)
    return (ppg / 1023).astype(np.float32), pressure, about["record"].astype(np.int64)


# --------------------------------------------------------------------------------------------------
# Results of one seed of a study
# --------------------------------------------------------------------------------------------------

SHOWN = ("frozen", "live")


@dataclass(frozen=True)
class Score(Record):
    """The figures of one way with so many labels; what is not known is left out."""

    way: str
    labels: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Stream(Record):
    """What the frozen and the live model said of each row: error, held, width, NLL."""

    told: Mapping[str, Sequence[Sequence[float]]]
    coverage: float
    observed: Sequence[bool]
    alarm: int | None

    @classmethod
    def of(cls, found: Replayed) -> Stream:
        """Keep a stream all of whose rows have their truth."""
        told = {}
        for way in SHOWN:
            own = found.ways[way]
            told[way] = [
                own.error.tolist(),
                own.held.tolist(),
                own.width.tolist(),
                own.nll.tolist(),
            ]
        return cls(told, found.coverage, found.observed.tolist(), found.alarm)

    def replayed(self) -> Replayed:
        """Return it as `replay` had it, of these ways."""
        ways = {
            way: Outcome(*(np.array(values) for values in own)) for way, own in self.told.items()
        }
        observed = np.array(self.observed, np.bool_)
        everything = np.ones(len(observed), np.bool_)
        return Replayed(ways, self.coverage, everything, observed, self.alarm, False)


@dataclass(frozen=True)
class DriftTrial(Record):
    """One seed of a study."""

    seconds: float
    chosen: Mapping[str, object]
    scores: Sequence[Score]
    stream: Stream | None = None


def stream_scores(streams: Sequence[Replayed], labels: str) -> list[Score]:
    """Return the figures of all ways, pooled over the rows of several streams."""
    scores = []
    for way in REPLAY_WAYS:
        parts = [one.ways[way] for one in streams]
        pooled = Outcome(*(_joined(parts, name) for name in ("error", "held", "width", "nll")))
        figures = pooled.figures()
        if streams[0].is_classes:
            figures["accuracy"] = 1 - figures.pop("error")
        if way == "live" and len(streams) == 1 and streams[0].alarm is not None:
            figures["alarm"] = float(streams[0].alarm)
        scores.append(Score(way, labels, figures))
    return scores


def _joined(parts: Sequence[Outcome], name: str) -> Floats:
    return np.concatenate([getattr(part, name) for part in parts])


# --------------------------------------------------------------------------------------------------
# Gas sensors that drift: trained on batches 1 to 6, streamed 8 and 9
#
# A label for every row and for every tenth. Rows come batch by batch, in random order within a
# batch. What a live model learns by is what `fit` chooses by replaying each training batch as a
# stream of a network that was trained without it. The grid that it is chosen from, and the
# stretches of the experts, were settled with batches 8 and 9 in view.
# --------------------------------------------------------------------------------------------------

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


def study_gas(folder: Path, seed: int) -> DriftTrial:
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


# --------------------------------------------------------------------------------------------------
# People and records outside the training set, before and after a few labels
#
# Activity: UCI HAPT, 24 users to train and choose on, 6 to judge by; 216 numbers of each window of
# 240 samples (means and deviations of its spectra), dense layers. Windows to train on overlap, and
# each has two copies that are turned at random; those to judge by share no sample. k windows of
# each class, the first in time, are labels. The 216 numbers were settled after test figures of
# seeds 0 to 2 were seen; copies and dropout after those of all seeds, by the NLL of training users
# left out in seeds 0 and 1, who are test users of other seeds. Blood pressure: 250 samples of PPG
# to 250 of pressure, a fifth of the 50-record blocks to judge by; the first k windows of a record
# are labels. Neighbouring records may be of one patient: to judge by a fifth of the records
# instead, whose neighbours are trained on, is easier.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# New groups: adapted by their first labels, and in a live stream
#
# Whatever is labelled for the largest k is left out of the test for every k, so that figures
# compare. How far adaptation may go, and the calibration, are chosen on the training groups alone:
# four networks, each without a quarter of the groups (of the blocks), predict those that they left
# out. The streams are all rows of each group in their order; a live model has its default rates
# there.
# --------------------------------------------------------------------------------------------------

FOLDS = 4
EVERY, EVERY_WORDS = 10, "1 in 10"


def activity(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the users."""
    return study(hapt_people(folder), seed)


def pressure(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the records, by blocks of them."""
    return study(bpest_people(folder), seed)


def pressure_by_record(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the records, whose neighbours are trained on."""
    return study(bpest_people(folder, by_record=True), seed)


def study(people: People, seed: int) -> DriftTrial:
    """Fit once; judge each number of labels on the same rows, then replay each group."""
    begin = time.perf_counter()
    units = np.random.default_rng(seed).permutation(np.unique(people.unit))
    model = model_for(people, units[: -people.test], seed)
    prior = model.fitted_.adaptation
    dists: dict[int, list[AnyDistribution]] = {count: [] for count in people.labels}
    truths, taken, streams = [], [], []
    for group in np.unique(people.group[np.isin(people.unit, units[-people.test :])]):
        rows = people.group == group
        X, y = people.X[rows], people.y[rows]
        streams.append(replay(model, X, y, EVERY, live=model.live(COVERAGE)))
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
    scores = [
        Score(
            "adapted" if count else "frozen",
            people.words.format(count) if count else "none",
            _figures(parts, truth),
        )
        for count, parts in dists.items()
    ]
    scores += stream_scores(streams, EVERY_WORDS)
    chosen = {"rows": prior.rows, "groups": prior.groups}
    chosen["adapt_milliseconds"] = 1e3 * float(np.median(taken))
    return DriftTrial(time.perf_counter() - begin, chosen, scores)


def model_for(people: People, units: Rows, seed: int) -> Any:
    """Fit; calibrate, and choose how far adaptation may go, on units that were left out."""
    model = _fitted_on(people, units, seed)
    parts = np.array_split(units, FOLDS)
    left = [(_fitted_on(people, units[~np.isin(units, own)], seed), own) for own in parts]
    dists, truths = [], []
    for one, own in left:
        rows = np.isin(people.unit, own)
        dists.append(one.fitted_.uncalibrated(people.X[rows].astype(float)))
        truths.append(people.y[rows])
    kind = "temperature" if people.is_classes else "scale"
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


def _fitted_on(people: People, units: Rows, seed: int) -> Any:
    """Fit on some units, of which the last few choose the step."""
    held = np.isin(people.unit_train, units[-people.validation :])
    train = np.isin(people.unit_train, units[: -people.validation])
    kind = RDeepSenseClassifier if people.is_classes else RDeepSenseRegressor
    model = kind(
        effort="quick",
        drop_prob=people.drop_prob,
        random_state=seed,
        device="cpu",
        keep_rows=0,
        verbose=False,
    )
    X, y = people.X_train, people.y_train
    return model.fit(X[train], y[train], validation=(X[held], y[held]))


def _figures(parts: list[AnyDistribution], truth: Rows) -> dict[str, float]:
    dist = concatenate(parts)
    figures = metrics.evaluate(dist, truth)
    if "mae" not in figures:
        return {name: float(figures[name]) for name in ("accuracy", "nll")}
    low, high = dist.interval(COVERAGE)
    return {
        "error": float(figures["mae"]),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "nll": float(figures["nll"]),
    }


# --------------------------------------------------------------------------------------------------
# Cells: one seed of one study each
#
# As with `benchmark uci`, a cell is known by everything that its figures follow from, and its file
# name carries a hash of that.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """A study: what it is about, the files that it reads, and how one seed of it is judged."""

    title: str
    unit: str
    files: tuple[str, ...]
    judge: Callable[[Path, int], DriftTrial]
    remark: str = ""


STUDIES: Mapping[str, Study] = {
    "gas": Study(
        "Gas sensors: batches 1 to 6, then 8 and 9",
        "ppm",
        (GAS,),
        study_gas,
        "The form of the mixture was settled with batches 8 and 9 in view.",
    ),
    "people": Study(
        "Activity: users never trained on",
        "",
        (PEOPLE,),
        activity,
        "Inputs and dropout were settled with test figures of these seeds in view.",
    ),
    "pressure": Study(
        "Blood pressure: blocks of records never trained on", "mmHg", PRESSURE, pressure
    ),
    "pressure-by-record": Study(
        "Blood pressure: records never trained on, their neighbours are",
        "mmHg",
        PRESSURE,
        pressure_by_record,
    ),
}


@dataclass(frozen=True)
class DriftCell:
    """One seed of one study."""

    task: str
    folder: Path
    data: str  # digest of the files
    seed: int

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        return {
            "task": self.task,
            "data": self.data,
            "seed": self.seed,
            "version": VERSION,
        }

    @property
    def file_name(self) -> str:
        """The file that keeps the trial."""
        text = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.task}-{self.seed:02d}-{text}.json"

    def run(self) -> DriftTrial:
        """Fit and judge; takes minutes."""
        return STUDIES[self.task].judge(self.folder, self.seed)

    def read(self, folder: Path) -> DriftTrial | None:
        """Return the finished trial; None without one."""
        return read_cell(folder / self.file_name, self.key, DriftTrial.from_json)

    def write(self, folder: Path, trial: DriftTrial) -> None:
        """Keep the trial."""
        write_cell(folder / self.file_name, self.key, trial.to_json())


@dataclass(frozen=True)
class DriftOutcome:
    """The finished cells, how many of them ran now, and which ones failed."""

    done: list[tuple[DriftCell, DriftTrial]]
    ran: int
    failed: list[tuple[DriftCell, Failure]]


def cells_of(data: Path, tasks: Sequence[str], seeds: int) -> list[DriftCell]:
    """Return all cells, seed by seed, so that a stopped run has about equally many of each."""
    for task in tasks:
        if task not in STUDIES:
            raise InputError(f"--task {task!r}; accepted: {', '.join(STUDIES)}")
    digests = {task: digest(data, STUDIES[task].files) for task in tasks}
    place = data.resolve()  # other processes may stand elsewhere
    return [DriftCell(task, place, digests[task], s) for s in range(seeds) for task in tasks]


def run_cells(
    cells: Sequence[DriftCell], folder: Path, engine: Engine, progress: Progress
) -> DriftOutcome:
    """Run what is not in `folder` yet; each cell is written there by whoever runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {number: trial for number, cell in enumerate(cells) if (trial := cell.read(folder))}
    pending = [number for number in range(len(cells)) if number not in found]
    failed, before = [], len(found)
    progress.start("drift", len(cells), before)
    if pending:
        first = cells[pending[0]]
        progress.update(before, f"{before} of {len(cells)} cells, first {first.task} {first.seed}")
    try:
        for place, result in run_kept([cells[n] for n in pending], folder, engine):
            cell = cells[pending[place]]
            if isinstance(result, Failure):
                failed.append((cell, result))
            else:
                found[pending[place]] = result
            done = len(found) + len(failed)
            progress.update(done, f"{done} of {len(cells)} cells, last {cell.task} {cell.seed}")
    finally:
        progress.close()
    finished = [(cells[number], found[number]) for number in sorted(found)]
    return DriftOutcome(finished, len(found) - before, failed)


# --------------------------------------------------------------------------------------------------
# Results of the studies from finished cells: means over seeds
# --------------------------------------------------------------------------------------------------

MEANS = ("error", "accuracy", "coverage", "width", "nll")


@dataclass(frozen=True)
class Figure(Record):
    """The mean over seeds and its standard error; of alarms the median, without one."""

    value: float
    standard_error: float | None
    seeds: int


@dataclass(frozen=True)
class Summary(Record):
    """One way with so many labels, over the seeds."""

    task: str
    way: str
    labels: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class CellScores(Record):
    """What one seed chose and how long it took; its scores are in its cell's file."""

    task: str
    seed: int
    seconds: float
    chosen: Mapping[str, object]


@dataclass(frozen=True)
class DriftResults(Record):
    """All that was found."""

    summary: Sequence[Summary]
    cells: Sequence[CellScores]
    machine: Machine
    versions: Mapping[str, str]


def results_of(done: Sequence[tuple[DriftCell, DriftTrial]]) -> DriftResults:
    """Summarise finished cells."""
    import torch

    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for cell, trial in done:
        for score in trial.scores:
            own = found.setdefault((cell.task, score.way, score.labels), {})
            for name, value in score.figures.items():
                own.setdefault(name, []).append(value)
    summary = [
        Summary(*key, {name: _figure(name, values) for name, values in own.items()})
        for key, own in found.items()
    ]
    cells = [CellScores(cell.task, cell.seed, one.seconds, one.chosen) for cell, one in done]
    versions = {
        "rdeepsense": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return DriftResults(summary, cells, Machine.this(), versions)


def _figure(name: str, values: list[float]) -> Figure:
    count = len(values)
    if name == "alarm":
        return Figure(float(median(values)), None, count)
    return Figure(fmean(values), stdev(values) / count**0.5 if count > 1 else None, count)


def tables_of(results: DriftResults) -> list[TextTable]:
    """Return a table for each study: a row for each way and its labels."""
    tables = []
    for task in dict.fromkeys(row.task for row in results.summary):
        rows = [row for row in results.summary if row.task == task]
        shown = [name for name in MEANS if any(name in row.figures for row in rows)]
        alarms = any("alarm" in row.figures for row in rows)
        seeds = sum(1 for cell in results.cells if cell.task == task)
        study = STUDIES[task]
        heads = {"error": f"MAE, {study.unit}", "coverage": "90 % holds", "nll": "NLL"}
        heads["accuracy"] = "accuracy, %"
        if "accuracy" in shown:
            heads["width"] = "size of set"
        header = ["way", "labels", *(heads.get(name, name) for name in shown)]
        lines = [
            [row.way, row.labels, *(_cell(name, row.figures.get(name)) for name in shown)]
            + [_cell("alarm", row.figures.get("alarm"))] * alarms
            for row in rows
        ]
        caption = f"Mean ± standard error of {seeds} seeds." if seeds > 1 else "One seed."
        if alarms:
            header.append("alarm")
            caption += " alarm: rows until it rang, median."
        caption += f" {study.remark}" if study.remark else ""
        tables.append(TextTable(study.title, caption, header, lines))
    return tables


def _cell(name: str, figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if name == "alarm":
        return f"{figure.value:g}"
    factor, error = 100 if name == "accuracy" else 1, figure.standard_error
    return with_error(factor * figure.value, None if error is None else factor * error)


# --------------------------------------------------------------------------------------------------
# The page of the drift studies
# --------------------------------------------------------------------------------------------------

WAYS = {
    "frozen": "the model as it is",
    "tracked": "its intervals stretched by a quantile that is tracked",
    "adapted": "the last layer learns on, in closed form",
    "live": "both, as model.live() does it",
}


def drift_page(
    results: DriftResults, tables: Sequence[TextTable], stream: Replayed | None, unit: str
) -> str:
    """Return the whole page as text; `stream` is drawn over time."""
    ways = "".join(f"<dt>{way}</dt><dd>{words}</dd>" for way, words in WAYS.items())
    parts = [
        "<p>Real data. Every row is predicted before its own label comes. Labels: those of all "
        "rows, of one in ten, or the first few of a group, which are left out of the test.</p>\n"
        f"<dl>{ways}</dl>"
    ]
    for one in tables:
        parts.append(
            f"<h2>{escape(one.title)}</h2>\n{table(one.header, one.rows, kind='cards')}\n"
            f'<p class="soft"><small>{escape(one.caption)}</small></p>'
        )
    if stream is not None:
        parts.append(
            "<h2>One stream of gas sensors over time</h2>\n<p>Batches 8 and 9, seed 0, a label for "
            f"every tenth row.</p>\n{charts(stream, unit)}"
        )
    machine = results.machine
    about = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    about += f", {machine.system} on {machine.processor}, {machine.cores} cores."
    parts.append(f'<p class="soft"><small>{escape(about)}</small></p>')
    return page("Models in life", "\n".join(parts), STYLE)
