"""A saved model and a table or log: columns, labels, rows without a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rdeepsense._files import Remote, is_url
from rdeepsense._records import to_plain
from rdeepsense.cli.columns import (
    inputs_of,
    is_numeric,
    labels,
    numeric_targets,
    plural,
    report_assumed,
    report_extra,
    report_strays,
    some,
)
from rdeepsense.cli.reading.columns import (
    NumbersInText,
    Strays,
    numbers_in,
    read_with,
    source_of,
    with_dates,
)
from rdeepsense.cli.reading.table import Table, read_log, read_targets, with_truth
from rdeepsense.cli.scores import (
    Scores,
    caption,
    judged,
    known_labels,
    report,
    report_groups,
    score_model,
    score_table,
)
from rdeepsense.cli.terminal import STDOUT, write_json, write_table
from rdeepsense.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.windowing import Windows


# --------------------------------------------------------------------------------------------------
# A saved model and a table
# --------------------------------------------------------------------------------------------------

Inputs: TypeAlias = "pl.DataFrame | NDArray[np.float64]"
"""Columns with their names, or an array for a model that was fitted without."""


def load_model(path: Path | str) -> Estimator:
    """Return the model in a file."""
    from rdeepsense.estimators import load

    model: Estimator = load(path)
    return model


@dataclass(frozen=True)
class ModelInputs:
    """What a model takes of a table: its inputs, and what is to be said about the columns."""

    values: Inputs
    extra: list[str]  # columns that are not used
    strays: Mapping[str, Strays]
    said: Sequence[str]

    def report(self, terminal: Terminal) -> None:
        """Print what was assumed, what is missing though something is there, what is not used."""
        report_assumed(terminal, self.said)
        report_strays(terminal, self.strays)
        report_extra(terminal, self.extra)


def model_inputs(
    model: Estimator, table: Table, not_inputs: list[str], finite: bool = True
) -> ModelInputs:
    """Return the columns the model was fitted on, in its order, found by their names.

    Of numbers, any cell that is none is missing. Parts of dates are made of their column. Infinity
    is refused with `finite`.
    """
    if model.fitted_.recipe is not None:
        raise InputError(
            "the model takes windows of a log, and this command takes rows of a table; predict, "
            "evaluate, adapt, replay and export --data take a log"
        )
    names = getattr(model, "feature_names_in_", None)
    frame, made = with_dates(table.frame, [] if names is None else [str(name) for name in names])
    columns, left = table.frame.columns, set(not_inputs)
    if names is None:
        used = [n for n in columns if n not in left and is_numeric(frame[n])]
        if len(used) != model.n_features_in_:
            raise InputError(
                f"the model was fitted without column names on {model.n_features_in_} columns; the "
                f"table has {len(used)} numeric ones: {some(used)}"
            )
    else:
        used = [str(name) for name in names]
        known = set(frame.columns)
        for name in used:
            if name not in known:
                source = source_of(name)
                needed = repr(name) if source is None else f"{source!r}, for {name!r}"
                raise InputError(
                    f"the model needs the column {needed}{nearest(source or name, columns)}; "
                    f"the table has {some(columns)}"
                )
    texts = model_categories(model)
    frame, found = _numbers(frame, [n for n in used if n not in texts], table.comma_separated)
    left.update(used, made)
    extra = [name for name in columns if name not in left]
    checked = inputs_of(frame, used, "mean", texts, finite)
    # A model that was fitted without names would warn about a table that has them.
    values = checked if names is not None else checked.to_numpy()
    said = [*table.said, *(read_with(found.read_as) if found else [])]
    return ModelInputs(values, extra, found.strays if found else {}, said)


def model_categories(model: Estimator) -> list[str]:
    """Return those of a model's inputs that are categories."""
    encoding, names = model.fitted_.inputs.encoding, model.fitted_.inputs.names
    if encoding is None or names is None:
        return []
    return [names[category.column] for category in encoding.categories]


def _numbers(
    frame: pl.DataFrame, used: list[str], comma_separated: bool
) -> tuple[pl.DataFrame, NumbersInText | None]:
    import polars as pl

    texts = [name for name in used if frame[name].dtype == pl.String]
    if not texts:
        return frame, None
    found = numbers_in(frame.select(texts), comma_separated, most=1.0)
    return frame.with_columns(found.columns.values()), found


# --------------------------------------------------------------------------------------------------
# Rows without a prediction because of missing values
# --------------------------------------------------------------------------------------------------


def answerable(model: Estimator, inputs: Inputs) -> Booleans:
    """Tell which rows a model can answer; refuse a table of which it can answer none."""
    from rdeepsense.status import Status

    found: Booleans = (model.status(inputs) & Status.MISSING) == 0
    if not found.any():
        raise InputError(
            f"missing values in all {len(found):,} rows, where the training rows had none; "
            "--missing mean, at fit, fills them with the column's mean"
        )
    return found


def rows_of(inputs: Inputs, chosen: Booleans) -> Inputs:
    """Return some rows of a table or an array."""
    return inputs.filter(chosen) if hasattr(inputs, "filter") else inputs[chosen]


def drop_unscorable_rows(
    terminal: Terminal, model: Estimator, X: pl.DataFrame, chosen: Booleans
) -> Booleans:
    """Mark the rows that can be scored, and say how many of those chosen cannot."""
    import numpy as np

    found = np.ones(len(chosen), dtype=bool)
    found[chosen] = answerable(model, X.filter(chosen))
    report_unanswered(terminal, int((~found).sum()))
    return found


def report_unanswered(terminal: Terminal, rows: int) -> None:
    """Say how many rows have no answer, if any."""
    if rows:
        terminal.line(f"no answer {plural(rows, 'row')}: a required value is missing")


# --------------------------------------------------------------------------------------------------
# Rows with status flags, as text
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlaggedRows:
    """How many of some rows are flagged, and in how many each input was."""

    rows: int
    flagged: int
    inputs: Mapping[str, int]

    def report(self, terminal: Terminal) -> None:
        """Print one line, where any row is flagged."""
        if self.flagged:
            counts = some([f"{name} in {count:,}" for name, count in self.inputs.items()])
            terminal.line(
                f"{self.flagged:,} of {self.rows:,} rows are outside of the training data "
                f"({counts}); "
                "their uncertainty was widened to that of the training targets"
            )


def flagged_rows(model: Estimator, inputs: Inputs) -> FlaggedRows:
    """Find the flagged rows, and the inputs that they are flagged for."""
    import numpy as np

    from rdeepsense.status import DOUBTS

    beyond = model.flagged_inputs(inputs)
    names = getattr(model, "feature_names_in_", [str(k) for k in range(beyond.shape[1])])
    counts = {str(names[k]): int(beyond[:, k].sum()) for k in np.flatnonzero(beyond.any(0))}
    flagged = int(np.count_nonzero(model.status(inputs) & ~DOUBTS))
    return FlaggedRows(len(beyond), flagged, counts)


# --------------------------------------------------------------------------------------------------
# Labels in a table for a saved model
# --------------------------------------------------------------------------------------------------


def target_columns(model: Estimator, given: list[str] | None) -> list[str]:
    """Return the columns with the truth, in the model's order where it knows their names."""
    names = list(model.fitted_.target.names or ())
    if not names:
        if not given:
            raise InputError("--target: the model file has no names of targets; give them")
        return given
    if given and sorted(given) != sorted(names):
        raise InputError(
            f"--target {', '.join(map(repr, given))}: the model predicts "
            f"{', '.join(map(repr, names))}; leave --target out, or rename the column of the truth"
        )
    return names


def labelled_rows(model: Estimator, table: Table, targets: list[str]) -> Table:
    """Leave out the rows whose truth is not known."""
    return with_truth(table, targets, _has_texts(model))


def _has_texts(model: Estimator) -> bool:
    return hasattr(model, "classes_") and model.classes_.dtype.kind == "U"


def truth_of(model: Estimator, table: Table, targets: list[str]) -> NDArray[np.generic]:
    """Return values or labels; labels of a model whose classes are texts stay texts."""
    if not _has_texts(model):
        frame = read_targets(table, targets)[0]
        if not hasattr(model, "classes_"):
            return numeric_targets(frame, targets)
        return known_labels(model, labels(frame, targets[0]), targets[0])
    return known_labels(model, labels(table.frame, targets[0]), targets[0])


# --------------------------------------------------------------------------------------------------
# A sensor log and a saved model of windows
# --------------------------------------------------------------------------------------------------

SHOWN = 10
KEPT = 0.9  # of the windows, the surest, that a second accuracy is of


def reads_logs(model: str) -> bool:
    """Tell by a model's header alone whether it knows how windows are cut from a log."""
    from rdeepsense.modelfile import container

    data = Remote.of(model).read() if is_url(model) else None
    return container.read(model, data)[0].get("windows") is not None


def log_windows(
    terminal: Terminal,
    model: Estimator,
    path: Path,
    truth: bool,
    target: list[str] | None = None,
    groups: str | None = None,
    sentinels: list[str] | None = None,
) -> Windows:
    """Cut a log by the model's own recipe; columns of recordings that it lacks are left out."""
    from rdeepsense.windowing import cut

    recipe = model.fitted_.recipe
    assert recipe is not None
    labels = tuple(target or recipe.label) if truth else ()
    by = tuple(dict.fromkeys([*recipe.by, *([groups] if groups else [])]))
    needed = [recipe.time, *recipe.channels, *labels, *([groups] if groups else [])]
    log = read_log(path, needed, by, sentinels or [])
    if lacking := [name for name in by if name not in log.columns]:
        terminal.line(
            f"note      the log has no {some(lacking)}; its recordings are not told apart"
        )
    known = tuple(name for name in by if name in log.columns)
    found = cut(replace(recipe, label=labels, by=known), log.columns)
    for line in found.report.lines():
        terminal.line(line)
    return found


def labelled_windows(
    terminal: Terminal,
    model: Estimator,
    path: Path,
    target: list[str] | None,
    sentinels: list[str] | None,
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Return the windows of a labelled log, their truth, and what it is called."""
    recipe = model.fitted_.recipe
    assert recipe is not None
    if not (target or recipe.label):
        raise InputError("--target: the model file has no name of a target; give it")
    windows = log_windows(terminal, model, path, True, target, sentinels=sentinels)
    return windows[:], truth_of_windows(model, windows), list(windows.recipe.label)


def truth_of_windows(model: Estimator, windows: Windows) -> NDArray[Any]:
    """Return the truth of windows as the model has it."""
    classes, y = model.fitted_.target.classes, windows.y
    assert y is not None
    if classes is None:
        return y
    if classes.dtype.kind == "U" and y.dtype.kind != "U":
        y = y.astype(str)
    return known_labels(model, y, windows.recipe.label[0])


def predict_log(
    terminal: Terminal,
    model: Estimator,
    path: Path,
    output: Path | None,
    coverage: float,
    samples: int | None,
    sentinels: list[str] | None,
) -> None:
    """Write a row for each window: when, of which recording, what the model says, its status."""
    import polars as pl

    from rdeepsense.cli.terminal import new_table
    from rdeepsense.status import status_words

    windows = log_windows(terminal, model, path, truth=False, sentinels=sentinels)
    X = windows[:]
    dist = model.predict_dist(X, samples)
    columns: dict[str, Any] = {"start": windows.starts, "end": windows.ends, **windows.groups}
    columns |= figures(model, dist, coverage)
    columns["status"] = status_words(model.status(X))
    table = pl.DataFrame({name: _listed(values) for name, values in columns.items()})
    if output is not None:
        write_table(output, table)
        name = "stdout" if output == STDOUT else output
        terminal.line(f"wrote {name}: {table.height:,} windows, {some(table.columns)}")
        return
    left = table.height - SHOWN
    more = f"and {left:,} windows more; -o FILE writes all" if left > 0 else None
    # A terminal is narrow: of the probabilities that of the class is enough.
    table = table.drop([name for name in table.columns if name.startswith("p_")])
    if hasattr(model, "classes_"):
        table = table.insert_column(-1, pl.Series("probability", dist.mean.max(1)))
    shown = new_table("Predictions", table.columns, more)
    for row in table.head(SHOWN).iter_rows():
        shown.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    terminal.table(shown)


def figures(model: Estimator, dist: AnyDistribution, coverage: float) -> dict[str, Any]:
    """Return class and probabilities, or mean, std and an interval, of each window."""
    from rdeepsense.predict.columns import suffixes

    classes, names = model.fitted_.target.classes, model.fitted_.target.names
    one = classes is not None or len(dist.shape) == 1
    ends = suffixes(names, 1 if one else dist.shape[1])
    if classes is not None:
        found: dict[str, Any] = {f"class{ends[0]}": classes[dist.mode]}
        return found | {f"p_{label}": dist.mean[:, k] for k, label in enumerate(classes)}
    low, high = dist.interval(coverage)
    told = {"mean": dist.mean, "std": dist.std, "low": low, "high": high}
    return {
        f"{name}{suffix}": value if len(dist.shape) == 1 else value[:, k]
        for k, suffix in enumerate(ends)
        for name, value in told.items()
    }


def evaluate_log(
    terminal: Terminal,
    model: Estimator,
    path: Path,
    target: list[str] | None,
    groups: str | None,
    sentinels: list[str] | None,
    json: Path | None,
    page: Path | None = None,
    file: Path | None = None,
) -> None:
    """Score a model on the windows of a labelled log."""
    import numpy as np
    import polars as pl

    from rdeepsense.status import DOUBTS

    recipe = model.fitted_.recipe
    assert recipe is not None
    target = target_columns(model, target) if target else list(recipe.label)
    if not target:
        raise InputError("--target: the model file has no name of a target; give it")
    windows = log_windows(terminal, model, path, True, target, groups, sentinels)
    y, X = truth_of_windows(model, windows), windows[:]
    targets = list(windows.recipe.label)
    classes = hasattr(model, "classes_")
    between = groups or next(iter(windows.groups), None)
    group = None if between is None else windows.groups[between]
    if group is not None and len(np.unique(group)) < 2:
        between, group = None, None
    dist = model.predict_dist(X)
    scores = score_model(model, dist, y, targets, group)
    flagged = int(np.count_nonzero(model.status(X) & ~DOUBTS))
    if flagged:
        terminal.line(f"{flagged:,} of {len(X):,} windows are beyond what the model was trained on")
    title = f"Figures on {len(y):,} windows of {path}"
    terminal.table(score_table(title, scores, caption(classes, between)))
    told = report_groups(terminal, dist, y, targets, between, group)
    # Seconds of several recordings may each begin at 0, and put nothing in order.
    dated = windows.starts.dtype.kind == "M" or not windows.groups
    starts = pl.Series("start", windows.starts) if dated else None
    if page is None or file is None:
        from rdeepsense.reporting.verdict import Constant

        known = Constant.of_model(model.fitted_)
        status, findings = model.status(X), model.findings_
        verdicts = judged(dist, y, targets, known, group, starts, status, None, findings)
        report(terminal, verdicts)
    else:
        from rdeepsense.cli.evaluate import write_report

        own = None if group is None else pl.Series(between or "", group.tolist())
        about = f"Windows of {path}."
        verdicts = write_report(terminal, page, model, (X, y), own, starts, None, file, about)
    if json is None:
        return
    content: dict[str, Any] = {
        "task": "classification" if classes else "regression",
        "rows": len(y),
        **(first_figures(scores) if len(scores) == 1 else {}),
        **({"accuracy_of_surest_90": surest(dist, y)} if classes else {}),
        "figures": to_plain(scores),
        "verdict": to_plain(verdicts),
        "groups": to_plain(told),
        "windows": windows.report.to_json(),
    }
    write_json(json, content)
    if json != STDOUT:
        terminal.line(f"wrote {json}")


def first_figures(scores: Mapping[str, Scores]) -> dict[str, float | None]:
    """Return the figures of a model's one target: accuracy, ece, nll and so on."""
    return {name: score.value for name, score in next(iter(scores.values())).items()}


def surest(dist: AnyDistribution, y: NDArray[Any]) -> float:
    """Return the accuracy on the nine tenths of the windows that the model is surest of."""
    import numpy as np

    from rdeepsense.distributions import Categorical

    assert isinstance(dist, Categorical)
    right = dist.mode == dist.encode(y)
    order = np.argsort(-dist.mean.max(1), kind="stable")
    return float(right[order[: max(1, round(KEPT * len(order)))]].mean())


def _listed(values: NDArray[Any] | list[str]) -> pl.Series:
    """Return a column; texts of numpy as texts."""
    import polars as pl

    if not isinstance(values, list) and values.dtype.kind in "OU":
        values = values.tolist()
    return pl.Series(values)
