"""`rdeepsense profile`: what one prediction costs in every form of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.cli.inference import load_model
from rdeepsense.cli.options import JsonFile, Overwrite, Quiet
from rdeepsense.cli.terminal import (
    STDOUT,
    Terminal,
    check_outputs,
    in_options,
    new_table,
    pictures,
    write_json,
)
from rdeepsense.errors import require

if TYPE_CHECKING:
    from rdeepsense.deploy.profile.forms import ProfileReport
    from rdeepsense.deploy.profile.measure import Measured

OPTIONS = {"candidates": "--against", "rounds": "--rounds", "device": "--device"}
COLUMNS = ["form", "µs", "p99 µs", "instructions", "kB", "peak MB", "mJ"]


def profile(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    against: Annotated[
        str | None,
        typer.Option(
            help="Forms with commas, such as torch,onnxruntime,folded,c-int8,mcdrop-20,ssp-3; "
            "else all of this model, MCDrop-10 and SSP-5."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all forms take turns.")] = 20,
    device: Annotated[
        str | None,
        typer.Option(
            help="Device that energy is estimated for where there is no meter: Intel Edison (the "
            "paper's), Raspberry Pi 4 or Cortex-M4."
        ),
    ] = None,
    json: JsonFile = None,
    plot: Annotated[Path | None, typer.Option(help="Draw them to PLOT.png and PLOT.svg.")] = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Measure time, instructions, memory and energy of one prediction in every form of a model.

    Each form predicts one row of the model file on one thread. All take turns in each round; the
    round with the smallest median counts. Forms of C are compiled on the first run.
    """
    from rdeepsense.deploy.profile.forms import profile as profile_model

    outputs = {"--json": json, **pictures(plot)}
    check_outputs(outputs, inputs=(model,), overwrite=overwrite)
    if plot is not None:
        require("matplotlib", "report")
    names = None if against is None else [name.strip() for name in against.split(",")]
    terminal = Terminal(quiet, json)
    with in_options(OPTIONS):
        report = profile_model(load_model(model), candidates=names, rounds=rounds, device=device)
    _tell(terminal, report)
    found = {"model": str(model), **report.to_json()}
    if json is not None:
        write_json(json, found)
        if json != STDOUT:
            terminal.line(f"wrote {json}")
    if plot is not None:
        from rdeepsense.pages.pictures import plot_profile, save

        for path in save(plot_profile(found), plot):
            terminal.line(f"wrote {path}")


def _tell(terminal: Terminal, report: ProfileReport) -> None:
    from rdeepsense.deploy.profile.measure import Missing

    shape = "-".join(map(str, report.layers))
    caption = (
        f"{report.machine}. Median and 99th percentile of the best of {report.rounds} rounds; "
        "instructions by callgrind; kB of weights; peak memory of a process that predicts one row."
    )
    table = new_table(f"One prediction of {shape}", COLUMNS, caption)
    for one in report.candidates:
        if not isinstance(one, Missing):
            table.add_row(one.name, *_cells(one))
    terminal.table(table)
    terminal.line(f"energy: {report.energy}")
    for one in report.candidates:
        if isinstance(one, Missing):
            terminal.line(f"{one.name}: not available, {one.reason}")


def _cells(one: Measured) -> list[str]:
    def cell(value: float | None, text: str) -> str:
        return "-" if value is None else format(value, text)

    return [
        cell(one.microseconds, ",.2f"),
        cell(one.p99_microseconds, ",.2f"),
        cell(one.instructions, ",d"),
        cell(one.weight_bytes / 1e3, ",.1f"),
        cell(None if one.peak_bytes is None else one.peak_bytes / 1e6, ",.1f"),
        cell(one.millijoules, ".3g"),
    ]
