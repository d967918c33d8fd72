"""A log and a model that knows how its windows are cut: what other commands take of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense._records import plain
from rdeepsense._storage import Remote, is_url
from rdeepsense.cli.by_group import report_groups
from rdeepsense.cli.columns import some
from rdeepsense.cli.labelled import target_columns
from rdeepsense.cli.reading.log import read_log
from rdeepsense.cli.scores import Scores, caption, known_labels, score_model, score_table
from rdeepsense.cli.terminal import STDOUT, write_json
from rdeepsense.cli.verdict import judged, report
from rdeepsense.cli.writing import write_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.windowing import Windows

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
    return windows[:], truth_of(model, windows), list(windows.recipe.label)


def truth_of(model: Estimator, windows: Windows) -> NDArray[Any]:
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
    y, X = truth_of(model, windows), windows[:]
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
        from rdeepsense.cli.evaluate_report import write_report

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
        "figures": plain(scores),
        "verdict": plain(verdicts),
        "groups": plain(told),
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
