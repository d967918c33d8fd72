"""`rdeepsense benchmark uci`: methods on data sets with fixed splits."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import tokenize
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import __version__
from rdeepsense._progress import Progress
from rdeepsense._records import Record, to_plain
from rdeepsense.comparison.methods import FAMILIES, REFERENCE, Method, by_family
from rdeepsense.comparison.page import comparison_figure, method_list
from rdeepsense.comparison.statistics import (
    BySplit,
    PooledArea,
    SplitScore,
    Summary,
    summarise,
    with_error,
)
from rdeepsense.comparison.trial import FamilyTrial, contender, run_trial
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError
from rdeepsense.pages.html import TextTable, page, table
from rdeepsense.pages.pictures import inline_svg
from rdeepsense.paper.cells import VERSION, Machine, read_cell, run_kept, write_cell
from rdeepsense.paper.tasks.fetch import ALWAYS_BYTES, DAMAGE, MOST_RATIO

# --------------------------------------------------------------------------------------------------
# The layout of a data set: one .npz file with rows and splits
#
#     x          (N, d) numbers
#     y          (N,)   numbers
#     test_mask  (splits, ceil(N / 8)) uint8: for each split the bits of its rows, packed,
#                np.packbits(is_test, axis=1) with is_test (splits, N); 1 is a test row
#
# Other arrays in the file are left alone, and nothing in it is ever executed (no pickles).
# --------------------------------------------------------------------------------------------------

ARRAYS = ("x", "y", "test_mask")
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
FEWEST_TRAINING_ROWS = 10  # the estimators' own limit


@dataclass(frozen=True)
class DataSet:
    """A table with its splits; `digest` changes with any of its numbers."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    test: NDArray[np.bool_]
    digest: str

    @property
    def splits(self) -> int:
        """The number of splits."""
        return len(self.test)


def find(folder: Path, names: list[str] | None = None) -> list[Path]:
    """Return the folder's files, all or those whose names begin like `names`."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder}: has no .npz file with a data set")
    if names is None:
        return files
    return list(dict.fromkeys(_match(name, files) for name in names))


def load(path: Path) -> DataSet:
    """Read and check one file."""
    try:
        with zipfile.ZipFile(path) as file:
            arrays = _arrays(file, path.stat().st_size)
    except (*DAMAGE, MemoryError, tokenize.TokenError) as error:
        raise InputError(f"{path}: is no readable .npz file of plain arrays ({error})") from error
    for key in ARRAYS:
        if key not in arrays:
            raise InputError(f"{path}: has no array {key!r}; needed are x, y and test_mask")
    x, y, mask = (arrays[key] for key in ARRAYS)
    for key, array, axes in (("x", x, 2), ("y", y, 1)):
        if array.ndim != axes or array.dtype.kind not in "fiu":
            raise InputError(
                f"{path}: {key} has shape {array.shape} and type {array.dtype}; "
                f"needed are numbers with {axes} ax{'e' if axes == 2 else 'i'}s"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {key} contains NaN or infinity")
    if len(x) != len(y):
        raise InputError(f"{path}: x has {len(x)} rows, y has {len(y)}; they must agree")
    test = _unpack(path, mask, len(x))
    digest = hashlib.sha256(repr((x.shape, mask.shape)).encode())
    for array in (x.astype(np.float64), y.astype(np.float64), mask):
        digest.update(np.ascontiguousarray(array).tobytes())
    return DataSet(
        path.stem, x.astype(np.float64), y.astype(np.float64), test, digest.hexdigest()[:16]
    )


def _arrays(file: zipfile.ZipFile, size: int) -> dict[str, NDArray[Any]]:
    """Read the arrays, no more bytes of them than a file of this size may bring."""
    members = {member.filename: member for member in file.infolist()}
    found = {key: members[f"{key}.npy"] for key in ARRAYS if f"{key}.npy" in members}
    total, most = (
        sum(member.file_size for member in found.values()),
        max(ALWAYS_BYTES, MOST_RATIO * size),
    )
    if total > most:
        raise ValueError(f"its arrays take {total:,} bytes; at most {most:,} of one this size")
    return {key: _array(file.open(member)) for key, member in found.items()}


def _array(stream: IO[bytes]) -> NDArray[Any]:
    """Read an array whose header fits the bytes that follow it."""
    with stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise ValueError(f"an array has the version {version}")
        shape, is_fortran, dtype = HEADERS[version](stream)
        if dtype.hasobject:
            raise ValueError("an array holds objects, which are not plain numbers")
        data = stream.read()
    if not all(length >= 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} has {len(data)} bytes")
    flat: NDArray[Any] = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _unpack(path: Path, mask: NDArray[np.uint8], rows: int) -> NDArray[np.bool_]:
    width = -(-rows // 8)
    if mask.dtype != np.uint8 or mask.ndim != 2 or mask.shape[1] != width or not len(mask):
        raise InputError(
            f"{path}: test_mask has shape {mask.shape} and type {mask.dtype}; "
            f"needed are (splits, {width}) packed bits of type uint8 for {rows} rows"
        )
    test = np.unpackbits(mask, axis=1, count=rows).astype(bool)
    for split, rows_of in enumerate(test):
        if not rows_of.any() or (~rows_of).sum() < FEWEST_TRAINING_ROWS:
            raise InputError(
                f"{path}: split {split} has {rows_of.sum()} test rows of {rows}; needed are at "
                f"least 1 to test and {FEWEST_TRAINING_ROWS} to train"
            )
    return test


def _match(name: str, files: list[Path]) -> Path:
    """Return the file of that name, or the only one whose name begins so."""
    exact = [file for file in files if file.stem == name]
    found = exact or [file for file in files if file.stem.lower().startswith(name.lower())]
    if len(found) != 1 or not name:
        what = "begins several names" if len(found) > 1 else "is not there"
        raise InputError(f"data set {name!r} {what}; there are {', '.join(f.stem for f in files)}")
    return found[0]


# --------------------------------------------------------------------------------------------------
# Cells: one family on one split of one data set
#
# A cell is known by everything that its figures follow from (data, split, estimator and all its
# arguments, the version of the figures); its file name carries a hash of that, so that a changed
# setting is another cell and never mistaken for an old one.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BenchmarkCell:
    """A family to fit and score on one split of one data set."""

    data: DataSet
    split: int
    methods: tuple[Method, ...]  # of one family
    hidden: tuple[int, ...] | str
    seed: int
    epochs: int | None = None

    @property
    def random_state(self) -> int:
        """Another one for each split, so that the standard errors include the initial weights."""
        return self.seed + self.split

    @property
    def family(self) -> str:
        """The name of the family that the methods belong to."""
        return self.methods[0].family

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        model = contender(self.methods, "regression", self.hidden, self.random_state, self.epochs)
        key = {
            "dataset": self.data.name,
            "data": self.data.digest,
            "split": self.split,
            "family": self.family,
            "estimator": type(model).__name__,
            "arguments": model.get_params(deep=False),
            "version": VERSION,
        }
        family = FAMILIES[self.family]
        if family.is_peer and family.library:
            key["library"] = f"{family.library} {metadata.version(family.library)}"
        plain: dict[str, object] = json.loads(json.dumps(key, default=str))
        return plain

    @property
    def file_name(self) -> str:
        """The file that keeps the trial."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.data.name}-{self.split:02d}-{self.family}-{digest}.json"

    def run(self) -> FamilyTrial:
        """Fit and score; takes long."""
        test = self.data.test[self.split]
        x, y = self.data.x, self.data.y
        return run_trial(
            self.methods,
            "regression",
            (x[~test], y[~test]),
            (x[test], y[test]),
            self.hidden,
            self.random_state,
            epochs=self.epochs,
        )

    def read(self, folder: Path) -> FamilyTrial | None:
        """Return the finished trial; None without one, or not of all the methods asked for."""
        trial = self._read(folder)
        if trial is None or any(method.name not in trial.methods for method in self.methods):
            return None
        return trial

    def write(self, folder: Path, trial: FamilyTrial) -> None:
        """Keep the trial, beside scores of other methods from the same fitted model."""
        before = self._read(folder)
        if before is not None:
            trial = replace(trial, methods={**before.methods, **trial.methods})
        write_cell(folder / self.file_name, self.key, trial.to_json())

    def _read(self, folder: Path) -> FamilyTrial | None:
        return read_cell(folder / self.file_name, self.key, FamilyTrial.from_json)


# --------------------------------------------------------------------------------------------------
# Published results on the same data sets, with sources
#
# Means over the splits of their authors, who trained one hidden layer of 50 units (100 for protein)
# for 40 epochs: other training, and in part other splits, than ours.
# --------------------------------------------------------------------------------------------------

REMARK = "published, other splits/training"

# Whole names: the white wines, say, are another data set than the red ones of the tables.
ALIASES = {
    "bostonhousing": "boston",
    "concretestrength": "concrete",
    "energyefficiency": "energy",
    "navalpropulsion": "naval",
    "navalpropulsionplant": "naval",
    "powerplant": "power",
    "proteinstructure": "protein",
    "proteintertiarystructure": "protein",
    "winequalityred": "wine",
    "yachthydrodynamics": "yacht",
}


@dataclass(frozen=True)
class Published:
    """One method's mean test RMSE and mean test NLL, by data set."""

    method: str
    source: str
    rmse: dict[str, float]
    nll: dict[str, float]

    def figure(self, dataset: str, key: str) -> float | None:
        """Return `key` ("rmse" or "nll") for a data set of that file name, if there is one."""
        plain = "".join(letter for letter in dataset.lower() if letter.isalnum())
        known: dict[str, float] = {"rmse": self.rmse, "nll": self.nll}[key]
        return known.get(ALIASES.get(plain, plain))


# Its table gives the test log-likelihood; the NLL here is minus that.
MC_DROPOUT = Published(
    "MC dropout",
    "Gal & Ghahramani 2016, Dropout as a Bayesian Approximation, Table 1",
    rmse={"boston": 2.97, "concrete": 5.23, "energy": 1.66, "kin8nm": 0.10, "naval": 0.01,
          "power": 4.02, "protein": 4.36, "wine": 0.62, "yacht": 1.11},
    nll={"boston": 2.46, "concrete": 3.04, "energy": 1.99, "kin8nm": -0.95, "naval": -3.80,
         "power": 2.80, "protein": 2.89, "wine": 0.93, "yacht": 1.55},
)  # fmt: skip
DEEP_ENSEMBLES = Published(
    "Deep Ensembles (5)",
    "Lakshminarayanan, Pritzel & Blundell 2017, Simple and Scalable Predictive Uncertainty "
    "Estimation using Deep Ensembles, Table 1",
    rmse={"boston": 3.28, "concrete": 6.03, "energy": 2.09, "kin8nm": 0.09, "naval": 0.00,
          "power": 4.11, "protein": 4.71, "wine": 0.64, "yacht": 1.58},
    nll={"boston": 2.41, "concrete": 3.06, "energy": 1.38, "kin8nm": -1.20, "naval": -5.63,
         "power": 2.79, "protein": 2.83, "wine": 0.94, "yacht": 1.18},
)  # fmt: skip
PUBLISHED = (MC_DROPOUT, DEEP_ENSEMBLES)


# --------------------------------------------------------------------------------------------------
# Running cells: finished ones are read, others are computed
# --------------------------------------------------------------------------------------------------

Done = list[tuple[BenchmarkCell, FamilyTrial]]


@dataclass(frozen=True)
class BenchmarkOutcome:
    """The finished cells, how many of them ran now, and which ones failed."""

    done: Done
    ran: int
    failed: list[tuple[BenchmarkCell, Failure]]


def cells_of(
    datasets: Sequence[DataSet],
    splits: Sequence[int] | None,
    methods: Sequence[Method],
    hidden: tuple[int, ...] | str,
    seed: int,
    epochs: int | None = None,
) -> list[BenchmarkCell]:
    """Return all cells, split by split over all data sets.

    In this order a stopped run has about equally many splits of everything, and the time left
    follows from the share that is done, however different the data sets are in size.
    """
    for data in datasets:
        beyond = [split for split in splits or () if split >= data.splits]
        if beyond:
            raise InputError(f"{data.name}: has splits 0 to {data.splits - 1}; got {beyond[0]}")
    last = max(data.splits for data in datasets)
    return [
        BenchmarkCell(data, split, family, hidden, seed, epochs)
        for split in (range(last) if splits is None else dict.fromkeys(splits))
        for data in datasets
        if split < data.splits
        for family in by_family(methods).values()
    ]


def run_cells(
    cells: Sequence[BenchmarkCell], folder: Path, engine: Engine, progress: Progress
) -> BenchmarkOutcome:
    """Run what is not in `folder` yet; each cell is written there by whoever runs it.

    A cell that fails does not stop the others. It leaves no file, so the next run tries it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = [(cell, cell.read(folder)) for cell in cells]
    done: Done = [(cell, trial) for cell, trial in found if trial is not None]
    pending = [cell for cell, trial in found if trial is None]
    failed: list[tuple[BenchmarkCell, Failure]] = []
    ran = 0
    progress.start("benchmark", len(cells), len(done))
    if pending:
        begin = pending[0]
        first = f"first {begin.data.name} split {begin.split}, {begin.family}"
        progress.update(len(done), f"{len(done)} of {len(cells)} cells, {first}")
    try:
        for number, result in run_kept(pending, folder, engine):
            cell = pending[number]
            if isinstance(result, Failure):
                failed.append((cell, result))
            else:
                done.append((cell, result))
                ran += 1
            at = f"{cell.data.name} split {cell.split}, {cell.family}"
            finished = len(done) + len(failed)
            progress.update(finished, f"{finished} of {len(cells)} cells, last {at}")
    finally:
        progress.close()
    order = {id(cell): number for number, cell in enumerate(cells)}
    return BenchmarkOutcome(sorted(done, key=lambda pair: order[id(pair[0])]), ran, failed)


# --------------------------------------------------------------------------------------------------
# Results of a benchmark from finished cells
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings(Record):
    """Arguments that all cells share."""

    hidden: Sequence[int] | str
    seed: int


@dataclass(frozen=True)
class DataSetSize(Record):
    """The size of a data set."""

    rows: int
    inputs: int
    splits: int


@dataclass(frozen=True)
class CellScore:
    """The score of one method in one cell."""

    dataset: str
    split: int
    method: Method
    chosen: Mapping[str, object] | None
    score: SplitScore

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        score = self.score
        return {
            "dataset": self.dataset,
            "split": self.split,
            "method": self.method.name,
            "passes": self.method.passes,
            "fit_seconds": score.fit_seconds,
            "chosen": to_plain(self.chosen),
            **score.score.to_json(),
        }


@dataclass(frozen=True)
class PublishedScore(Record):
    """Published means of one method on the data sets at hand."""

    method: str
    source: str
    remark: str
    nll: Mapping[str, float]
    rmse: Mapping[str, float]

    def by_dataset(self, figure: str) -> Mapping[str, float] | None:
        """Return `nll` or `rmse`, None for a figure that was not published."""
        return {"nll": self.nll, "rmse": self.rmse}.get(figure)


@dataclass(frozen=True)
class FamilyWarnings(Record):
    """A count of the cells of a family that warned, with the first warning."""

    family: str
    cells: int
    example: str


@dataclass(frozen=True)
class FailedCell(Record):
    """A cell without a result, and why."""

    dataset: str
    split: int
    family: str
    error: str


@dataclass(frozen=True)
class BenchmarkResults:
    """Everything that results.json holds; no path of this machine is in it."""

    settings: Settings
    methods: Sequence[Method]
    datasets: Mapping[str, DataSetSize]
    summary: Mapping[str, Sequence[Summary]]  # by data set, a row for each method
    published: Sequence[PublishedScore]
    warnings: Sequence[FamilyWarnings]
    failed: Sequence[FailedCell]
    cells: Sequence[CellScore]
    machine: Machine
    versions: Mapping[str, str]

    @property
    def reference(self) -> str | None:
        """The method that differences are taken against, if it is among them."""
        return REFERENCE if any(method.name == REFERENCE for method in self.methods) else None

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {
            "benchmark": "uci",
            "settings": self.settings.to_json(),
            "reference": self.reference,
            "methods": {m.name: {"passes": m.passes, "about": m.about} for m in self.methods},
            "datasets": to_plain(self.datasets),
            "summary": [
                {"dataset": name, **row.to_json()}
                for name, rows in self.summary.items()
                for row in rows
            ],
            "published": to_plain(self.published),
            "warnings": to_plain(self.warnings),
            "failed": to_plain(self.failed),
            "cells": [cell.to_json() for cell in self.cells],
            "machine": self.machine.to_json(),
            "versions": dict(self.versions),
        }


def results_of(
    outcome: BenchmarkOutcome, methods: Sequence[Method], hidden: tuple[int, ...] | str, seed: int
) -> BenchmarkResults:
    """Return what the finished cells say, alone and together."""
    cells = [
        CellScore(
            cell.data.name,
            cell.split,
            method,
            trial.chosen,
            SplitScore(trial.fit_seconds, trial.methods[method.name]),
        )
        for cell, trial in outcome.done
        for method in cell.methods
    ]
    datasets = {cell.data.name: cell.data for cell, _ in outcome.done}
    return BenchmarkResults(
        settings=Settings(hidden, seed),
        methods=methods,
        datasets={
            name: DataSetSize(len(data.y), data.x.shape[1], data.splits)
            for name, data in datasets.items()
        },
        summary={name: _summary(name, methods, cells) for name in datasets},
        published=_published(list(datasets)),
        warnings=_warnings(outcome),
        failed=[
            FailedCell(cell.data.name, cell.split, cell.family, failure.reason)
            for cell, failure in outcome.failed
        ],
        cells=cells,
        machine=Machine.this(),
        versions={
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    )


def _summary(dataset: str, methods: Sequence[Method], cells: list[CellScore]) -> list[Summary]:
    by_method: dict[str, BySplit] = {
        method.name: {
            cell.split: cell.score
            for cell in cells
            if (cell.dataset, cell.method) == (dataset, method)
        }
        for method in methods
    }
    reference = by_method.get(REFERENCE)
    return [
        summarise(method, by_method[method.name], reference, "regression")
        for method in methods
        if by_method[method.name]
    ]


def _published(datasets: Sequence[str]) -> list[PublishedScore]:
    rows = []
    for published in PUBLISHED:
        nll, rmse = (
            {name: value for name in datasets if (value := published.figure(name, key)) is not None}
            for key in ("nll", "rmse")
        )
        if nll:
            rows.append(PublishedScore(published.method, published.source, REMARK, nll, rmse))
    return rows


def _warnings(outcome: BenchmarkOutcome) -> list[FamilyWarnings]:
    by_family: dict[str, list[str]] = {}
    for cell, trial in outcome.done:
        if trial.warnings:
            by_family.setdefault(cell.family, []).append(trial.warnings[0])
    return [FamilyWarnings(family, len(texts), texts[0]) for family, texts in by_family.items()]


# --------------------------------------------------------------------------------------------------
# Tables of a benchmark: methods by data sets
# --------------------------------------------------------------------------------------------------


def tables_of(results: BenchmarkResults) -> list[TextTable]:
    """Return all tables in the order of their weight."""
    best = "bold: the best mean."
    tables = [_metric(results, "nll", "Test NLL (nats, target's units)", best)]
    if results.reference is not None:
        tables.append(_differences(results, results.reference))
    return [
        *tables,
        _pooled(results),
        _metric(results, "rmse", "Test RMSE", best),
        _metric(results, "mae", "Test MAE", best),
        _metric(results, "crps", "Test CRPS", best),
        _metric(results, "coverage_90", "Coverage of the 90 % interval", "0.90 is right."),
        _splitwise_area(results),
        _cost(results),
    ]


def _metric(results: BenchmarkResults, key: str, title: str, caption: str) -> TextTable:
    published = [(row.method, own) for row in results.published if (own := row.by_dataset(key))]
    remark = f" In italics: {REMARK}." if published else ""
    table = _by_dataset(
        results, title, f"Mean ± standard error over splits; {caption}{remark}",
        lambda row: with_error(*row.means[key]),
    )  # fmt: skip
    if caption.startswith("bold"):
        table.strong.update(_least(results, key))
    for method, own in published:
        table.aside.add(len(table.rows))
        cells = [own.get(name) for name in results.datasets]
        table.rows.append(
            [f"{method}, published", *("-" if cell is None else f"{cell:.2f}" for cell in cells)]
        )
    return table


def _differences(results: BenchmarkResults, reference: str) -> TextTable:
    table = _by_dataset(
        results,
        f"NLL minus that of {reference}, split by split",
        "Mean ± standard error of the paired differences; above 0 the single pass is better; "
        "bold: more than 2 standard errors from 0.",
        lambda row: with_error(*row.differences["nll"], signed=True),
        lambda row: row.method != reference,
    )
    names = [row[0] for row in table.rows]
    for column, rows in enumerate(results.summary.values(), 1):
        for row in rows:
            value, error = row.differences["nll"]
            clear = value is not None and error and abs(value) > 2 * error
            if row.method != reference and clear:
                table.strong.add((names.index(row.method), column))
    return table


def _pooled(results: BenchmarkResults) -> TextTable:
    table = _by_dataset(
        results,
        "Deviation area of the test rows of all splits together (signed)",
        "Signed: + intervals too wide, - too narrow. Floor: what a perfect model has on average "
        "with so many rows; rows that several splits test count each time. Read it beside NLL.",
        lambda row: f"{_area(row).pooled_area:.3f} ({_area(row).pooled_area_signed:+.3f})",
    )
    # The first method stands for all: they have been scored on the same rows.
    firsts = [_area(rows[0]) for rows in results.summary.values()]
    table.aside.add(len(table.rows))
    table.rows.append(
        ["floor (test rows)", *(f"{own.pooled_floor:.3f} ({own.pooled_rows:,})" for own in firsts)]
    )
    return table


def _area(row: Summary) -> PooledArea:
    assert row.pooled is not None  # a benchmark is of regression
    return row.pooled


def _splitwise_area(results: BenchmarkResults) -> TextTable:
    return _by_dataset(
        results,
        "Deviation area of each split's test rows",
        "Mean ± standard error over splits, and in brackets the floor at one split's rows.",
        lambda row: (
            f"{with_error(*row.means['deviation_area'])} ({row.means['deviation_floor'].value:.3f})"
        ),
    )


def _cost(results: BenchmarkResults) -> TextTable:
    table = _by_dataset(
        results,
        "Cost: seconds to fit",
        "Mean over splits, everything that is chosen included; methods of one family share a fit. "
        "Passes: forward passes of one prediction; what is no network has none.",
        lambda row: f"{row.fit_seconds:.1f}",
    )
    passes = {method.name: method.passes for method in results.methods}
    table.header.insert(1, "passes")
    for row in table.rows:
        row.insert(1, "-" if passes[row[0]] is None else str(passes[row[0]]))
    return table


def _by_dataset(
    results: BenchmarkResults,
    title: str,
    caption: str,
    cell: Callable[[Summary], str],
    keep: Callable[[Summary], bool] = lambda row: True,
) -> TextTable:
    """Return a row for each method, a column for each data set with its number of splits."""
    found = {
        (row.method, name): row
        for name, rows in results.summary.items()
        for row in rows
        if keep(row)
    }
    datasets = list(results.datasets)
    rows = [
        [name] + [cell(found[name, data]) if (name, data) in found else "-" for data in datasets]
        for name in (method.name for method in results.methods)
        if any((name, data) in found for data in datasets)
    ]
    header = ["", *(f"{name} ({_splits(results, name)})" for name in datasets)]
    return TextTable(title, caption, header, rows)


def _splits(results: BenchmarkResults, dataset: str) -> str:
    """Return how many splits stand behind a column; a range where methods differ."""
    counts = sorted({row.splits for row in results.summary[dataset]})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _least(results: BenchmarkResults, key: str) -> set[tuple[int, int]]:
    """Return the cell of the least mean in each column."""
    scored = {row.method for rows in results.summary.values() for row in rows}
    methods = [method.name for method in results.methods if method.name in scored]
    places = set()
    for column, rows in enumerate(results.summary.values(), 1):
        known = {row.method: value for row in rows if (value := row.means[key].value) is not None}
        places.add((methods.index(min(known, key=lambda name: known[name])), column))
    return places


# --------------------------------------------------------------------------------------------------
# The page of a benchmark
# --------------------------------------------------------------------------------------------------


def benchmark_page(results: BenchmarkResults, tables: Sequence[TextTable]) -> str:
    """Return the whole page as text."""
    parts = [_opening(results)]
    label = "NLL differences and deviation areas of each method on each data set"
    for number, one in enumerate(tables):
        parts.append(
            f"<h2>{escape(one.title)}</h2>\n"
            f"{table(one.header, one.rows, one.strong, one.aside)}\n"
            f'<p class="soft"><small>{escape(one.caption)}</small></p>'
        )
        if number == 1:
            picture = inline_svg(comparison_figure(results.summary), label)
            parts.append(f"<figure>{picture}</figure>")
    return page("UCI regression benchmark", "\n".join([*parts, _sources(results)]))


def _opening(results: BenchmarkResults) -> str:
    settings, versions, machine = results.settings, results.versions, results.machine
    sets = ", ".join(
        f"{escape(name)} ({data.rows:,} rows, {data.inputs} inputs)"
        for name, data in results.datasets.items()
    )
    hidden = "chosen by the methods that leave them open, else 64, 64"
    if not isinstance(settings.hidden, str):
        hidden = ", ".join(str(width) for width in settings.hidden)
    return (
        f"<p>Data sets: {sets}. In a column's head, in brackets, the number of splits.</p>\n"
        f"<p>Hidden layers ({hidden}), seed {settings.seed}. Every choice was made on training "
        "and validation rows; test rows were used for these figures alone. Splits share rows, so "
        "standard errors over splits are a little too small.</p>\n"
        f"{method_list(results.methods)}\n"
        f'<p class="soft"><small>rdeepsense {escape(versions["rdeepsense"])}, Python '
        f"{escape(versions['python'])}, {escape(machine.system)} on "
        f"{escape(machine.processor)}, {machine.cores} cores.</small></p>"
    )


def _sources(results: BenchmarkResults) -> str:
    lines = [
        f"<li>{escape(row.method)}: {escape(row.source)} ({escape(row.remark)}).</li>"
        for row in results.published
    ]
    lines += [
        f"<li>{escape(row.family)} warned in {row.cells} cells, for example: "
        f"{escape(row.example)}</li>"
        for row in results.warnings
    ]
    lines += [
        f"<li>Failed: {escape(row.family)} on {escape(row.dataset)}, split {row.split}: "
        f"{escape(row.error)}</li>"
        for row in results.failed
    ]
    return f"<h2>Sources and remarks</h2>\n<ul>{''.join(lines)}</ul>" if lines else ""
