"""`compare`: the paper's methods side by side on data of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from rdeepsense.data.checks import check_choice, check_length, check_whole
from rdeepsense.data.splits import distinct
from rdeepsense.errors import InputError
from rdeepsense.experiments.methods import METHODS, REFERENCE, TASKS, Method, by_family, parse_all
from rdeepsense.experiments.report.html import fragment
from rdeepsense.experiments.uci.statistics import (
    BySplit,
    SplitScore,
    Summary,
    summarise,
    with_error,
)
from rdeepsense.experiments.uci.trial import run_trial
from rdeepsense.progress import progress_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "regression": ("nll", "rmse", "mae", "crps", "coverage_90"),
    "classification": ("nll", "accuracy", "f1", "brier", "ece"),
}
NAMES = {"nll": "NLL", "rmse": "RMSE", "mae": "MAE", "crps": "CRPS", "coverage_90": "coverage 90 %",
         "accuracy": "accuracy", "f1": "F1", "brier": "Brier", "ece": "ECE"}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A table with a row for each method; prints as text, shows as HTML in a notebook.

    `scores[method][split]` holds the figures of each split, `rows` what they say together.
    """

    task: str
    methods: tuple[Method, ...]
    scores: Mapping[str, BySplit]

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
        if self.task == "regression":
            text += " Deviation area: all splits pooled; a perfect model has the floor on average."
        return text

    def table(self) -> str:
        """Return aligned text, as `print` shows it."""
        header, cells = self._cells()
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
        return {"task": self.task, "rows": [row.to_json() for row in self.rows], "splits": splits}

    def plot(self) -> Figure:
        """Draw NLL differences and, for regression, deviation areas with their floor."""
        from rdeepsense.experiments.report.comparison import comparison_figure

        return comparison_figure({"": self.rows})

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return fragment(*self._cells(), self.caption)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the cells, as text."""
        keys, paired = FIGURES[self.task], REFERENCE in self.scores
        header = ["method", "passes", "NLL", *([f"NLL - {REFERENCE}"] if paired else [])]
        header += [NAMES[key] for key in keys[1:]]
        header += ["deviation area (floor)"] * (self.task == "regression") + ["fit seconds"]
        cells = []
        for row in self.rows:
            line = [row.method, "-" if row.passes is None else str(row.passes)]
            line.append(with_error(*row.means["nll"]))
            if paired:
                difference = with_error(*row.differences["nll"], signed=True)
                line.append("" if row.method == REFERENCE else difference)
            line += [with_error(*row.means[key]) for key in keys[1:]]
            if row.pooled is not None:
                line.append(f"{row.pooled.pooled_area:.3f} ({row.pooled.pooled_floor:.3f})")
            cells.append([*line, f"{row.fit_seconds:.1f}"])
        return header, cells


def compare(
    X: ArrayLike,
    y: ArrayLike,
    methods: Sequence[str] = METHODS,
    splits: int = 5,
    test_fraction: float = 0.1,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    hidden: Sequence[int] = (64, 64),
    task: str = "auto",
    verbose: bool = True,
    *,
    epochs: int | None = None,
) -> Comparison:
    """Fit each method on `splits` random splits of the rows and score it on their test rows.

    Every choice that a method leaves open is made on training rows; test rows only score.

    Parameters
    ----------
    methods : names: RDeepSense, RDeepSense-MCk, RDeepSense-default, MCDrop-k, MCDrop-k-paper,
        SSP-k, GP.
    test_fraction : share of the rows that each split keeps for its test.
    groups : a user or record per row; rows of one group, like rows with equal inputs, are never
        divided between training and test, nor between training and validation.
    hidden, epochs : the layers and the training of every network; None follows the recipe.
    task : "regression", "classification" or "auto", which takes text and yes/no as classes.
    """
    chosen = parse_all(methods)
    check_whole("splits", splits, 1)
    check_whole("random_state", random_state, 0)
    if not 0 < test_fraction < 1:
        raise InputError(f"test_fraction = {test_fraction!r} must lie between 0 and 1")
    inputs = check_array(X, dtype=(np.float64, np.float32))
    targets = np.asarray(y)
    check_length("y", len(targets), len(inputs))
    task = _task(task, targets)
    users = None if groups is None else np.asarray(groups)
    if users is not None:
        check_length("groups", len(users), len(inputs))
    families = by_family(chosen)
    tests = [
        _test_rows(inputs, targets, test_fraction, random_state + split, users, task)
        for split in range(splits)
    ]
    scores: dict[str, dict[int, SplitScore]] = {method.name: {} for method in chosen}
    progress = progress_for(verbose)
    progress.start("comparing", splits * len(families), 0)
    try:
        for split, test in enumerate(tests):
            for number, family in enumerate(families.values(), 1):
                trial = run_trial(
                    family,
                    task,
                    (inputs[~test], targets[~test]),
                    (inputs[test], targets[test]),
                    hidden,
                    random_state + split,
                    None if users is None else users[~test],
                    epochs,
                )
                for name, own in trial.methods.items():
                    scores[name][split] = SplitScore(trial.fit_seconds, own)
                done = split * len(families) + number
                progress.update(done, f"split {split + 1} of {splits}, {family[0].family}")
    finally:
        progress.close()
    return Comparison(task, chosen, scores)


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
    if task == "classification" and groups is None:
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
