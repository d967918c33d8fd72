"""What the sensing tasks share: rows, units, splits, files, simulated truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from rdeepsense._files import replacing
from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Seed, count, generator
from rdeepsense.errors import InputError, require

# --------------------------------------------------------------------------------------------------
# Location of an invalid line in a CSV file
# --------------------------------------------------------------------------------------------------

SHOWN = 80  # characters of a broken line that an error repeats

Reading = Callable[[str], object]  # raises ValueError on a field that it cannot read


def refuse_broken_lines(path: Path, readings: Mapping[str, Reading], header: bool = True) -> None:
    """Raise InputError at the first line with a wrong number of fields or an unreadable one.

    `readings` tells how to read a column, by its name in the header or, without one, as `positions`
    names it. Blank lines are no damage. A walk takes microseconds a line, too long for files of
    millions unless they are known to have something wrong.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        names: list[str] = []
        for number, line in enumerate(file, start=1):
            found = fields(line)
            if found == [""]:
                continue
            if not names:
                names = found if header else positions(found)
                if header:
                    continue
            if len(found) != len(names):
                raise InputError(
                    f"{path}, line {number}: {len(found)} fields, not {len(names)}: "
                    f"{line.rstrip()[:SHOWN]!r}"
                )
            for name, field in zip(names, found, strict=True):
                if name in readings:
                    try:
                        readings[name](field)
                    except ValueError as error:
                        raise InputError(f"{path}, line {number}: {name} = {error}") from None


def fields(line: str) -> list[str]:
    """Return the fields of a line, without quotes; [""] for a blank line."""
    return [field.strip().strip('"') for field in line.rstrip("\r\n").split(",")]


def positions(fields: Sequence[str]) -> list[str]:
    """Return names for the columns of a file without a header."""
    return [f"column {position}" for position, _ in enumerate(fields, start=1)]


def whole_number(field: str) -> int:
    """Read an integer, as the clocks of devices write it."""
    try:
        return int(field)
    except ValueError:
        raise ValueError(f"{field!r} is no whole number") from None


def number(field: str) -> float:
    """Read a number; an empty field is a missing value, which is no broken line."""
    try:
        return float(field or "nan")
    except ValueError:
        raise ValueError(f"{field!r} is no number") from None


def one_of(*accepted: str) -> Reading:
    """Return a reading that accepts one of these words."""

    def word(field: str) -> str:
        if field not in accepted:
            raise ValueError(f"{field!r}; accepted: {', '.join(accepted)}")
        return field

    return word


def word(field: str) -> str:
    """Read any name but an empty one."""
    if not field:
        raise ValueError("nothing; a name is needed")
    return field


# --------------------------------------------------------------------------------------------------
# Tasks: inputs, targets, units, groups and splits
# --------------------------------------------------------------------------------------------------

Indices = NDArray[np.intp]
Targets = NDArray[Any]
"""Numbers, or indices of classes: which of them a type cannot say."""
SHARES = (0.9, 0.05, 0.05)


class Truth(Protocol):
    """The distribution that simulated targets were drawn from, entry by entry."""

    def log_prob(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return the log density (log probability for classes) of each entry of y."""

    def sample(self, n: int, rng: Seed) -> Targets:
        """Return n independent draws of every entry, of shape (n, *shape)."""

    def __getitem__(self, index: Indices) -> Truth:
        """Return the distributions of some rows."""


@dataclass(frozen=True)
class Split:
    """Row numbers of the three parts, in ascending order, and how they were told apart."""

    train: Indices
    validation: Indices
    test: Indices
    how: str


@dataclass(frozen=True)
class Task:
    """A table to learn from. Regression where `classes` is empty, else y holds their indices."""

    name: str  # as in the paper: BPEst, NYCommute, GasSen, HHAR
    X: NDArray[np.float32]  # (rows, features)
    y: Targets  # (rows,) or (rows, outputs); class indices for classification
    features: tuple[str, ...]
    targets: tuple[str, ...]
    unit: str  # of the targets: mmHg, min, ppm; empty for classes
    source: str  # one line: where the rows come from
    simulated: bool
    groups: NDArray[np.int64] | None = None  # the user, record or day of each row
    grouped_by: str = ""  # what a group is: "user", "record", "day"
    classes: tuple[str, ...] = ()
    truth: Truth | None = None  # of simulated rows
    split_by: str = "rows"  # the paper's split of this task: "rows" or "groups"

    def __post_init__(self) -> None:
        rows = len(self.X)
        if rows == 0:
            raise InputError(f"{self.name}: no usable rows in {self.source}")
        if self.X.shape != (rows, len(self.features)):
            raise InputError(
                f"{self.name}: X has shape {self.X.shape} for {len(self.features)} features"
            )
        if len(self.y) != rows:
            raise InputError(f"{self.name}: {rows} rows of inputs, {len(self.y)} of targets")
        if self.groups is not None and self.groups.shape != (rows,):
            raise InputError(f"{self.name}: {rows} rows, groups of shape {self.groups.shape}")

    @property
    def kind(self) -> str:
        """`regression` or `classification`."""
        return "classification" if self.classes else "regression"

    def split(
        self, by: str | None = None, shares: Sequence[float] = SHARES, seed: int = 0
    ) -> Split:
        """Return random parts of these shares: of rows, or of whole groups (`by="groups"`)."""
        by = by or self.split_by
        if by == "rows":
            return split_rows(len(self.X), shares, seed)
        if by != "groups":
            raise InputError(f"by = {by!r} is unknown; accepted: rows, groups")
        if self.groups is None:
            raise InputError(f"{self.name} has no groups to split by")
        return split_groups(self.groups, self.grouped_by, shares, seed)


def split_rows(rows: int, shares: Sequence[float] = SHARES, seed: int = 0) -> Split:
    """Split rows at random."""
    order = np.random.default_rng(seed).permutation(rows)
    first, second = _cuts(rows, shares, "rows")
    train, validation, test = np.split(order, [first, second])
    return Split(np.sort(train), np.sort(validation), np.sort(test), "random rows")


def split_groups(
    groups: NDArray[np.generic], name: str, shares: Sequence[float] = SHARES, seed: int = 0
) -> Split:
    """Split whole groups at random: nobody in one part is in another."""
    known = np.unique(groups)
    order = np.random.default_rng(seed).permutation(known)
    first, second = _cuts(len(known), shares, f"{name}s")
    train, validation, test = (
        np.flatnonzero(np.isin(groups, part)) for part in np.split(order, [first, second])
    )
    return Split(train, validation, test, f"{name}s never trained on")


def _cuts(count: int, shares: Sequence[float], what: str) -> tuple[int, int]:
    """Return where the second and third part begin; none is empty."""
    if len(shares) != 3 or min(shares) <= 0:
        raise InputError(f"shares = {tuple(shares)}: three positive numbers are needed")
    if count < 3:
        raise InputError(f"{count} {what} cannot be split into train, validation and test")
    _, validation, test = (share / sum(shares) for share in shares)
    last, middle = max(1, round(test * count)), max(1, round(validation * count))
    if last + middle >= count:
        raise InputError(f"shares = {tuple(shares)} leave no {what} of {count} to train on")
    return count - last - middle, count - last


# --------------------------------------------------------------------------------------------------
# A task as one Parquet file
#
# A column for each input (`x:NAME`) and target (`y:NAME`), one for the groups (`group`), and under
# the key `rdeepsense.task` of the file's metadata, as JSON, everything else. The true distribution
# of simulated targets cannot be stored, so simulated tasks are not: their seed makes them again.
# --------------------------------------------------------------------------------------------------

KEY = b"rdeepsense.task"
VERSION = 1
TEXTS = ("name", "unit", "source", "simulated", "grouped_by", "split_by")
TUPLES = ("features", "targets", "classes")
ROW_GROUP = 1 << 18


def write(task: Task, path: Path, row_group: int = ROW_GROUP) -> None:
    """Write a task, whole or not at all."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if task.truth is not None:
        raise InputError(f"{task.name}: a task with its true distribution cannot be stored")
    y = task.y.reshape(len(task.y), -1)
    names = [f"x:{name}" for name in task.features] + [f"y:{name}" for name in task.targets]
    if len(set(names)) < len(names) or y.shape[1] != len(task.targets):
        raise InputError(f"{task.name}: each input and each target needs a name of its own")
    columns: dict[str, Any] = dict(zip(names, (*task.X.T, *y.T), strict=True))
    if task.groups is not None:
        columns["group"] = task.groups
    about: dict[str, Any] = {"version": VERSION, "flat": task.y.ndim == 1}
    about |= {field: getattr(task, field) for field in TEXTS + TUPLES}
    table = arrow.table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
    with replacing(path) as file:
        parquet.write_table(table, file, compression="zstd", row_group_size=row_group)


def read(path: Path) -> Task:
    """Return the task in a file that `write` made."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with parquet.ParquetFile(path) as file:
            about = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"{}"))
            if about.get("version") != VERSION:
                raise InputError(
                    f"{path}: is no prepared task of this version; write it with "
                    "`rdeepsense data prepare`"
                )
            return _task(file, about)
    except (arrow.ArrowException, OSError, KeyError) as error:
        raise InputError(f"{path}: cannot be read as a prepared task: {error}") from error


def _task(file: Any, about: dict[str, Any]) -> Task:
    """Fill the arrays one row group at a time, so that the table is never there twice."""
    rows, schema = file.metadata.num_rows, file.schema_arrow
    x = [f"x:{name}" for name in about["features"]]
    y = [f"y:{name}" for name in about["targets"]]
    fields: dict[str, Any] = {field: about[field] for field in TEXTS}
    fields |= {field: tuple(about[field]) for field in TUPLES}
    inputs = np.empty((rows, len(x)), dtype=np.float32)
    targets = np.empty((rows, len(y)), dtype=schema.field(y[0]).type.to_pandas_dtype())
    groups = np.empty(rows, dtype=np.int64) if "group" in schema.names else None
    start = 0
    for number in range(file.num_row_groups):
        part = file.read_row_group(number)
        here = slice(start, start + len(part))
        for names, array in ((x, inputs), (y, targets)):
            for column, name in enumerate(names):
                array[here, column] = part[name].to_numpy()
        if groups is not None:
            groups[here] = part["group"].to_numpy()
        start += len(part)
    return Task(
        X=inputs,
        y=targets[:, 0] if about["flat"] else targets,
        groups=groups,
        **fields,
    )


# --------------------------------------------------------------------------------------------------
# Common checks and seeding of simulators
# --------------------------------------------------------------------------------------------------


def seeded(rows: int, seed: int) -> np.random.Generator:
    """Return the generator of this seed, once the number of rows is known to be usable."""
    if rows < 1:
        raise InputError(f"rows = {rows}: at least one row is needed")
    return checks.generator(seed)


# --------------------------------------------------------------------------------------------------
# Distance of predictions from the known distribution of simulated rows
# --------------------------------------------------------------------------------------------------


class Density(Protocol):
    """Any distribution with a density."""

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Return the log density (log probability for classes) of each entry of y."""


def kl_from_truth(
    truth: Truth, predicted: Density, rng: Seed, draws: int = 20
) -> tuple[float, float]:
    """Return KL(truth || prediction) = E[log p_true(y) - log p_pred(y)] in nats, and its error.

    y is drawn from the truth, `draws` times for every entry. Outputs of one row are averaged, and
    the standard error is that of the mean over rows. The estimate is unbiased: close to a perfect
    prediction it may fall below 0 by a few standard errors.
    """
    source = generator(rng)
    total = np.zeros(())
    for _ in range(count(draws)):  # one draw at a time: twenty of all waveforms fill the memory
        y = truth.sample(1, source)[0]
        gain, stated = truth.log_prob(y), predicted.log_prob(y)
        if gain.shape != stated.shape:
            raise InputError(f"the truth has shape {gain.shape}, the prediction {stated.shape}")
        total = total + (gain - stated).reshape(len(gain), -1).mean(axis=1)
    per_row = total / draws
    if len(per_row) < 2:
        raise InputError("a standard error needs two rows or more; got 1")
    return float(per_row.mean()), float(per_row.std(ddof=1) / np.sqrt(len(per_row)))
