"""`rdeepsense export`: a trained model for a device."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.cli.columns import (
    check_known,
    labels,
    numeric_targets,
    report_assumed,
    report_strays,
)
from rdeepsense.cli.inference import (
    answerable,
    labelled_rows,
    load_model,
    log_windows,
    model_inputs,
    report_unanswered,
    rows_of,
)
from rdeepsense.cli.inference import truth_of_windows as truth_of
from rdeepsense.cli.options import Overwrite, Quiet
from rdeepsense.cli.reading.table import read_table, read_targets
from rdeepsense.cli.scores import known_labels
from rdeepsense.cli.terminal import Terminal, check_outputs, in_options, new_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rdeepsense.deploy.c.export import C99Report
    from rdeepsense.deploy.quality import ExportReport, Quality
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.fitting.fitted import Fitted


# --------------------------------------------------------------------------------------------------
# Sizes of exports, computed before they are made
# --------------------------------------------------------------------------------------------------


def export_sizes(fitted: Fitted) -> dict[str, int | str]:
    """Return the bytes of C tables by type of the weights, or why there is no such export.

    int8 and float16 are rounded by rows of the model file; without rows float32 alone is told.
    """
    from rdeepsense.deploy.c.emit import Source
    from rdeepsense.deploy.c.graph import GraphSource
    from rdeepsense.deploy.c.inputs import DTYPES as OF_GRAPHS
    from rdeepsense.deploy.c.inputs import as_stored
    from rdeepsense.deploy.fold import folded_form
    from rdeepsense.deploy.folded.graph import FoldedGraph
    from rdeepsense.deploy.quantise import DTYPES, prepare
    from rdeepsense.errors import RDeepSenseError

    rows = fitted.kept_rows[0]
    try:
        folded = folded_form(fitted)
        if isinstance(folded, FoldedGraph):
            return {
                f"C {dtype}": GraphSource(folded, as_stored(folded, dtype)).table_bytes
                for dtype in OF_GRAPHS
            }
        return {
            f"C {dtype}": Source(folded, prepare(folded, dtype, rows)).table_bytes
            for dtype in DTYPES
            if dtype == "float32" or len(rows)
        }
    except RDeepSenseError as error:
        return {"C": f"none, {error}"}


# --------------------------------------------------------------------------------------------------
# `rdeepsense export`: a fitted model for a device
# --------------------------------------------------------------------------------------------------

OPTIONS = {
    "to": "--to",
    "dtype": "--dtype",
    "rows": "--data",
    "epistemic": "--epistemic",
    "max_nll_change": "--max-nll-change",
    "fine_tune": "--fine-tune",
    "name": "--name",
    "live": "--live",
    "coverage": "--coverage",
    "features": "--features",
    "stream": "--stream",
    "hop": "--hop",
    "version": "--package-version",
    "reject": "--reject",
    "novelty": "--novelty",
}


class Format(StrEnum):
    """What a model can be exported to."""

    folded = "folded"
    c99 = "c99"
    onnx = "onnx"
    package = "package"
    web = "web"


class Dtype(StrEnum):
    """What weights can be stored in."""

    float32 = "float32"
    float16 = "float16"
    int8 = "int8"


class EpistemicMethod(StrEnum):
    """What of the epistemic uncertainty can be exported."""

    laplace = "laplace"


class Way(StrEnum):
    """How windows are computed in a stream of samples."""

    exact = "exact"
    running = "running"
    window = "window"


def export(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    to: Annotated[
        Format,
        typer.Option(
            help="folded: numpy alone runs it; c99: C source; onnx: ONNX Runtime runs it; package: "
            "the C as a library of Arduino, PlatformIO, Zephyr and ESP-IDF, with c99's options; "
            "web: a page that any browser runs, offline."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File (folded, onnx) or folder (others).")
    ],
    dtype: Annotated[
        Dtype, typer.Option(help="c99, onnx, web: how weights are stored; onnx has no float16.")
    ] = Dtype.float32,
    name: Annotated[
        str, typer.Option(help="c99: beginning of every name in the C; package: the library's.")
    ] = "model",
    package_version: Annotated[
        str | None,
        typer.Option(help="package: such as 1.2.0; by default it names the model by its digest."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="c99, onnx: labelled table to calibrate int8 on and to judge the export by; "
            "by default the rows in the model file."
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Column of --data with the truth; in fit's order.")
    ] = None,
    max_nll_change: Annotated[
        float, typer.Option(help="c99, onnx: fail if the NLL rises by more than this.")
    ] = 0.02,
    fine_tune: Annotated[
        bool,
        typer.Option(
            "--fine-tune",
            help="int8: if the NLL rises by more than that, train the weights to round better.",
        ),
    ] = False,
    epistemic: Annotated[
        EpistemicMethod | None,
        typer.Option(
            help="Also export what the model does not know of a row: one more output, and part of "
            "std or probs. Fully-connected networks; not with int8."
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="c99, web: it learns on from labels, as model.live() does."),
    ] = False,
    coverage: Annotated[
        float, typer.Option(help="c99 with --live: of the intervals that are tracked.")
    ] = 0.9,
    features: Annotated[
        bool,
        typer.Option("--features", help="onnx: the last hidden layer's numbers come out as well."),
    ] = False,
    stream: Annotated[
        Way | None,
        typer.Option(
            help="c99: how a stream of samples computes its windows; by default the cheapest that "
            "equals the whole window."
        ),
    ] = None,
    hop: Annotated[
        str | None,
        typer.Option(
            help="c99, folded: how far apart a stream's windows are, such as 0.5s; by default as "
            "the model's own."
        ),
    ] = None,
    reject: Annotated[
        float | None,
        typer.Option(help="Share of the labelled rows to accept; others have the status unsure."),
    ] = None,
    novelty: Annotated[
        bool | None,
        typer.Option(
            "--novelty/--no-novelty",
            help="folded, c99: rows unlike those trained on have the status unlike and a wider "
            "spread, as in Python. By default after fit_novelty alone.",
        ),
    ] = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a model as plain layers for numpy, C99, a package for firmware, ONNX or a web page."""
    from rdeepsense._progress import progress_for
    from rdeepsense.deploy.export import export as export_model

    terminal = Terminal(quiet)
    if to in (Format.folded, Format.onnx):
        inputs = (model, *([] if data is None else [data]))
        check_outputs({"--output": output}, inputs, overwrite)
    elif not overwrite and (output / "report.json").exists():
        raise InputError(f"--output {output}: is there already; --overwrite replaces it")
    estimator = load_model(model)
    rows = None if data is None else _rows(terminal, estimator, data, target or [])
    with in_options(OPTIONS):
        report = export_model(
            estimator,
            output,
            to=to.value,
            dtype=dtype.value,
            rows=rows,
            epistemic=None if epistemic is None else epistemic.value,
            max_nll_change=max_nll_change,
            fine_tune=fine_tune,
            name=name,
            live=live,
            coverage=coverage,
            features=features,
            stream=None if stream is None else stream.value,
            hop=hop,
            version=package_version,
            reject=reject,
            novelty=novelty,
            progress=progress_for(not quiet),
        )
    _report(terminal, report, fine_tune)


def _rows(
    terminal: Terminal, estimator: Estimator, path: Path, target: list[str]
) -> tuple[ArrayLike, ArrayLike]:
    """Read the inputs and the truth of a table, or of a log."""
    if estimator.fitted_.recipe is not None:
        windows = log_windows(terminal, estimator, path, True, target)
        return windows, truth_of(estimator, windows)
    if not target:
        raise InputError("--data needs --target: the columns with the truth")
    table = read_table(path)
    check_known(table.frame, target, "--target")
    table = labelled_rows(estimator, table, target)
    found = model_inputs(estimator, table, target)
    report_assumed(terminal, found.said)
    report_strays(terminal, found.strays)
    answered = answerable(estimator, found.values)
    report_unanswered(terminal, int((~answered).sum()))
    X = rows_of(found.values, answered)
    frame = read_targets(table, target)[0].filter(answered)
    if estimator.fitted_.target.is_classes:
        return X, known_labels(estimator, labels(frame, target[0]), target[0])
    y = numeric_targets(frame, target)
    if y.shape[1:] != estimator.fitted_.target.shape:
        raise InputError(f"--target names {len(target)} columns; the model has another number")
    return X, y


def _report(terminal: Terminal, report: ExportReport, fine_tune: bool) -> None:
    from rdeepsense.deploy.c.export import C99Report
    from rdeepsense.deploy.onnx.export import OnnxReport
    from rdeepsense.deploy.package.export import PackageReport
    from rdeepsense.deploy.web.export import WebReport

    path = report.path
    if isinstance(report, C99Report):
        _report_cost(terminal, report)
        _report_quality(terminal, report.quality, fine_tune)
        files = "model.h, model.c, weights.c, selftest.c, README.md, report.json"
        if isinstance(report, PackageReport):
            files = f"{report.name} {report.version}, {len(report.files)} files; README.md first"
        terminal.line(f"wrote {path}: {files}")
    elif isinstance(report, WebReport):
        _report_quality(terminal, report.quality, fine_tune)
        terminal.line(f"wrote {path}: {report.bytes:,} bytes; put the folder on any https host, or")
        terminal.line(f"  python -m http.server -d {path}   and open http://localhost:8000")
    elif isinstance(report, OnnxReport):
        terminal.line(f"ONNX Runtime   {report.agreement}")
        _report_quality(terminal, report.quality, fine_tune)
        terminal.line(f"wrote {path}: {report.bytes:,} bytes, opset {report.opset}")
    else:
        terminal.line(f"wrote {path}; rdeepsense.deploy.load({str(path)!r}) runs it")


def _report_cost(terminal: Terminal, report: C99Report) -> None:
    size = report.bytes
    if kept := report.kept_float32:
        terminal.line(
            f"float32        layer {', '.join(map(str, kept))}: half floats are too coarse"
        )
    terminal.line(f"multiply-adds  {report.multiply_adds:,}")
    if report.epistemic is not None:
        found = report.epistemic
        terminal.line(
            f"of them        {found.multiply_adds:,} and {found.bytes_in_flash:,} bytes of "
            f"flash for the epistemic part ({found.method})"
        )
    terminal.line(f"tables         {size.tables_in_flash:,} bytes of flash")
    if size.code_in_flash is not None:
        terminal.line(
            f"code, stack    {size.code_in_flash:,} and {size.stack:,} bytes ({size.measured_with})"
        )
    terminal.line(f"scratch        {size.ram_scratch:,} bytes of RAM")
    if report.live is not None:
        found_live = report.live
        terminal.line(
            f"learning on    {found_live.state_bytes:,} bytes of state, {found_live.row_bytes:,} a "
            f"row that waits, {found_live.multiply_adds_of_a_label:,} multiply-adds a label"
        )
    if report.watch.left_out is not None:
        terminal.line(f"novelty        left out: {report.watch.left_out}")
    if (unlike := report.watch.report) is not None:
        told, full = (
            ", ".join(f"{fault} {value:.2f}" for fault, value in found.items())
            for found in (unlike.auroc, unlike.full_auroc)
        )
        terminal.line(
            f"novelty        {unlike.bytes_in_flash:,} bytes of flash, false alarms "
            f"{unlike.false_alarms:.1%} of {unlike.rows:,} rows"
        )
        terminal.line(f"AUROC          {told}; of the full one {full}")
    if report.stream is not None:
        stream, whole = report.stream, report.multiply_adds
        for way in ("exact", "running"):
            cost, state = stream.multiply_adds[way], stream.state_bytes[way]
            terminal.line(
                f"{way:<15}{cost:,} multiply-adds an interval, 1/{whole / cost:.0f} of a window, "
                f"and {state:,} bytes of state"
            )
    if report.samples is not None:
        samples = report.samples
        terminal.line(
            f"samples        {samples.way}: {samples.multiply_adds[samples.way]:,} multiply-adds a "
            f"decision, every {samples.hop / samples.rate:g} s, and "
            f"{samples.ram_stream[samples.way]:,} bytes of RAM"
        )
        if samples.advice is not None:
            terminal.line(f"note           {samples.advice}")


def _report_quality(terminal: Terminal, quality: Quality | None, fine_tune: bool) -> None:
    if quality is None:
        terminal.line("quality        not measured: the model file has no rows; give --data")
        return
    if made := quality.fine_tuned:
        terminal.line(
            f"fine-tuned     on {made.rows:,} rows, {made.steps:,} steps; without it the NLL "
            f"rises by {made.nll_change_without:.4f}"
        )
    elif fine_tune:
        terminal.line(f"fine-tuned     no need: the NLL changes by {quality.nll_change:+.4f}")
    table = new_table(f"Figures on {quality.rows:,} rows", ["figure", "trained", "exported"])
    for key, value in quality.before.items():
        table.add_row(key, f"{value:.4f}", f"{quality.after[key]:.4f}")
    terminal.table(table)
