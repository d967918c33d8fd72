"""`rdeepsense.report`: labelled rows in, a page about the model out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense._files import write_whole
from rdeepsense.data.check import check_seen
from rdeepsense.data.checks import check_length
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import fitted_model
from rdeepsense.estimators.loading import Estimator
from rdeepsense.experiments.report.blocks import Section
from rdeepsense.experiments.report.page import report_page
from rdeepsense.predict.prepare import predict_many
from rdeepsense.reporting.evaluation import subjects_of_model
from rdeepsense.reporting.importance import importances
from rdeepsense.reporting.inputs import InputNames
from rdeepsense.reporting.peers import compare, simple_models, trees_of
from rdeepsense.reporting.sections import Material, sections
from rdeepsense.reporting.verdict import Constant, Verdict, judge_each

FEWEST_ROWS = 20
TRAIN = "of this page, the simple ones fitted on the training rows given"
FIT = "held out by the fit, not those of this page"


@dataclass(frozen=True)
class ModelReport:
    """A page about a model: its verdicts by target, and the sections that say why.

    ``html()`` is one file that needs nothing but itself, and ``save(path)`` writes it.
    """

    title: str
    opening: str
    verdicts: dict[str, Verdict]
    sections: Sequence[Section]

    def html(self) -> str:
        """Return the page."""
        return report_page(self.title, self.opening, self.sections)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all; returns its path."""
        target = Path(path)
        write_whole(target, self.html())
        return target

    def __repr__(self) -> str:
        found = ", ".join(f"{name}: {one.headline}" for name, one in self.verdicts.items())
        return f"ModelReport({found})"

    def _repr_html_(self) -> str:
        points = "".join(
            f"<li><b>{escape(name)}: {escape(one.headline)}.</b> {escape(one.sentences[0])}</li>"
            for name, one in self.verdicts.items()
        )
        return f"<ul>{points}</ul><small>save(path) writes the page.</small>"


def report(
    model: Estimator,
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    title: str | None = None,
    about: str = "",
    row_numbers: ArrayLike | None = None,
) -> ModelReport:
    """Judge a fitted model on labelled rows that it was not trained on, as a page.

    It shows the verdict (skill and calibration), coverage by part of the table, residuals, the
    most surprising rows, which inputs matter, and a constant and boosted trees beside the model.

    Parameters
    ----------
    X, y : rows and truth as for `evaluate`.
    groups : user or record of each row: errors are between them.
    time : a number or date of each row, to find a drift by.
    train : the (X, y) that the model was trained on; a constant and boosted trees are fitted on it.
        Without, the page has the comparison that the model's file keeps, if any.
    title : of the page.
    about : a sentence on what the rows are.
    row_numbers : of the rows in their table, counted from 0.
    """
    fitted = fitted_model(model)
    rows = model.as_rows(X)
    if len(rows) < FEWEST_ROWS:
        raise InputError(f"X has {len(rows)} rows; a report needs {FEWEST_ROWS} or more")
    dist = predict_many(model, X)
    _, subjects = subjects_of_model(fitted, dist, y, groups, time)
    group, names = subjects[0].groups, [one.name for one in subjects]
    peers, compared, trees = fitted.peers, FIT, None
    if train is not None:
        simple = simple_models(model, train, X)
        peers, compared, trees = compare(model, simple, (X, y), group), TRAIN, trees_of(simple)
    status = fitted.status(rows)
    findings = fitted.training.findings
    if train is not None:
        findings += check_seen(rows, model.as_rows(train[0]))
    verdicts = judge_each(subjects, Constant.of_model(fitted), status, trees, findings)
    numbers = np.arange(len(rows)) if row_numbers is None else np.asarray(row_numbers)
    check_length("row_numbers", len(numbers), len(rows))
    material = Material(
        model,
        rows,
        numbers,
        status,
        subjects,
        list(verdicts.values()),
        importances(
            model,
            rows,
            fitted.target.encode(y, len(rows)),
            group,
            fitted.training.seed,
            InputNames.of(fitted.inputs).groups,
        ),
        peers,
        compared,
    )
    called = ", ".join(names)
    return ModelReport(
        title or f"{fitted.method}: can you trust its predictions of {called}?",
        " ".join(filter(None, (about, f"{len(rows):,} labelled rows."))),
        verdicts,
        sections(material),
    )
