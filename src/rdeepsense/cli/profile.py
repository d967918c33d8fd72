"""`rdeepsense profile`: what one prediction costs in every form of a model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from rdeepsense.cli.terminal import Terminal, check_outputs, new_table, write_json
from rdeepsense.errors import require

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
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file too.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw them to PLOT.png and PLOT.svg.")] = None,
) -> None:
    """Measure time, instructions, memory and energy of one prediction in every form of a model.

    Each form predicts one row of the model file on one thread. All take turns in each round; the
    round with the smallest median counts. Forms of C are compiled on the first run.
    """
    from rdeepsense.deploy.profile import devices as profiles
    from rdeepsense.deploy.profile import energy
    from rdeepsense.deploy.profile.candidates import NAMES, check_names, form
    from rdeepsense.deploy.profile.measure import profile as measure
    from rdeepsense.deploy.profile.subject import Subject

    check_outputs({"--json": json, "--plot": plot}, inputs=(model,))
    if plot is not None:
        require("matplotlib", "report")
    names = NAMES if against is None else tuple(name.strip() for name in against.split(","))
    check_names(names)
    estimated_for = profiles.DEFAULT if device is None else profiles.profile(device)
    terminal = Terminal()
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject(model, Path(folder))
        forms = [form(subject, name) for name in names]
        # One that was named is what was asked for: it is not set aside for a meter.
        meter = energy.find() if device is None else None
        found = {
            "model": str(model),
            "layers": list(subject.folded.widths),
            **measure(forms, rounds, meter, estimated_for),
        }
    _tell(terminal, found)
    if json is not None:
        write_json(json, found)
        terminal.line(f"wrote {json}")
    if plot is not None:
        from rdeepsense.experiments.report.profile_figure import plot_profile
        from rdeepsense.experiments.report.saving import save

        for path in save(plot_profile(found), plot):
            terminal.line(f"wrote {path}")


def _tell(terminal: Terminal, found: dict[str, Any]) -> None:
    shape = "-".join(map(str, found["layers"]))
    caption = (
        f"{found['machine']}. Median and 99th percentile of the best of {found['rounds']} rounds; "
        "instructions by callgrind; kB of weights; peak memory of a process that predicts one row."
    )
    table = new_table(f"One prediction of {shape}", COLUMNS, caption)
    for form in found["forms"]:
        if form["available"]:
            table.add_row(form["name"], *_cells(form))
    terminal.table(table)
    terminal.line(f"energy: {found['energy']}")
    for form in found["forms"]:
        if not form["available"]:
            terminal.line(f"{form['name']}: not available, {form['reason']}")


def _cells(form: dict[str, Any]) -> list[str]:
    def cell(value: float | None, text: str) -> str:
        return "-" if value is None else format(value, text)

    peak = form["peak_bytes"]
    return [
        cell(form["microseconds"], ",.2f"),
        cell(form["p99_microseconds"], ",.2f"),
        cell(form["instructions"], ",d"),
        cell(form["weight_bytes"] / 1e3, ",.1f"),
        cell(None if peak is None else peak / 1e6, ",.1f"),
        cell(form["millijoules"], ".3g"),
    ]
