"""`rds.report`: one page about a model on held-out rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense import __version__
from rdeepsense._files import write_whole
from rdeepsense.data.check import check_seen
from rdeepsense.data.checks import check_length
from rdeepsense.distributions import Categorical
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import fitted_model
from rdeepsense.estimators.loading import Estimator
from rdeepsense.fitting.fitted import BaselineScores
from rdeepsense.pages.page import Banner, Block, Heading, Section, Text, report_page
from rdeepsense.pages.pictures import Picture
from rdeepsense.predict.prepare import predict_many
from rdeepsense.reporting import figures, inputs
from rdeepsense.reporting import subject as shares
from rdeepsense.reporting.baselines import (
    compare,
    peers_table,
    peers_words,
    simple_models,
    trees_of,
)
from rdeepsense.reporting.figures import figures_table
from rdeepsense.reporting.inputs import Importance, InputNames, dependence, importances, surprises
from rdeepsense.reporting.subject import Subject
from rdeepsense.reporting.verdict import Constant, Verdict, judge_each, subjects_of_model
from rdeepsense.status import Status, Statuses

# --------------------------------------------------------------------------------------------------
# Sections of a report, in reading order
# --------------------------------------------------------------------------------------------------

ALONG = 4  # inputs that predictions are drawn along
GROUPS = "A mean may hide a {by} that the model is no good for. Number of rows in brackets."
STD = (
    "The first part are the rows that the model is surest of. Where these are outside of the band, "
    "its certainty is not to be trusted, even if it is right on average."
)
RANGE = (
    "Among rows with extreme actual values even a perfectly calibrated model misses more: look for "
    "what differs from one side to the other."
)
NOT_OF_WINDOWS = (
    "Of windows a whole channel is taken from another window. Predictions along an input, averaged "
    "over rows, are not shown: a channel has no single value that could be moved while the others "
    "stay."
)


@dataclass(frozen=True, eq=False)
class Material:
    """What the sections are made from."""

    model: Estimator
    rows: NDArray[Any]  # numbers and codes
    numbers: NDArray[Any]  # the places of the rows in their table
    statuses: Statuses
    subjects: Sequence[Subject]
    verdicts: Sequence[Verdict]
    importances: Sequence[Sequence[Importance]]
    peers: BaselineScores | None
    compared: str  # on which rows the peers were

    @property
    def names(self) -> InputNames:
        """What inputs are called."""
        return InputNames.of(self.model.fitted_.inputs)


def sections(material: Material) -> list[Section]:
    """Return the whole page."""
    per_target = (
        ("calibration", "Calibration", _trust),
        ("parts", "Where does it fail?", _parts),
        ("errors", "What are its errors like?", _errors),
        ("surprises", "Largest surprises", _surprises),
        ("inputs", "Which inputs matter?", _inputs),
        ("peers", "Is it better than simple models?", _peers),
    )
    found = [Section("verdict", "Verdict", None, tuple(_verdict(material)))]
    for name, title, make in per_target:
        blocks: list[Block] = []
        for place, subject in enumerate(material.subjects):
            own = make(material, place)
            if own and len(material.subjects) > 1 and not _tells_name(own[0]):
                blocks.append(Heading(subject.name))
            blocks += own
        if blocks:
            found.append(Section(name, title, None, tuple(blocks)))
    return [*found, Section("model", "The model", None, tuple(_model(material)))]


def _tells_name(block: Block) -> bool:
    return isinstance(block, Picture)


def _verdict(material: Material) -> list[Block]:
    several = len(material.subjects) > 1
    blocks: list[Block] = []
    for subject, verdict in zip(material.subjects, material.verdicts, strict=True):
        head = verdict.headline
        head = f"{subject.name}: {head}" if several else f"{head[0].upper()}{head[1:]}"
        first, *others = verdict.sentences
        blocks.append(Banner(head, verdict.tone, first, tuple(others)))
    if noted := _flagged(material):
        blocks.append(Text(noted))
    return [*blocks, *(figures_table(subject) for subject in material.subjects)]


def _trust(material: Material, place: int) -> list[Block]:
    subject, prefix = material.subjects[place], f"t{place}"
    return [figures.calibration(subject, prefix), figures.risk(subject, prefix)]


def _parts(material: Material, place: int) -> list[Block]:
    subject, prefix = material.subjects[place], f"t{place}"
    by = subject.grouped_by
    found: list[tuple[list[shares.Share], str, str, str]] = [
        (shares.by_group(subject), "groups", by, GROUPS.format(by=by)),
    ]
    if isinstance(subject.dist, Categorical):
        classes = subject.dist.classes
        labels = range(subject.dist.n_classes) if classes is None else classes.tolist()
        found.append((shares.by_class(subject, labels), "classes", "true class", RANGE))
    else:
        unit = f" ({subject.unit})" if subject.unit else ""
        by_std = shares.by_value(subject, subject.uncertainty)
        by_range = shares.by_value(subject, np.asarray(subject.truth, np.float64))
        found += [
            (by_std, "std", f"stated standard deviation{unit}", STD),
            (by_range, "range", f"range of the actual value{unit}", RANGE),
        ]
    blocks: list[Block] = [
        figures.parts(subject, own, prefix, *told) for own, *told in found if own
    ]
    by_time = shares.by_time(subject)
    return [*blocks, figures.over_time(subject, by_time, prefix)] if by_time else blocks


def _errors(material: Material, place: int) -> list[Block]:
    subject, prefix = material.subjects[place], f"t{place}"
    found: list[Block] = [figures.residuals(subject, prefix)]
    return found if subject.is_classes else [*found, figures.bands(subject, prefix)]


def _surprises(material: Material, place: int) -> list[Block]:
    order = [one.column for one in material.importances[place]]
    return [
        surprises(
            material.subjects[place],
            material.rows,
            material.names,
            order,
            material.statuses,
            material.numbers,
        )
    ]


def _inputs(material: Material, place: int) -> list[Block]:
    subject, found = material.subjects[place], material.importances[place]
    names, prefix = material.names, f"t{place}"
    blocks: list[Block] = [inputs.importance(subject, found, names, prefix)]
    if material.rows.ndim != 2:
        return [*blocks, Text(NOT_OF_WINDOWS)]
    asked = (
        dependence(material.model, material.rows, one.column, one.column in names.levels, part=part)
        for one in found[:ALONG]
        for part in names.dates.get(one.column, (None,))
    )
    lines = [one for one in asked if one is not None]
    if lines:
        blocks.append(inputs.along(subject, lines, names, place, prefix))
    return blocks


def _peers(material: Material, place: int) -> list[Block]:
    peers = material.peers
    if peers is None:
        return [
            Text(
                "Nobody compared it with simple models: the file is not one that rdeepsense fit "
                "wrote, or is older. With the training rows (--train TABLE, train=) a constant and "
                "boosted trees are fitted here."
            )
        ] if place == 0 else []  # fmt: skip
    name = material.subjects[place].name
    known = list(dict.fromkeys(one.target for one in peers.records))
    target = name if name in known else known[place]
    table = peers_table(peers, target, material.compared)
    return [Text(peers_words(peers, target, material.compared)), table]


def _flagged(material: Material) -> str:
    flagged = int(np.count_nonzero(material.statuses))
    if not flagged:
        return ""
    unlike = material.statuses & (Status.OUT_OF_RANGE | Status.UNKNOWN_LEVEL)
    return (
        f"{flagged:,} of {len(material.rows):,} rows are not as the model knows them "
        f"({int(np.count_nonzero(unlike)):,} beyond what it was trained on); it answers those as "
        "unsure as if it knew the training targets alone."
    )


def _model(material: Material) -> list[Block]:
    fitted = material.model.fitted_
    training = fitted.training
    inputs = "channels" if material.rows.ndim == 3 else "inputs"
    calibration = fitted.calibration
    factor = "" if calibration is None else f", factor {calibration.summary():.3g}"
    head = type(fitted.network.head).__name__.removesuffix("Head").lower()
    facts = (
        f"{fitted.method}, trained on {training.rows:,} rows, validated on "
        f"{training.validation_rows:,} ({training.validated}), seed {training.seed}.",
        f"Network with a {head} head; this page was written by rdeepsense {__version__}.",
        f"{fitted.inputs.shape[-1]:,} {inputs}; missing values: {fitted.inputs.missing}.",
        f"Calibrated by {'nothing' if calibration is None else type(calibration).__name__.lower()}"
        f"{factor}.",
        "Metrics on training rows are too optimistic; use this page only with data that the model "
        "has not seen.",
    )
    return [Text("What the page is about:", facts)]


# --------------------------------------------------------------------------------------------------
# `rdeepsense.report`: a page about a model, from labeled rows
# --------------------------------------------------------------------------------------------------

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
