"""`rdeepsense compare`: methods side by side on a table of one's own, with a page to show."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense.cli.columns import (
    TaskKind,
    check_known,
    check_roles,
    decide,
    inputs_of,
    inspect,
    kind_of,
    labels,
    numeric_targets,
)
from rdeepsense.cli.options import (
    TABLE,
    Address,
    DateParts,
    EngineName,
    EngineOption,
    ForcedInputs,
    Jobs,
    JsonFile,
    ManyClasses,
    MissingMarks,
    Overwrite,
    Quiet,
    engine_asked,
    widths_of,
)
from rdeepsense.cli.reading.columns import parse_parts
from rdeepsense.cli.reading.table import check_classes, read_table, read_targets, with_truth
from rdeepsense.cli.terminal import (
    STDOUT,
    Terminal,
    check_outputs,
    rich_table,
    stoppable,
    write_json,
)
from rdeepsense.errors import InputError, require, share

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

MOST_LEVELS = 64
METHODS = "RDeepSense-quick,MCDrop-20,SSP-5"
OPTIONAL = {"CatBoost": "catboost", "NGBoost": "ngboost"}


def compare(
    table: Annotated[Path, typer.Argument(help=f"{TABLE}; one row per example.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help="RDeepSense, RDeepSense-MCk, RDeepSense-quick, MCDrop-k, MCDrop-k-paper, SSP-k, "
            f"GP, CatBoost, NGBoost; else {METHODS} and, where they are installed, CatBoost and "
            "NGBoost."
        ),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column (user, record) whose rows must stay together.")
    ] = None,
    task: Annotated[
        TaskKind, typer.Option(help="auto: classes for text or yes/no targets.")
    ] = TaskKind.auto,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Exclude this column from the inputs; repeatable.")
    ] = None,
    inputs: ForcedInputs = None,
    datetime: DateParts = None,
    missing_mark: MissingMarks = None,
    many_classes: ManyClasses = False,
    splits: Annotated[int, typer.Option(min=1, help="How often to split and fit.")] = 3,
    test_fraction: Annotated[
        float, typer.Option(help="Share of rows (or groups) that each split keeps for its test.")
    ] = 0.1,
    hidden: Annotated[
        str, typer.Option(help="Widths of the networks' hidden layers, or auto.")
    ] = "auto",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default from their number.")
    ] = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with tables and a picture to this file.")
    ] = None,
    json: JsonFile = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Fit several methods on random splits of a table and score them on rows they have not seen.

    Every method gets the same rows, and chooses what it leaves open on training rows alone.
    """
    from rdeepsense.comparison.compare import compare as run
    from rdeepsense.comparison.methods import parse_all
    from rdeepsense.engines import Local

    terminal = Terminal(quiet, json)
    chosen = parse_all(methods or _default_methods())
    widths = widths_of(hidden)
    place = engine_asked(engine, address, jobs)
    forced, parts = inputs or [], parse_parts(datetime)
    check_roles([target], groups, ignore or [], forced)
    if not 0 < test_fraction < 1:
        raise InputError(
            f"--test-fraction {test_fraction}: must lie between 0 and 1{share(test_fraction)}"
        )
    if html is not None:
        require("matplotlib", "report")
    check_outputs({"--html": html, "--json": json}, inputs=(table,), overwrite=overwrite)
    read = read_table(table, missing_mark or [])
    frame = read.frame
    group, left = [groups] if groups else [], ignore or []
    for option, names in (
        ("--target", [target]),
        ("--groups", group),
        ("--ignore", left),
        ("--input", forced),
    ):
        check_known(frame, names, option)
    read = with_truth(read, [target])
    frame, read_as = read_targets(read, [target])
    aside, commas = [target, *group, *left], read.comma_separated
    found = inspect(frame, aside, forced, parts, commas, read.said, read_as)
    terminal.line(f"table     {read.name}")
    found.report(terminal, [target])
    classes, why = decide(task, {target: kind_of(frame[target])})
    terminal.line(f"task      {'classification' if classes else 'regression'}: {why}")
    X = one_hot(inputs_of(found.frame, found.inputs, "refuse", found.categories), found.categories)
    y = labels(frame, target) if classes else numeric_targets(frame, [target])
    if classes:
        check_classes(target, len(set(y.tolist())), len(y), many_classes)
    users = labels(frame, groups, "--groups") if groups else None
    names = [method.name for method in chosen]
    terminal.line(f"methods   {', '.join(names)}; {splits} splits")
    begin_again = "nothing is kept; the same command begins again"
    # Ray tells of lost workers on stdout, which is for --json -.
    with stoppable(lambda: begin_again), redirect_stdout(sys.stderr):
        result = run(
            X,
            y,
            names,
            splits,
            test_fraction,
            users,
            seed,
            widths,
            "classification" if classes else "regression",
            epochs=epochs,
            progress=long_progress(quiet),
            # One job is this process itself, which says what begins and raises errors as they are.
            engine=None if place == Local() else place,
        )
    for part in result.text_tables():
        terminal.table(rich_table(part))
    terminal.line(result.caption)
    for family, texts in result.warnings.items():
        terminal.line(f"{family} warned: {texts[0]}")
    about = (
        f"{table.name}: {frame.height:,} rows, {len(found.inputs)} inputs, target {target}"
        f"{f', rows of one {groups} kept together' if groups else ''}. Seed {seed}."
    )
    if html is not None:
        write_whole(html, result.html(f"{target}: methods compared", about))
        terminal.line(f"wrote {html}")
    if json is not None:
        rows = {"table": table.name, "target": target, "inputs": found.inputs, "seed": seed}
        write_json(json, {**rows, **result.to_json()})
        if json != STDOUT:
            terminal.line(f"wrote {json}")


def _default_methods() -> str:
    there = [name for name, library in OPTIONAL.items() if find_spec(library)]
    return ",".join([METHODS, *there])


def one_hot(frame: pl.DataFrame, categories: Sequence[str]) -> NDArray[np.float64]:
    """Return numbers that every method can read: a column for each level of a category."""
    if not categories:
        return frame.to_numpy()
    levels = {name: frame[name].n_unique() for name in categories}
    for name, count in levels.items():
        if count > MOST_LEVELS:
            raise InputError(
                f"column {name!r} has {count:,} levels; comparing takes {MOST_LEVELS} at most, so "
                f"leave it out (--ignore {name!r})"
            )
    return frame.to_dummies(list(categories)).to_numpy().astype("float64")
