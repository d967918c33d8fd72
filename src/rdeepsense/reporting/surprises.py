"""The rows that a model is most surprised by, with their inputs: look at these first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.distributions import Categorical
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.reporting.inputs import InputNames
from rdeepsense.reporting.shares import moment
from rdeepsense.reporting.subject import LEVEL, Subject
from rdeepsense.status import Statuses, status_words

SHOWN, INPUTS = 10, 6


def surprises(
    subject: Subject,
    rows: NDArray[Any],
    names: InputNames,
    order: Sequence[int],
    statuses: Statuses,
    numbers: NDArray[Any],
) -> TextTable:
    """Return the ten rows of the largest NLL; `order` are inputs, the most important first.

    `numbers` are the rows' places in the table they come from.
    """
    worst = np.argsort(-subject.nll, kind="stable")[:SHOWN]
    shown = list(order)[:INPUTS]
    said = ["truth", "most probable", "probability of the truth"]
    if not subject.is_classes:
        said = ["truth", "predicted", "90 % interval"]
    header = ["row", *said, "NLL", "status"]
    if subject.groups is not None:
        header.append(subject.grouped_by)
    if subject.time is not None:
        header.append(subject.timed_by)
    windows = rows.ndim == 3
    header += [f"mean of {names.named(k)}" if windows else names.named(k) for k in shown]
    status = status_words(statuses)
    body = []
    for row in worst:
        cells = [f"{numbers[row]:,}", *_answer(subject, int(row)), f"{subject.nll[row]:.3g}"]
        cells.append(status[row])
        if subject.groups is not None:
            cells.append(str(subject.groups[row]))
        if subject.time is not None:
            cells.append(moment(subject.time[row], subject.time))
        values = rows[row].mean(axis=0) if windows else rows[row]
        cells += [names.said(k, values) for k in shown]
        body.append(cells)
    more = len(order) - len(shown)
    caption = (
        "Rows are counted from 0. A wrong label, a sensor that failed or a kind of row that was "
        "never trained on often stands here first."
        + (f" The {len(shown)} most important inputs of {len(order)}." if more > 0 else "")
    )
    return TextTable("The most surprising rows", caption, header, body)


def _answer(subject: Subject, row: int) -> list[str]:
    if isinstance(subject.dist, Categorical):
        probs, labels = subject.dist.probs[row], subject.dist.classes
        top, true = int(np.argmax(probs)), int(subject.truth[row])
        called = str(top) if labels is None else str(labels[top])
        return [str(subject.y[row]), f"{called} ({100 * probs[top]:.0f} %)", f"{probs[true]:.2g}"]
    low, high = (float(np.asarray(end)[row]) for end in subject.dist.interval(LEVEL))
    mean = float(np.asarray(subject.dist.mean)[row])
    texts = [f"{float(subject.truth[row]):.4g}", f"{mean:.4g}", f"{low:.4g} to {high:.4g}"]
    return [text.replace("-", "−") for text in texts]
