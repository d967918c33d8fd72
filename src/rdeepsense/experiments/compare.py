"""`compare`: the paper's methods, peers and models of your own side by side on your data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from rdeepsense._progress import Progress, progress_for
from rdeepsense.data.checks import check_choice, check_length, check_whole
from rdeepsense.data.dates import first_columns
from rdeepsense.data.splits import distinct
from rdeepsense.engines import Engine, engine_of
from rdeepsense.errors import DataWarning, InputError
from rdeepsense.experiments.compare_cells import CompareCell, run_compare_cells
from rdeepsense.experiments.comparison import Comparison
from rdeepsense.experiments.contender import contender
from rdeepsense.experiments.methods import METHODS, TASKS, by_family
from rdeepsense.experiments.peers.naming import Methods, methods_of
from rdeepsense.experiments.uci.statistics import SplitScore


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
