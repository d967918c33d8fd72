"""Faults of a table that make a model look better than it is: found before a fit, each with a cure.

A random split of the rows is honest where rows are independent and the inputs are known at the time
of the prediction. This module looks for tables where that is not so:

| code | what was found |
|---|---|
| `target-copy`, `leak` | one input alone gives the target, which the others do not |
| `recordings` | each level of a column is one run of rows with one class |
| `entities` | rows of one level (person, machine, site) are alike beyond what the inputs explain |
| `near-copies` | rows come in blocks of near-copies |
| `overlapping-windows` | windows share samples with the next ones |
| `time-order` | rows are samples of a time series, in order |
| `time-split` | how much worse trees are on the last rows in time than on rows at random |
| `row-id`, `names` | a column that numbers rows; text whose levels do not recur |
| `few-rows`, `many-inputs` | too few rows, also for the number of inputs |
| `few-groups` | coverage for new groups rests on a few draws |
| `one-group`, `class-in-one-group`, `groups-of-one-class` | groups that are hard to split |
| `group-input` | an input that names the groups |
| `constant-target`, `discrete-target`, `rare-class`, `imbalance` | the target |
| `precision` | numbers that single precision cannot tell apart |
| `seen-rows` | an evaluation with rows of the fit (`check_seen`) |

All tests look at a bounded number of rows, so that the cost does not grow with the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.check_table import (
    ALIKE,
    CLASS_VALUES,
    MOST_COLUMNS,
    MOST_ROWS,
    ORDERED_ROWS,
    ROWS_A_LEVEL,
    Column,
    Likeness,
    Table,
    Target,
    Task,
    autocorrelation,
    correlation,
    counts_rows,
    explained_by_levels,
    explained_in_order,
    held_out_residuals,
    is_crossed,
    is_regular,
    is_slow,
    linear_residuals,
    matrix,
    near_blocks,
    near_copies,
    never_falls,
    overlaps,
    purity,
    purity_in_order,
    ranked,
    same_levels,
    stretches,
    to_one_scale,
    tree_residuals,
    worse_on_new_levels,
)
from rdeepsense.data.checks import FEWEST_ROWS, check_length
from rdeepsense.data.columns import Categorical, groups_of, unmasked
from rdeepsense.data.findings import CheckReport, Finding, Severity
from rdeepsense.data.splits import (
    SAMPLES,
    checked_times,
    cure_of_order,
    last_rows,
    row_hashes,
    step_of,
)
from rdeepsense.errors import InputError

MOST_IN_ORDER = 20_000  # successive rows that are looked at for their order

FEW_ROWS = 60  # the 90 % intervals of one table contain 0.7 to 1 of fresh values with 12 rows
TELLING_ROWS = 12  # of fewer, five folds have too few rows to tell a scale
TELLING_INPUTS = 5  # for each row; beyond it `fit` says that the coverage cannot be told
DISCRETE = 10  # values at most of a discrete target
RARE = 3  # rows of a class, of which one each trains, validates and tests
IMBALANCED = 0.01  # share of the smallest class

EXPLAINED = 0.999  # of the target's variance by one column
DETERMINED = 0.99  # of the changes of class, corrected for chance
COPIED = 1e-10  # 1 - r^2 of a copy of the target
NOISY = 0.98  # the others explain less than this

LEVELS = 8  # at least, of a column that names entities
UNEVEN = 0.6  # coefficient of variation of the rows of levels
INTRACLASS, F_RATIO = 0.15, 2.0  # of the residuals of the other columns
TREE_ROWS = 2_000  # that trees are fitted to
NO_ORDER = 1.2  # von Neumann ratio: about 2 of identifiers, less of quantities
HARDLY_ORDERED = 0.9  # the same: numbers that were given site by site may have 1
BY_CHANCE = 1e-4  # probability of such an F ratio
LINEAR_RATIO, LINEAR_ORDER = 1.1, 0.8  # of the residuals of a linear model, before trees are fitted
CANDIDATES = 2  # columns that may name entities, tested with trees
MARKED_LEVELS = 16  # at least, of entities that the other inputs tell apart, or are crossed with
LEAST_NEW, NEW_ERRORS = 1.25, 4.0  # of their squared errors: new levels over known ones

SEARCHED = 50_000  # rows among which they are looked for
CONTINUOUS = 0.1  # distinct values for each row, at least, of a continuous column
GROUPED = 200_000  # rows that are put into blocks

IN_ORDER = 0.9  # of the steps of a clock go forward
CLOCK = re.compile(
    r"t|ts|time|.*[\W_]time|time[\W_].*|.*timestamp.*|date|datetime|.*seconds?|secs?|ms|millis\w*"
    r"|year|month|week|day|hour|hr|minute",
    re.IGNORECASE,
)
SINGLE = float(np.finfo(np.float32).eps)
ROWS_A_TICK = 10  # at most, of a clock; beyond it rows stand side by side
RESTARTS = 4  # of a clock, so that there are five recordings
LAST = 0.2  # of the rows, the last in time
TIMES = 8  # different dates at least
LEAST_WORSE = 0.1  # than on rows at random

FEW_GROUPS = 8  # as many as are left out one by one when a fit is calibrated
OF_ALL_ROWS = ("few-rows", "few-groups", "many-inputs")  # what a sample cannot tell
UNEQUAL = 0.9  # of the rows of a table in which equal rows are the same
SEEN = 0.05  # of the rows, that may be equal by chance

FEW_STEPS = 16  # of single precision, that a standard deviation may be


def check(
    X: ArrayLike,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    time: ArrayLike | None = None,
    task: Task = "auto",
    categorical: Categorical = "auto",
) -> CheckReport:
    """Look for faults of the data before a fit: leaks, copies, entities, order in time.

    Parameters
    ----------
    X : the inputs (rows, features), an array or a table; of windows the target alone is looked at.
    y : the target: values, or the labels of classes; without it the inputs alone are looked at.
    groups : the user or recording of each row, if `fit` gets them.
    time : a number or a date of each row, if the last rows in time are to be held out.
    task : "auto" takes text, yes/no and whole numbers with at most 20 values as classes.
    categorical : inputs that are categories, as for the estimators.

    Returns
    -------
    CheckReport
        A sequence of `Finding`; `fit` warns of the same.
    """
    if task not in ("auto", "regression", "classification"):
        raise InputError(f"task = {task!r}; accepted: 'auto', 'regression', 'classification'")
    table = Table.of(unmasked(X), categorical)
    target = Target(np.zeros((table.rows, 0)), None) if y is None else Target.of(y, task)
    check_length("y", target.rows, table.rows)
    labels = None
    if groups is not None:
        labels = np.unique(groups_of(groups, table.rows), return_inverse=True)[1].reshape(-1)
    when = None if time is None else checked_times(time, table.rows)
    with np.errstate(all="ignore"):  # values near the ends of float64
        return _Check(table, target, labels, when).report()


def check_sample(
    X: NDArray[Any], names: Sequence[str], y: NDArray[Any], is_classes: bool
) -> tuple[Finding, ...]:
    """Check rows that were drawn from a table of numbers, in any order."""
    columns = [Column(name, X[:, k], "number") for k, name in enumerate(names[:MOST_COLUMNS])]
    table = Table(columns, len(X), True, len(names))
    target = Target.of(y, "classification" if is_classes else "regression")
    with np.errstate(all="ignore"):
        found = _Check(table, target, None).report().findings
    return tuple(one for one in found if one.code not in OF_ALL_ROWS)


def check_seen(rows: NDArray[Any], trained: NDArray[Any]) -> tuple[Finding, ...]:
    """Tell whether labeled rows, as numbers and codes, are rows that a model was fitted to.

    Nothing is said of tables whose own rows often are equal.
    """
    known = np.unique(row_hashes(trained))
    if len(known) < UNEQUAL * len(trained):
        return ()
    share = float(np.isin(row_hashes(rows), known).mean())
    if share < SEEN:
        return ()
    return (
        Finding(
            code="seen-rows",
            severity="error",
            message=f"{share:.0%} of these rows are in the table of the fit",
            cure="Evaluate with rows that the model was not fitted to.",
        ),
    )


def _is_strong(like: Likeness) -> bool:
    """Tell whether rows of a level are alike to an extent that matters, and not by chance."""
    matters = like.intraclass > INTRACLASS and like.ratio > F_RATIO
    return matters and like.chance < BY_CHANCE


class _Check:
    """All tests of one table."""

    def __init__(
        self,
        table: Table,
        target: Target,
        groups: Integers | None,
        time: NDArray[Any] | None = None,
    ) -> None:
        self.table, self.target, self.given = table, target, groups
        self.rng = np.random.default_rng(0)
        self.found: list[Finding] = []
        self.groups: NDArray[Any] | None = None
        self.kept: NDArray[Any] | None = None
        self.group_column: str | None = None
        self.leave_out: list[str] = []
        self.time = time
        self.time_column: str | None = None
        rows = table.rows
        self.sample: Integers = self.rng.permutation(rows)[:MOST_ROWS]
        self.numbers = [one for one in table.columns if one.kind == "number"]

    def add(
        self,
        code: str,
        severity: Severity,
        message: str,
        cure: str,
        *columns: Column,
        option: str = "",
    ) -> None:
        names = tuple(one.name for one in columns)
        self.found.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                columns=names,
                cure=cure,
                option=option,
            )
        )

    def said(self, *columns: Column) -> str:
        """Name columns in a sentence."""
        names = (repr(one.name) if self.table.named else one.name for one in columns[:5])
        shown = ", ".join(f"{name:.80}" for name in names)
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        return f"column{'s' * (len(columns) > 1)} {shown}{more}"

    def option(self, name: str, one: Column) -> str:
        """Name an option of the command line about a column."""
        return f"--{name} {repr(one.name) if self.table.named else one.name:.80}"

    def report(self) -> CheckReport:
        self._sizes()
        usable = self._target()
        if self.given is not None:
            self._given_groups()
        if self.table.columns and self.table.rows >= FEWEST_ROWS:
            self._precision()
            others = self._identifiers()
            if usable:
                taken = self._leaks(others)
                others = [one for one in others if one.name not in taken]
                if self.given is None and self.groups is None:
                    self._entities(others)
            if usable or not self.target.outputs:
                self._time_order(others)
            if usable and self.time is not None:
                self._time_split(others)
            elif usable and self.given is None and self.groups is None:
                self._dates_that_matter(others)
            if self.given is None and self.groups is None and self.time is None:
                self._near_copies(others)
        if self.table.windows is not None and self.given is None and self.time is None:
            self._overlaps(self.table.windows)
        order = {"error": 0, "warning": 1, "info": 2}
        groups = self.given if self.groups is None else self.groups
        self._few_groups(groups)
        naming = [] if groups is None else self._naming(groups)
        return CheckReport(
            findings=tuple(sorted(self.found, key=lambda one: order[one.severity])),
            rows=self.table.rows,
            inputs=self.table.inputs,
            task=self.target.task,
            groups=self.groups,
            group_column=self.group_column,
            kept=self.kept,
            group_categories=tuple(one.name for one in naming),
            time=self.time,
            time_column=self.time_column,
            leave_out=tuple(self.leave_out),
        )

    # The size of the table and the target.

    def _sizes(self) -> None:
        rows, inputs = self.table.rows, self.table.inputs
        if rows < FEW_ROWS:
            told = "are wide, and contain what they state only on average over tables"
            if rows < TELLING_ROWS or inputs > TELLING_INPUTS * rows:
                told = "are wide, and their coverage cannot be told"
            self.add(
                "few-rows",
                "error" if rows < FEWEST_ROWS else "warning",
                f"{rows} rows are few: metrics are uncertain, and intervals of RDeepSense {told}; "
                "other estimators do not widen theirs",
                "Collect more rows, or test the intervals on new rows before you rely on them.",
            )
        if rows < inputs and self.table.columns:
            self.add(
                "many-inputs",
                "warning",
                f"{rows} rows are fewer than the {inputs} inputs, so a network can memorize them",
                "Leave out inputs, or combine them (for instance by sklearn.decomposition.PCA).",
            )

    def _target(self) -> bool:
        """Look at the target; tell whether there is anything to predict."""
        if self.target.is_classes:
            return self._classes()
        values = self.target.values
        finite = np.isfinite(values).all(axis=0)
        usable = bool(self.target.outputs)
        for k in range(values.shape[1]):
            said = "the target" if values.shape[1] == 1 else f"target {k}"
            if not finite[k]:
                usable = False
                continue
            if np.ptp(values[:, k]) == 0:
                usable = False
                self.add(
                    "constant-target",
                    "error",
                    f"{said} has one value only, {values[0, k]:g}",
                    "Choose another target.",
                )
                continue
            distinct = len(np.unique(values[self.sample, k]))
            if distinct <= DISCRETE and self.table.rows >= FEW_ROWS:
                self.add(
                    "discrete-target",
                    "info",
                    f"{said} has {distinct} different values only, while the predicted "
                    "distribution is continuous",
                    "If the values are classes, use a classifier.",
                    option="--task classification",
                )
        return usable

    def _classes(self) -> bool:
        labels = self.target.labels
        assert labels is not None
        counts = np.bincount(self.target.values, minlength=len(labels))
        if len(labels) < 2:
            said = f", {labels[0]!r}" if labels else ""
            self.add(
                "constant-target",
                "error",
                f"the target has one class only{said}",
                "A classifier needs two classes or more.",
            )
            return False
        rare = [k for k in range(len(labels)) if counts[k] < RARE]
        if rare:
            shown = ", ".join(f"{labels[k]!r} ({counts[k]})" for k in rare[:5])
            more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
            self.add(
                "rare-class",
                "warning",
                f"classes of one or two rows cannot be learned and tested: {shown}{more}",
                "Collect more rows of them, merge them with others, or remove these rows.",
            )
        least = int(np.argmin(counts))
        if counts[least] < IMBALANCED * self.table.rows and not rare:
            self.add(
                "imbalance",
                "info",
                f"class {labels[least]!r} has {counts[least]} of {self.table.rows:,} rows",
                "Accuracy says little here; look at the metrics of each class.",
            )
        return True

    def _given_groups(self) -> None:
        groups = self.given
        assert groups is not None
        number = int(groups.max()) + 1
        if number < 2:
            self.add(
                "one-group",
                "error",
                "all rows are of one group, so that none can be held out",
                "Give groups that differ, or none.",
            )
            return
        if names := self._naming(groups):
            self.add(
                "group-input",
                "warning",
                f"{self.said(*names)}: each level is in one group, so that a new group has an "
                "unknown level, about which the model can say nothing",
                "Leave it out of the inputs.",
                *names,
            )
        labels = self.target.labels
        if labels is None:
            return
        pairs = np.unique(groups * len(labels) + self.target.values)
        groups_of_class = np.bincount(pairs % len(labels), minlength=len(labels))
        alone = [repr(labels[k]) for k in np.flatnonzero(groups_of_class == 1)[:5]]
        if alone:
            self.add(
                "class-in-one-group",
                "warning",
                f"each of these classes is in one group only: {', '.join(alone)}; it is either "
                "trained on or tested, never both",
                "Collect these classes in more groups.",
            )
        elif len(pairs) == number:
            self.add(
                "groups-of-one-class",
                "info",
                "each group has rows of one class only",
                "A held-out part with few groups may lack a class; keep many groups of each.",
            )

    def _few_groups(self, groups: NDArray[Any] | None) -> None:
        number = 0 if groups is None else len(np.unique(groups))
        if 1 < number < FEW_GROUPS:
            self.add(
                "few-groups",
                "info",
                f"{number} groups are few: coverage and metrics for new groups rest on {number} "
                "draws of a group, however many rows there are",
                "Collect rows of more groups before you rely on the intervals for new ones.",
            )

    def _naming(self, groups: Integers) -> list[Column]:
        """Return the categories of which each level is in one group."""
        found = []
        for one in self.table.columns:
            if one.kind == "category" and not one.is_dated:
                levels, count = int(one.values.max()) + 1, int(groups.max()) + 1
                if levels >= count and len(np.unique(one.values * count + groups)) == levels:
                    found.append(one)
        return found

    # Columns by themselves.

    def _precision(self) -> None:
        coarse = []
        for one in self.numbers:
            values = one.values[:MOST_IN_ORDER].astype(np.float64)
            values = values[np.isfinite(values)]
            if len(values) < 2:
                continue
            std, size = float(values.std()), float(np.abs(values).mean())
            if 0 < std < FEW_STEPS * SINGLE * size or (one.whole and size > 2.0**53):
                coarse.append(one)
        if coarse:
            self.add(
                "precision",
                "info",
                f"{self.said(*coarse)}: the values differ by so little, relative to their size, "
                "that single precision (float32) hardly tells them apart",
                "Subtract a constant, such as the first value, before storing them as float32.",
                *coarse,
            )

    def _identifiers(self) -> list[Column]:
        """Look for columns that number or name rows; return the others."""
        rows = self.table.rows
        numbering: list[Column] = []
        naming: list[Column] = []
        others: list[Column] = []
        for one in self.table.columns:
            if one.kind == "category":
                levels = int(one.values.max()) + 1
                (naming if rows < ROWS_A_LEVEL * levels else others).append(one)
            elif one.kind == "number" and one.whole and counts_rows(one.values):
                numbering.append(one)
            else:
                others.append(one)
        if numbering and any(one.kind != "time" for one in others):
            self.leave_out += [one.name for one in numbering]
            self.add(
                "row-id",
                "warning",
                f"{self.said(*numbering)}: whole numbers in the order of the rows, each once, are "
                "numbers of rows or times, or of what only grows; new rows will be outside their "
                "range",
                "Leave them out of the inputs.",
                *numbering,
            )
        elif numbering:
            others += numbering
        if naming:
            self.leave_out += [one.name for one in naming]
            self.add(
                "names",
                "warning",
                f"{self.said(*naming)}: text with fewer than {ROWS_A_LEVEL:g} rows for each "
                "different value names rows; new rows will have other values",
                "Leave it out of the inputs.",
                *naming,
            )
        return others

    # One column against the target.

    def _leaks(self, columns: Sequence[Column]) -> set[str]:
        """Look for inputs that give the target away; return the names of those found."""
        tested = [one for one in columns if one.kind != "time"]
        drawn = self.sample[: MOST_ROWS if len(tested) <= 100 else 1_000]
        taken: set[str] = set()
        for one in tested:
            values = one.values[drawn].astype(np.float64)
            there = np.isfinite(values)
            rows, values = drawn[there], values[there]
            if len(rows) < 2 * FEWEST_ROWS or np.ptp(values) == 0:
                continue
            if self.target.is_classes:
                self._class_leak(one, values, rows, columns, taken)
            else:
                self._value_leak(one, values, rows, columns, taken)
        return taken

    def _value_leak(
        self,
        one: Column,
        values: Floats,
        rows: Integers,
        columns: Sequence[Column],
        taken: set[str],
    ) -> None:
        y = self.target.values[rows]
        for k in range(y.shape[1]):
            own = y[:, k]
            if one.kind == "number" and 1 - correlation(values, own) ** 2 < COPIED:
                alone = len(columns) == 1
                taken.add(one.name)
                self.add(
                    "target-copy",
                    "info" if alone else "warning",
                    f"{self.said(one)} is the target in other units: the correlation is "
                    f"{correlation(values, own):+.6f}",
                    "Leave it out, unless it is known when you predict.",
                    one,
                    option=self.option("ignore", one),
                )
                return
            smooth = one.kind == "number" and explained_in_order(values, own) > EXPLAINED
            levels = not smooth and one.whole and explained_by_levels(values, own) > EXPLAINED
            if smooth or levels:
                taken.add(one.name)
                if levels and self._names_groups(one):
                    return
                self._leak(one, columns, "explains the target but for 0.1 % of its variance")
                return

    def _class_leak(
        self,
        one: Column,
        values: Floats,
        rows: Integers,
        columns: Sequence[Column],
        taken: set[str],
    ) -> None:
        y = self.target.values[rows]
        counts = np.bincount(y)
        if len(y) - counts.max() < FEWEST_ROWS:
            return
        pure = one.whole and purity(values, y) > DETERMINED
        if pure and self._names_groups(one):
            taken.add(one.name)
            return
        order = one.kind == "number" and purity_in_order(values, y) > DETERMINED
        if pure or order:
            taken.add(one.name)
            self._leak(one, columns, "alone determines the class of more than 99 % of the rows")

    def _names_groups(self, one: Column) -> bool:
        """Tell whether a column that determines the target has the levels of recordings."""
        levels, number = one.level_numbers()
        rows = self.table.rows
        if len(levels) < LEVELS or rows < ROWS_A_LEVEL * len(levels):
            return False
        runs = 1 + int((number[1:] != number[:-1]).sum())
        known = 2 * len(self.target.labels or ())
        if runs == len(levels):
            self._set_groups(one, number)
            what = "class" if self.target.is_classes else "value of the target"
            self.add(
                "recordings",
                "warning",
                f"{self.said(one)}: each of its {len(levels):,} levels is one run of rows with one "
                f"{what}, like a number of recordings; a random split shows rows of the same "
                "recording to training and test",
                self._group_cure(one),
                one,
                option=self.option("groups", one),
            )
            return True
        if len(levels) <= known or (one.kind == "number" and self._ordered(one, number)):
            return False
        self._set_groups(one, number)
        self.add(
            "entities",
            "warning",
            f"{self.said(one)}: rows of each of its {len(levels):,} levels have the same target, "
            "like those of one person or machine; a random split shows rows of the same one to "
            "training and test",
            self._group_cure(one),
            one,
            option=self.option("groups", one),
        )
        return True

    def _ordered(self, one: Column, number: Integers) -> bool:
        rows = self.sample
        return Likeness.of(number[rows], self.target.responses(rows)).order < NO_ORDER

    def _leak(self, one: Column, columns: Sequence[Column], what: str) -> None:
        others = [other for other in columns if other.name != one.name and other.kind != "time"]
        rows = self.sample[:TREE_ROWS]
        explained = self._explained_by(others, rows) if others else 1.0
        noisy = explained < NOISY
        self.add(
            "leak",
            "warning" if noisy else "info",
            f"{self.said(one)} {what}"
            + (f", of which the other inputs explain {max(0.0, explained):.0%}" if noisy else ""),
            "If it is not known when you predict, or was computed from the target, leave it out.",
            one,
            option=self.option("ignore", one),
        )

    def _explained_by(self, others: Sequence[Column], rows: Integers) -> float:
        """Return the share of the target's variance that trees on these columns predict."""
        truth = self.target.responses(rows)
        residuals = tree_residuals(matrix(others, rows), truth)
        total = ((truth - truth.mean(axis=0)) ** 2).sum()
        return float(1 - (residuals**2).sum() / total) if total > 0 else 1.0

    # Rows that belong together.

    def _set_groups(self, one: Column, number: Integers) -> None:
        if self.groups is None and self.given is None:
            self.groups, self.group_column = number, one.name

    def _group_cure(self, one: Column) -> str:
        name = f"{repr(one.name) if self.table.named else one.name:.80}"
        return f"Keep its rows together: groups= the values of {name}, without it among the inputs."

    def _entities(self, columns: Sequence[Column]) -> None:
        """Look for a column whose levels are entities: even counts, no order, and one of two.

        Rows of a level are alike in what trees on the other inputs leave open; or these inputs tell
        the levels apart, like the size and the place of a town, so that trees know a level by
        them and are much worse on levels that they were not trained on.
        """
        candidates: list[tuple[Column, Integers]] = []
        for one in columns:
            if one.kind == "time" or one.calendar or self._is_named_clock(one) or not one.whole:
                continue
            if len(np.unique(one.values[self.sample])) > 0.9 * len(self.sample):
                continue
            levels, number = one.level_numbers()
            counts = np.bincount(number)
            if len(levels) < LEVELS or self.table.rows < ROWS_A_LEVEL * len(levels):
                continue
            if counts.std() < UNEVEN * counts.mean() and not self._is_factor(one, columns):
                candidates.append((one, number))
        if not candidates:
            return
        names = {one.name for one, _ in candidates}
        common = [one for one in columns if one.name not in names and one.kind != "time"]
        rows = self._whole_levels(candidates[0][1])
        residuals = linear_residuals(matrix(common, rows), self.target.responses(rows))
        scored = []
        for one, number in candidates:
            like = Likeness.of(number[rows], residuals)
            # Trees explain more than lines, so that these are wider bounds than those below.
            if like.ratio > LINEAR_RATIO and like.order > LINEAR_ORDER:
                scored.append((like.intraclass, one, number))
        scored.sort(key=lambda found: -found[0])
        for _, one, number in scored[:CANDIDATES]:
            rows = self._whole_levels(number)
            y = self.target.responses(rows)
            others = [
                other
                for other in columns
                if other is not one and other.kind != "time" and not same_levels(other, number)
            ]
            inputs = matrix(others, rows)
            residuals = tree_residuals(inputs, y) if others else y - y.mean(axis=0)
            like = Likeness.of(number[rows], residuals)
            if like.order <= NO_ORDER:
                continue
            what = ""
            # Also by their ranks: a level of few rows may have a large value by chance.
            if _is_strong(like) and _is_strong(Likeness.of(number[rows], ranked(residuals))):
                what = (
                    "are alike beyond what the other inputs explain (intraclass correlation "
                    f"{like.intraclass:.2f})"
                )
            elif others and like.levels >= MARKED_LEVELS:
                scaled = y  # ranks, so that a few large values do not decide
                if not self.target.is_classes:
                    scaled = ranked(y)
                known, new = (tree_residuals(inputs, scaled, by) for by in (None, number[rows]))
                ratio, errors = worse_on_new_levels(number[rows], known, new)
                unordered = Likeness.of(number[rows], y).order > HARDLY_ORDERED
                if unordered and ratio > LEAST_NEW and errors > NEW_ERRORS:
                    what = (
                        "can be told by the other inputs, and boosted trees have "
                        f"{ratio:.1f} times the squared error on levels that they do not know"
                    )
            if what:
                self._set_groups(one, number)
                self.add(
                    "entities",
                    "warning",
                    f"{self.said(one)}: rows of one of its {number.max() + 1:,} levels {what}, "
                    "like those of one person, machine or site; a random split says how good the "
                    "model is for known ones, not for new ones",
                    self._group_cure(one),
                    one,
                    option=self.option("groups", one),
                )
                return

    def _is_factor(self, one: Column, columns: Sequence[Column]) -> bool:
        """Tell whether levels are a factor of a design: crossed with all others, which are few.

        Factors have few levels; more of them, as in a panel of times alone, are entities.
        """
        others = [other for other in columns if other is not one and not other.is_dated]
        rows = self.sample
        if not others:
            return False
        if len(np.unique(one.values[rows])) >= MARKED_LEVELS:
            return False
        return all(
            len(np.unique(other.values[rows])) <= CLASS_VALUES
            and is_crossed(one.values[rows], other.values[rows].astype(np.float64))
            for other in others
        )

    def _whole_levels(self, number: Integers) -> Integers:
        """Return at most so many rows of the table: all rows of some levels, drawn at random."""
        if len(number) <= TREE_ROWS:
            return np.arange(len(number))
        order = self.rng.permutation(int(number.max()) + 1)
        fits = np.cumsum(np.bincount(number)[order]) <= TREE_ROWS
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[fits]] = True
        found = np.flatnonzero(chosen[number])
        return found if fits.sum() >= LEVELS else np.sort(self.sample[:TREE_ROWS])

    def _overlaps(self, windows: NDArray[Any]) -> None:
        """Look for windows that share samples with the next ones."""
        found = overlaps(windows)
        if found is None:
            return
        hop, follows = found
        length = windows.shape[1]
        self.groups, self.kept = stretches(follows, -(-length // hop) - 1)
        self.add(
            "overlapping-windows",
            "warning",
            f"windows of {length} samples begin {hop} after each other, so that neighbors share "
            "samples; a random split tests the model on samples that it was trained on",
            "Give the recording of each window as groups=, or cut windows by rdeepsense.windows.",
        )

    def _near_copies(self, columns: Sequence[Column]) -> None:
        """Look for rows whose nearest rows are far nearer than the next ones."""
        numbers = [one for one in columns if one.kind == "number"]
        rows = np.sort(self.rng.permutation(self.table.rows)[:SEARCHED])
        few = self.sample
        distinct = [len(np.unique(one.values[few])) for one in numbers]
        continuous = [
            one
            for one, count in zip(numbers, distinct, strict=True)
            if count > max(CLASS_VALUES, CONTINUOUS * len(few))
        ]
        if not continuous or len(rows) < 2 * FEWEST_ROWS:
            return
        names = {one.name for one in continuous}
        discrete = [one for one in columns if one.name not in names and one.kind != "time"]
        scaled = to_one_scale(matrix(continuous, rows))
        levels = matrix(discrete, rows) if discrete else None
        for part in (1, 16):  # of a sixteenth of the rows, for blocks of many rows
            if part > 1 and len(rows) < 5 * FEWEST_ROWS * part:
                return
            some = self.rng.permutation(len(rows))[: len(rows) // part]
            found = near_copies(scaled[some], None if levels is None else levels[some], self.rng)
            if found is None:
                continue
            share, cut = found
            said = "blocks of near-copies"
            if self.table.rows <= GROUPED:
                if len(rows) < self.table.rows:
                    scaled = to_one_scale(matrix(continuous, np.arange(self.table.rows)))
                blocks = near_blocks(scaled, cut)
                count = int(blocks.max()) + 1
                if count < LEVELS or 2 * np.bincount(blocks).max() > len(blocks):
                    continue  # clusters, or a few rows far out
                said = f"{count:,} blocks of near-copies"
                self.groups = blocks
            self.add(
                "near-copies",
                "warning",
                f"{share:.0%} of the rows have neighbors that are far nearer than all others, so "
                f"that the rows come in {said}; a random split tests the model on rows that it "
                "was almost trained on",
                "Keep the rows of one situation together (groups=), or keep one row of each.",
            )
            return

    def _time_order(self, columns: Sequence[Column]) -> None:
        """Look for a clock, and for values that hardly change from row to row."""
        rows = slice(0, min(self.table.rows, MOST_IN_ORDER))
        if self.table.rows < ORDERED_ROWS:
            return
        clock = next((one for one in self.table.columns if self._is_clock(one, rows)), None)
        if clock is None:
            return
        aside = (clock.name, self.group_column)
        numbers = [one for one in columns if one.kind == "number" and one.name not in aside]
        alike = [one for one in numbers if is_slow(one.values[rows].astype(np.float64))]
        own = self.target.values[rows]
        if self.target.is_classes:
            own = (own[:, None] == np.argsort(-np.bincount(own))[:4]).astype(np.float64)
        runs = autocorrelation(own) > ALIKE
        free = self.given is None and self.groups is None  # to be split by time
        even = free and clock.is_dated and is_regular(clock.seconds[rows])
        slow = len(alike) + runs >= 2
        if not slow and not even:
            return
        shown = self.said(*alike) if alike else ""
        what = " and ".join([shown] * bool(alike) + ["the target"] * runs)
        what = f"{what} hardly change from row to row" if what else "follow in regular steps"
        step, time = (
            step_of(clock.name, clock.seconds[rows], clock.is_dated),
            self.option("time", clock),
        )
        again, cure = self._follow(clock), cure_of_order(step)
        if again >= RESTARTS:
            cure += " Rows between two restarts are a recording: keep them together (groups=)."
        where = f", which starts again {again} times," if again else ","
        windows = "--sensor NAME=COLUMNS --window 5s --hop 1s --by RECORDING"
        self.add(
            "time-order",
            "warning" if slow else "info",
            f"rows are in the order of {self.said(clock)}{where} and {what}"
            + "; a random split tests the model on rows between those that it was trained on"
            * slow,
            cure,
            clock,
            option=f"{time} {windows}" if step is not None and step < SAMPLES else time,
        )

    def _follow(self, clock: Column) -> int:
        """Keep the time of each row, or the recordings between restarts; return their number."""
        values = clock.seconds
        there = np.isfinite(values)
        steps = np.diff(values[there])
        again = int((steps < 0).sum())
        if again == 0 and there.all() and self.time is None:
            self.time, self.time_column = values, clock.name
            self.leave_out += [
                one.name
                for one in self.numbers
                if one.name != clock.name and one.whole and never_falls(one.values)
            ]
        elif again >= RESTARTS and self.groups is None and self.given is None:
            number = np.zeros(len(values), dtype=np.int64)
            number[np.flatnonzero(there)[1:][steps < 0]] = 1
            self.groups = np.cumsum(number)
        return again

    def _time_split(self, columns: Sequence[Column]) -> None:
        """Say how much worse trees are on the last rows in time than on rows at random."""
        assert self.time is not None
        found = self._later_errors(columns, self.time, self.time_column)
        if found is None:
            return
        last, usual, spread = found
        worse = last - usual > max(2 * spread, LEAST_WORSE * usual)
        self.add(
            "time-split",
            "warning" if worse else "info",
            self._compared(last, usual),
            "Metrics on rows at random are too good for rows to come; hold out the last ones "
            "(time=)."
            if worse
            else "",
        )

    def _compared(self, last: float, usual: float) -> str:
        change = f"{last / usual - 1:+.0%}" if usual > 0 else "more"
        unit = "" if self.target.is_classes else " standard deviations of the target"
        return (
            f"on the last fifth of the time boosted trees have a mean absolute error of {last:.3g}"
            f"{unit}, on a random fifth {usual:.3g} ({change})"
        )

    def _later_errors(
        self, columns: Sequence[Column], time: NDArray[Any], without: str | None
    ) -> tuple[float, float, float] | None:
        """Return the mean error of trees on the last rows and on others, and its standard error."""
        rows = np.sort(self.sample)
        later = last_rows(time[rows], LAST)
        chance = np.zeros(len(rows), dtype=bool)
        chance[self.rng.permutation(len(rows))[: later.sum()]] = True
        others = [one for one in columns if one.kind != "time" and one.name != without]
        if not others or later.sum() < FEWEST_ROWS or (~later).sum() < FEWEST_ROWS:
            return None
        X, y = matrix(others, rows), self.target.responses(rows)
        errors = [np.abs(held_out_residuals(X, y, held)).mean(axis=1) for held in (later, chance)]
        last, usual = (float(one.mean()) for one in errors)
        return last, usual, float(np.sqrt(sum(one.var() / len(one) for one in errors)))

    def _dates_that_matter(self, columns: Sequence[Column]) -> None:
        """Look for dates in any order of the rows, if later rows are predicted worse."""
        for one in self.table.columns:
            if not one.is_dated or not np.isfinite(one.seconds).all():
                continue
            if len(np.unique(one.seconds)) < TIMES:
                continue
            found = self._later_errors(columns, one.seconds, one.name)
            if found is None:
                continue
            last, usual, spread = found
            if last - usual > max(NEW_ERRORS * spread, LEAST_WORSE * usual):
                self.add(
                    "time-split",
                    "info",
                    f"by {self.said(one)}, {self._compared(last, usual)}",
                    "If the model is for rows to come, hold out the last ones (time=).",
                    one,
                    option=self.option("time", one),
                )
                return

    def _is_named_clock(self, one: Column) -> bool:
        return self.table.named and CLOCK.fullmatch(one.name.strip()) is not None

    def _is_clock(self, one: Column, rows: slice) -> bool:
        """Tell whether a column is a time that goes on for most rows; it may start again."""
        if one.kind == "category" and one.clock is None:
            return False
        values = one.seconds[rows]
        values = values[np.isfinite(values)]
        if len(values) < ORDERED_ROWS:
            return False
        steps = np.diff(values)
        forward, named = steps > 0, one.is_dated or self._is_named_clock(one)
        if named and (steps >= 0).all() and forward.mean() > 1 / ROWS_A_TICK:
            return True
        if forward.mean() < IN_ORDER and not (
            (steps >= 0).mean() >= IN_ORDER and forward.mean() > 0.5
        ):
            return False
        if named:
            return True
        # Without a name that says so, a clock is what starts again after regular steps.
        if forward.all() or self.table.named:
            return False
        low, middle, high = np.quantile(steps[forward], (0.25, 0.5, 0.75))
        return bool(high - low < 0.5 * middle)
