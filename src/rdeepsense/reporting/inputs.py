"""Inputs in a report: importance, partial dependence, the most surprising rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.columns import part_of, value_of, wave
from rdeepsense.distributions import Categorical
from rdeepsense.estimators.loading import Estimator
from rdeepsense.fitting.fitted import Inputs
from rdeepsense.pages.html import TextTable
from rdeepsense.pages.pictures import (
    GREEN,
    ORANGE,
    PURPLE,
    Panel,
    Picture,
    finish,
    legend_below,
    rows,
)
from rdeepsense.plot.figures import BLUE, GREY, VERMILION
from rdeepsense.reporting.subject import LEVEL, Subject, moment, standard_error
from rdeepsense.status import Statuses, status_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------
# Names of inputs, and a sample of rows for questions to the model
# --------------------------------------------------------------------------------------------------

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
LEVELS = {"weekday": DAYS, "month": MONTHS}
CALLED = {"hour": "hour of the day", "weekday": "day of the week", "yearday": "day of the year"}


@dataclass(frozen=True)
class DatePart:
    """A part of a column of dates, and the columns of rows that encode it: sin and cos, or one."""

    source: str
    part: str
    columns: tuple[int, ...]

    @property
    def named(self) -> str:
        """What an axis along it is called."""
        return f"{self.source}: {CALLED.get(self.part, self.part)}"

    @property
    def is_level(self) -> bool:
        """Whether it is one of a few, and no number."""
        return self.part in LEVELS

    def decoded(self, rows: NDArray[Any]) -> Floats:
        """Return its value in each row, as it is encoded: from 0, but for years."""
        columns = [rows[..., k].astype(np.float64) for k in self.columns]
        if len(columns) == 1:
            return columns[0]
        value = value_of(columns[0], columns[1], self.part)
        return np.round(value, 6 if self.part == "hour" else 0)

    def encoded(self, values: Floats) -> list[Floats]:
        """Return the numbers of its columns for values as `decoded` returns them."""
        if len(self.columns) == 1:
            return [values]
        return [wave(values, self.part, which) for which in ("sin", "cos")]

    def shown(self, value: float) -> float:
        """Return a value as people count it: the first of January is day 1."""
        return value + 1 if self.part == "yearday" else value

    def words(self, value: float) -> str:
        """Return a value in words."""
        if np.isnan(value):
            return "missing"
        if self.is_level:
            return LEVELS[self.part][int(value) % len(LEVELS[self.part])]
        if self.part == "hour":
            minutes = round(60 * value) % 1440
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
        return f"{'day ' if self.part == 'yearday' else ''}{self.shown(value):.0f}"


@dataclass(frozen=True)
class InputNames:
    """What the columns of rows are called, their units, and the levels of those with levels.

    Columns that encode one column of dates are one input, which goes by the first of them.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    levels: dict[int, tuple[str, ...]]
    dates: dict[int, tuple[DatePart, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, inputs: Inputs) -> InputNames:
        """Take them from a fitted model; inputs without a name have a number."""
        count = inputs.shape[-1]
        encoding = inputs.encoding
        names = list(inputs.names or (f"input {k}" for k in range(count)))
        dates = {}
        for source in inputs.dated:
            parts = _parts(names, source)
            if parts:
                dates[parts[0].columns[0]] = parts
        for first, parts in dates.items():
            names[first] = parts[0].source
        return cls(
            tuple(names),
            inputs.units or ("",) * count,
            {} if encoding is None else {c.column: c.levels for c in encoding.categories},
            dates,
        )

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The columns of each input."""
        of_dates = {
            first: tuple(k for part in parts for k in part.columns)
            for first, parts in self.dates.items()
        }
        further = {k for columns in of_dates.values() for k in columns} - set(of_dates)
        return [of_dates.get(k, (k,)) for k in range(len(self.names)) if k not in further]

    def named(self, column: int) -> str:
        """Return a name with its unit."""
        unit = self.units[column]
        return f"{self.names[column]} ({unit})" if unit else self.names[column]

    def said(self, column: int, row: NDArray[Any]) -> str:
        """Return the value that an input has in a row, in words."""
        if column in self.dates:
            return ", ".join(part.words(float(part.decoded(row))) for part in self.dates[column])
        return self.words(column, float(row[column]))

    def words(self, column: int, value: float) -> str:
        """Return a value of a column in words."""
        if np.isnan(value):
            return "missing"
        if column in self.levels:
            levels = self.levels[column]
            return levels[int(value)] if 0 <= value < len(levels) else "a level never seen"
        return f"{value:.4g}".replace("-", "−")


def _parts(names: list[str], source: str) -> tuple[DatePart, ...]:
    """Return the parts of a column of dates that inputs of these names are."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        made = part_of(name)
        if made is not None and made[0] == source:
            found.setdefault(made[1], []).append(k)
    return tuple(DatePart(source, part, tuple(columns)) for part, columns in found.items())


def sample(rows: int, most: int, seed: int) -> NDArray[Any]:
    """Choose rows at random, in their order."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


# --------------------------------------------------------------------------------------------------
# Permutation importance of inputs, by NLL
#
# The importance of an input is the mean over rows of NLL(row with the input of another row) -
# NLL(row), in nats, over several shufflings; its error is the standard error over rows, between
# groups where there are groups. Of windows a whole channel is shuffled, of dates all inputs that
# are made of one column together. Inputs that say the same as others share their importance: each
# alone may have little.
# --------------------------------------------------------------------------------------------------

SHUFFLES = 5
PREDICTED = 400_000  # rows, at most, for all inputs together
FEWEST, MOST = 200, 2_000  # rows that are asked about
LARGEST = 1e6  # nats; a row that becomes impossible would hide all others


@dataclass(frozen=True)
class Importance:
    """An input's importance and its standard error; of several columns the first names it."""

    column: int
    increase: float
    error: float


def importances(
    model: Estimator,
    rows: NDArray[Any],
    truth: NDArray[Any],
    groups: NDArray[Any] | None = None,
    seed: int = 0,
    together: Sequence[Sequence[int]] | None = None,
) -> list[list[Importance]]:
    """Return for each target the inputs, the most important first; truth is (rows[, targets]).

    Columns that are one input come `together`; each is one of its own by default.
    """
    inputs = [(k,) for k in range(rows.shape[-1])] if together is None else together
    most = int(np.clip(PREDICTED // (SHUFFLES * len(inputs)), FEWEST, MOST))
    chosen = sample(len(rows), most, seed)
    X, y = rows[chosen], truth[chosen]
    between = None if groups is None else groups[chosen]
    rng = np.random.default_rng(seed)
    before = _nll(model, X, y)
    found: list[list[Importance]] = [[] for _ in range(before.shape[1])]
    for columns in map(list, inputs):
        risen = np.zeros_like(before)
        for _ in range(SHUFFLES):
            changed = X.copy()
            changed[..., columns] = X[rng.permutation(len(X))][..., columns]
            risen += _nll(model, changed, y) - before
        for target, own in enumerate(risen.T / SHUFFLES):
            error = standard_error(own, between) or 0.0
            found[target].append(Importance(columns[0], float(own.mean()), error))
    return [sorted(own, key=lambda one: -one.increase) for own in found]


def _nll(model: Estimator, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the NLL of each row and target, bounded."""
    nll = np.asarray(-model.predict_rows(X).log_prob(y), np.float64)
    return np.clip(np.nan_to_num(nll, nan=LARGEST), -LARGEST, LARGEST).reshape(len(X), -1)


# --------------------------------------------------------------------------------------------------
# Partial dependence (Friedman 2001)
#
# At each value v of an input, some rows have v in its place, and their predictions are averaged:
# means with means, the lower ends of the 90 % intervals with lower ends, of classes probabilities.
# Where inputs go together in the table, some of these rows are none that could be.
# --------------------------------------------------------------------------------------------------

ROWS, VALUES, MOST_LEVELS = 200, 17, 12
ENDS = (0.02, 0.98)  # quantiles: what is rarer is not drawn


@dataclass(frozen=True)
class Dependence:
    """Values of an input, and at each the averages: mean, low and high, or of each class."""

    column: int
    values: Floats
    mean: Floats  # (values, targets), or (values, classes)
    low: Floats | None
    high: Floats | None
    part: DatePart | None = None  # of a column of dates, along which it goes


def dependence(
    model: Estimator,
    rows: NDArray[Any],
    column: int,
    is_level: bool,
    seed: int = 0,
    part: DatePart | None = None,
) -> Dependence | None:
    """Ask the model along one input, or a part of its dates; None where it does not vary."""
    own = rows[:, column] if part is None else part.decoded(rows)
    own = own[np.isfinite(own)]
    if is_level:
        levels, counts = np.unique(own[own >= 0], return_counts=True)
        values = np.sort(levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS])
    else:
        values = np.unique(np.quantile(own, np.linspace(*ENDS, VALUES))) if len(own) else own
    if len(values) < 2:
        return None
    X = rows[sample(len(rows), ROWS, seed)]
    asked = np.repeat(X[None], len(values), axis=0)
    changed = {column: values}
    if part is not None:
        changed = dict(zip(part.columns, part.encoded(values), strict=True))
    for k, made in changed.items():
        asked[:, :, k] = made[:, None]
    dist = model.predict_rows(asked.reshape(-1, X.shape[1]))
    if isinstance(dist, Categorical):
        return Dependence(column, values, _averaged(dist.probs, len(values)), None, None, part)
    ends = dist.interval(LEVEL)
    mean, low, high = (_averaged(np.asarray(one), len(values)) for one in (dist.mean, *ends))
    return Dependence(column, values, mean, low, high, part)


def _averaged(predicted: Floats, values: int) -> Floats:
    shaped: Floats = predicted.reshape(values, -1, *(predicted.shape[1:] or (1,)))
    return np.asarray(shaped.mean(axis=1))


# --------------------------------------------------------------------------------------------------
# Pictures of importance and partial dependence
# --------------------------------------------------------------------------------------------------

SHOWN = 15
COLOURS = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (PURPLE, ":"), (ORANGE, (0, (5, 1))))


def importance(
    subject: Subject, found: Sequence[Importance], names: InputNames, prefix: str
) -> Picture:
    """Draw how much the NLL rises where an input is shuffled, with two standard errors."""
    shown = found[:SHOWN]
    more = f" The first {len(shown)} of {len(found)}." if len(found) > len(shown) else ""
    first = names.names[shown[0].column]
    draw = partial(_importance, found=shown, names=names)
    return Picture(
        f"{prefix}-importance",
        f"{subject.name}: which inputs matter",
        f"Increase in NLL when one input is shuffled (mean of {SHUFFLES} shuffles); bars are two "
        f"standard errors over rows. Near 0 the input is unused or redundant.{more}",
        "",
        (Panel("", draw, (4.8, 1.3 + 0.27 * len(shown))),),
        says=f"The most important input is {first}, {shown[0].increase:.3g} nats.",
    )


def along(
    subject: Subject, found: Sequence[Dependence], names: InputNames, target: int, prefix: str
) -> Picture:
    """Draw the averaged predictions along each of some inputs, with their band."""
    panels = tuple(
        Panel(
            names.named(one.column) if one.part is None else one.part.named,
            partial(_along, subject=subject, found=one, names=names, target=target),
            (4.3, 3.4),
        )
        for one in found
    )
    caption = (
        "Probabilities of the most frequent classes, averaged over rows"
        if subject.is_classes
        else "Predicted mean, and between the ends of the 90 % intervals, averaged over rows"
    )
    return Picture(
        f"{prefix}-along",
        f"{subject.name}: predictions along the most important inputs",
        f"{caption}, with one input set to each value and all others as they are. Along inputs "
        "that go together, some of these rows could not be.",
        "",
        panels,
        columns=2,
        says=_span(found[0], names, target) if not subject.is_classes else "",
    )


def _span(found: Dependence, names: InputNames, target: int) -> str:
    own = found.mean[:, target]
    name = names.names[found.column] if found.part is None else found.part.named
    return f"Along {name} the mean lies between {own.min():.3g} and {own.max():.3g}."


def _importance(axes: Axes, found: Sequence[Importance], names: InputNames) -> None:
    axes.axvline(0, color=GREY, linewidth=1)
    for place, one in enumerate(found):
        axes.errorbar(one.increase, place, xerr=2 * one.error, fmt="o", color=BLUE, markersize=5.5,
                      capsize=3)  # fmt: skip
    finish(axes, "rise of the NLL (nats)", grid="x")
    rows(axes, [_cut(names.names[one.column]) for one in found])


def _along(axes: Axes, subject: Subject, found: Dependence, names: InputNames, target: int) -> None:
    part = found.part
    levels = found.column in names.levels if part is None else part.is_level
    values = found.values if part is None else np.array([part.shown(v) for v in found.values])
    x = np.arange(len(found.values)) if levels else values
    if found.low is None or found.high is None:
        _probabilities(axes, subject, found, x, levels)
    else:
        low, mean, high = (own[:, target] for own in (found.low, found.mean, found.high))
        if levels:
            axes.errorbar(x, mean, yerr=np.stack([mean - low, high - mean]), fmt="o", color=BLUE,
                          capsize=4)  # fmt: skip
        else:
            axes.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0)
            axes.plot(x, mean, color=BLUE, linewidth=1.8)
    finish(axes, "", subject.named if found.low is not None else "probability (%)")
    if levels:
        word = partial(names.words, found.column) if part is None else part.words
        words = [_cut(word(value), 14) for value in found.values]
        axes.set_xticks(x, words, rotation=35, ha="right", rotation_mode="anchor")


def _probabilities(axes: Axes, subject: Subject, found: Dependence, x: Any, levels: bool) -> None:
    classes: Any = getattr(subject.dist, "classes", None)
    counts = np.bincount(np.asarray(subject.truth, np.int64), minlength=found.mean.shape[1])
    common = np.sort(np.argsort(-counts, kind="stable")[: len(COLOURS)])
    for (colour, dash), k in zip(COLOURS, common, strict=False):
        label = _cut(str(k) if classes is None else str(classes[k]), 18)
        style = {"marker": "o", "linestyle": "none"} if levels else {"linestyle": dash}
        axes.plot(x, 100 * found.mean[:, k], color=colour, linewidth=1.8, label=label, **style)
    axes.set_ylim(0, 101)
    legend_below(axes)


def _cut(text: str, most: int = 28) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --------------------------------------------------------------------------------------------------
# Rows with the largest NLL, and their inputs
# --------------------------------------------------------------------------------------------------

SURPRISES_SHOWN, INPUTS = 10, 6


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
    worst = np.argsort(-subject.nll, kind="stable")[:SURPRISES_SHOWN]
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
