"""`rds.compare`: the paper's methods, baselines and models of your own on your data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from rdeepsense._progress import Progress, progress_for
from rdeepsense.comparison.methods import (
    METHODS,
    REFERENCE,
    TASKS,
    Method,
    Methods,
    by_family,
    methods_of,
)
from rdeepsense.comparison.page import comparison_page
from rdeepsense.comparison.statistics import BySplit, SplitScore, Summary, summarise, with_error
from rdeepsense.comparison.trial import FamilyTrial, contender, run_trial
from rdeepsense.data.checks import check_choice, check_length, check_whole
from rdeepsense.data.columns import first_columns
from rdeepsense.data.splits import distinct
from rdeepsense.engines import Engine, Failure, engine_of
from rdeepsense.errors import DataWarning, InputError, TrainingError
from rdeepsense.pages.html import TextTable, fragment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# The fits of a comparison as independent pieces of work
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CompareCell:
    """A family to fit on the training rows of one split, and to score on its test rows."""

    methods: tuple[Method, ...]  # of one family
    task: str
    X: NDArray[np.float64]
    y: NDArray[np.generic]
    test: NDArray[np.bool_]
    hidden: Sequence[int] | str
    random_state: int  # of the first split
    split: int
    groups: NDArray[np.generic] | None
    epochs: int | None

    def run(self) -> FamilyTrial:
        """Fit and score; takes long."""
        train = ~self.test
        return run_trial(
            self.methods,
            self.task,
            (self.X[train], self.y[train]),
            (self.X[self.test], self.y[self.test]),
            self.hidden,
            self.random_state + self.split,
            None if self.groups is None else self.groups[train],
            self.epochs,
        )


def run_compare_cells(
    cells: Sequence[CompareCell], engine: Engine | None, splits: int, display: Progress
) -> list[FamilyTrial]:
    """Return the trial of each cell, in their order; the first that fails ends all."""
    display.start("comparing", len(cells), 0)
    try:
        if engine is None:
            return _run_here(cells, splits, display)
        return _run_on(engine, cells, splits, display)
    finally:
        display.close()


def _run_here(cells: Sequence[CompareCell], splits: int, display: Progress) -> list[FamilyTrial]:
    """Run one after the other; an error is raised as it is."""
    trials = []
    for number, cell in enumerate(cells):
        # Methods differ in time: how much is left is known once each has been fitted.
        done = 0 if cell.split == 0 and splits > 1 else number
        display.update(
            done, f"split {cell.split + 1} of {splits}, fitting {cell.methods[0].family}"
        )
        trials.append(cell.run())
    display.update(len(cells), "all methods fitted")
    return trials


def _run_on(
    engine: Engine, cells: Sequence[CompareCell], splits: int, display: Progress
) -> list[FamilyTrial]:
    """Run in whatever order."""
    trials: dict[int, FamilyTrial] = {}
    display.update(0, f"{len(cells)} fits begin")
    for number, result in engine.run_each(cells):
        at = f"{cells[number].methods[0].family} on split {cells[number].split + 1} of {splits}"
        if isinstance(result, Failure):
            raise TrainingError(f"{at}: {result.reason}")
        trials[number] = result
        display.update(len(trials), f"fitted {at}")
    return [trials[number] for number in range(len(cells))]


# --------------------------------------------------------------------------------------------------
# The result of `compare`: one row per method, as text, HTML, JSON and figure
# --------------------------------------------------------------------------------------------------

FIGURES = {
    "regression": ("nll", "rmse", "mae", "crps", "coverage_90"),
    "classification": ("nll", "accuracy", "f1", "brier", "ece"),
}
NAMES = {"nll": "NLL", "rmse": "RMSE", "mae": "MAE", "crps": "CRPS", "coverage_90": "coverage 90 %",
         "accuracy": "accuracy", "f1": "F1", "brier": "Brier", "ece": "ECE"}  # fmt: skip

STATED = ("NLL", "coverage", "deviation", "Brier", "ECE")
"""How columns begin that judge the stated uncertainty."""


@dataclass(frozen=True)
class Comparison:
    """A table with a row for each method; prints as text, shows as HTML in a notebook.

    `scores[method][split]` holds the figures of each split, `rows` what they say together, and
    `warnings` what was warned of while a method's model was fitted.
    """

    task: str
    methods: tuple[Method, ...]
    scores: Mapping[str, BySplit]
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by family

    @property
    def rows(self) -> list[Summary]:
        """Means, standard errors, paired differences and cost of each method."""
        reference = self.scores.get(REFERENCE)
        return [
            summarise(method, self.scores[method.name], reference, self.task)
            for method in self.methods
        ]

    @property
    def caption(self) -> str:
        """How to read the table."""
        splits = len(next(iter(self.scores.values())))
        text = (
            f"{splits} random test splits; mean ± standard error over splits, which share rows "
            "and so are not quite independent."
        )
        if REFERENCE in self.scores:
            text += f" NLL - {REFERENCE}: paired, above 0 where the single pass is better."
        if any(row.means["nll"].value is None for row in self.rows):
            text += " -: not known, for want of a density or of a finite value."
        if self.task == "regression":
            text += " Deviation area: all splits pooled; a perfect model has the floor on average."
        return text

    def table(self) -> str:
        """Return aligned text, as `print` shows it."""
        whole = self.text_table()
        header, cells = whole.header, whole.rows
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if number else text.ljust(width)
                for number, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [header, *cells]
        ]
        return "\n".join([*lines, "", self.caption])

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        splits = [
            {"method": name, "split": split, **score.to_json()}
            for name, by_split in self.scores.items()
            for split, score in by_split.items()
        ]
        return {
            "task": self.task,
            "methods": {m.name: {"passes": m.passes, "about": m.about} for m in self.methods},
            "rows": [row.to_json() for row in self.rows],
            "splits": splits,
            "warnings": {family: list(texts) for family, texts in self.warnings.items()},
        }

    def html(self, title: str = "Comparison of methods", about: str = "") -> str:
        """Return a whole page that needs nothing but itself; `about` says what was compared."""
        notes = [f"{family}: {text}" for family, texts in self.warnings.items() for text in texts]
        first, second = self.text_tables()
        tables = [replace(first, caption=self.caption), second, self._by_split()]
        return comparison_page(title, about, self.methods, tables, self.rows, notes)

    def plot(self) -> Figure:
        """Draw NLL differences and, for regression, deviation areas with their floor."""
        from rdeepsense.comparison.page import comparison_figure

        return comparison_figure({"": self.rows})

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        table = self.text_table()
        return fragment(table.header, table.rows, table.caption)

    def text_table(self) -> TextTable:
        """Return header and cells as text; the best mean NLL stands out."""
        keys, paired = FIGURES[self.task], REFERENCE in self.scores
        header = ["method", "passes", "NLL", *([f"NLL - {REFERENCE}"] if paired else [])]
        header += [NAMES[key] for key in keys[1:]]
        header += ["deviation area (floor)"] * (self.task == "regression") + ["fit seconds"]
        cells, rows = [], self.rows
        for row in rows:
            line = [row.method, "-" if row.passes is None else str(row.passes)]
            line.append(with_error(*row.means["nll"]))
            if paired:
                difference = with_error(*row.differences["nll"], signed=True)
                line.append("" if row.method == REFERENCE else difference)
            line += [with_error(*row.means[key]) for key in keys[1:]]
            if row.pooled is not None:
                line.append(f"{row.pooled.pooled_area:.3f} ({row.pooled.pooled_floor:.3f})")
            cells.append([*line, f"{row.fit_seconds:.1f}"])
        nll = {number: row.means["nll"].value for number, row in enumerate(rows)}
        known = {number: value for number, value in nll.items() if value is not None}
        best = {(min(known, key=lambda number: known[number]), 2)} if known else set()
        return TextTable("Methods compared", self.caption, header, cells, best)

    def text_tables(self) -> tuple[TextTable, TextTable]:
        """Return the same as two tables that a terminal has room for, without the caption."""
        whole = self.text_table()
        stated = [name for name in whole.header if name.startswith(STATED)]
        rest = [name for name in whole.header[1:] if name not in stated]
        return (
            whole.only("The stated uncertainty, on rows that no choice has seen", "", stated),
            whole.only("Errors on the same rows, and cost", "", rest),
        )

    def _by_split(self) -> TextTable:
        """Return the NLL of each split."""
        splits = sorted({split for own in self.scores.values() for split in own})
        cells = []
        for name, own in self.scores.items():
            values = [own[split].score.figures["nll"] for split in splits]
            cells.append([name, *("-" if v is None else f"{v:.3f}" for v in values)])
        header = ["method", *(f"split {split + 1}" for split in splits)]
        caption = "What makes a split hard is in the figures of all methods."
        return TextTable("NLL split by split", caption, header, cells)


# --------------------------------------------------------------------------------------------------
# `compare`: the paper's methods, baselines and your own models on your data
# --------------------------------------------------------------------------------------------------


def compare(
    X: ArrayLike,
    y: ArrayLike,
    methods: Methods = METHODS,
    splits: int = 3,
    test_fraction: float = 0.1,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    hidden: Sequence[int] | str = "auto",
    task: str = "auto",
    verbose: bool = True,
    *,
    epochs: int | None = None,
    progress: Progress | None = None,
    engine: str | Engine | None = None,
) -> Comparison:
    """Fit each method on `splits` random splits of the rows and score it on their test rows.

    Every choice that a method leaves open is made on training rows; test rows only score.

    Parameters
    ----------
    methods : names: RDeepSense, RDeepSense-MCk, RDeepSense-quick, MCDrop-k, MCDrop-k-paper,
        SSP-k, GP, and of other libraries CatBoost and NGBoost (extra `peers`). By default those
        whose fits take seconds: RDeepSense-quick, MCDrop-20 and SSP-5; the search of RDeepSense
        takes minutes. An object of your own takes part too, as it is or in a pair or mapping with
        its name. It needs `fit(X, y)` and one of `predict_dist(X)`, `pred_dist(X)`,
        `predict(X, return_std=True)`, `predict_proba(X)` for classes,
        `predict_interval(X, coverage)`, `predict(X, quantiles=[...])`; a copy of it is fitted on
        each split. Intervals alone have no NLL and no CRPS.
    test_fraction : share of the rows that each split keeps for its test.
    groups : a user or record per row; rows of one group, like rows with equal inputs, are never
        divided between training and test, nor between training and validation.
    hidden, epochs : the layers and the training of every network; "auto" lets methods that leave it
        open choose (the others have two layers of 64), and None follows the recipe.
    task : "regression", "classification" or "auto", which takes text and yes/no as classes.
    progress : a display of your own; by default a bar at a terminal, elsewhere a line now and then,
        unless `verbose` is False.
    engine : where the fits are done: None, one after the other in this process; "local", a process
        for each core; "joblib", the backend of `joblib.parallel_config`; "ray"; or an engine such
        as `rds.Local(jobs)` and `rds.Ray(address=...)`. The figures do not depend on it.
    """
    chosen = methods_of(methods)
    place = None if engine is None else engine_of(engine)
    check_whole("splits", splits, 1)
    check_whole("random_state", random_state, 0)
    if not 0 < test_fraction < 1:
        raise InputError(f"test_fraction = {test_fraction!r} must lie between 0 and 1")
    inputs = check_array(_without_dates(X), dtype=(np.float64, np.float32))
    targets = np.asarray(y)
    check_length("y", len(targets), len(inputs))
    task = _task(task, targets)
    users = None if groups is None else np.asarray(groups)
    if users is not None:
        check_length("groups", len(users), len(inputs))
    families = by_family(chosen)
    for family in families.values():
        contender(family, task, hidden, random_state, epochs)  # refuses what cannot take part
    tests = [
        _test_rows(inputs, targets, test_fraction, random_state + split, users, task)
        for split in range(splits)
    ]
    scores: dict[str, dict[int, SplitScore]] = {method.name: {} for method in chosen}
    warned: dict[str, dict[str, None]] = {}
    display = progress_for(verbose) if progress is None else progress
    cells = [
        CompareCell(family, task, inputs, targets, test, hidden, random_state, split, users, epochs)
        for split, test in enumerate(tests)
        for family in families.values()
    ]
    for cell, trial in zip(cells, run_compare_cells(cells, place, splits, display), strict=True):
        for method, own in trial.methods.items():
            scores[method][cell.split] = SplitScore(trial.fit_seconds, own)
        warned.setdefault(cell.methods[0].name, {}).update(dict.fromkeys(trial.warnings))
    said = {name: tuple(texts) for name, texts in warned.items() if texts}
    return Comparison(task, chosen, scores, said)


def _without_dates(X: ArrayLike) -> ArrayLike:
    """Leave columns of dates out, and say so."""
    found = first_columns(X, ())
    if found is None:
        return X
    for name, why in found.left_out.items():
        what = why.partition("; ")[0]
        warnings.warn(
            f"Column {name!r} holds {what}, and is left out; compare takes numbers.",
            DataWarning,
            stacklevel=3,
        )
    columns = found.columns
    return np.column_stack([columns.numbers(k) for k in range(len(columns.values))])


def _task(task: str, y: NDArray[np.generic]) -> str:
    """Return the task; classes are what cannot be numbers."""
    check_choice("task", task, ("auto", *TASKS))
    if task != "auto":
        return task
    return "classification" if y.dtype.kind in "OUSb" else "regression"


def _test_rows(
    X: NDArray[np.float64],
    y: NDArray[np.generic],
    fraction: float,
    seed: int,
    groups: NDArray[np.generic] | None,
    task: str,
) -> NDArray[np.bool_]:
    """Mark the test rows: whole groups, or all rows of equal inputs; classes keep their share."""
    labels = None
    if task == "classification":
        labels = np.unique(y, return_inverse=True)[1]
    each_its_own = np.arange(len(X), dtype=np.float64)  # so that no row is merged into another
    rows = distinct(X, each_its_own, groups=groups)
    test = np.zeros(len(X), dtype=bool)
    test[rows.hold_out(fraction, seed, labels)[1].index] = True
    if task == "classification":
        unseen = np.setdiff1d(y[test], y[~test])
        if len(unseen):
            raise InputError(
                f"class {unseen[0].item()!r} has rows in the test groups only, so it cannot be "
                "learnt; try another random_state or test_fraction"
            )
    return test
