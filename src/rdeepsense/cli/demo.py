"""`rdeepsense demo`: the short tour, on simulated data whose true uncertainty is known.

First a small sensor, fitted and drawn beside the truth; then one task of the paper by all methods,
with the report that `rdeepsense reproduce` writes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.cli.options import Quiet
from rdeepsense.cli.paper import check_complete
from rdeepsense.cli.scores import COVERAGES
from rdeepsense.cli.terminal import (
    Terminal,
    finished_cells,
    make_folder,
    new_table,
    stoppable,
    write_json,
)
from rdeepsense.errors import require

if TYPE_CHECKING:
    from rich.table import Table

    from rdeepsense.engines import Engine
    from rdeepsense.paper.demo import SensorResults
    from rdeepsense.paper.run import StudyResults
    from rdeepsense.paper.scores import TaskResults
    from rdeepsense.paper.study import Preset

TASK = "NYCommute"  # its tail is what tells the methods apart
GO_ON = """
Go on with
  rdeepsense reproduce all             the paper's four tasks, simulated: minutes on two cores
  rdeepsense reproduce all --data DIR  the same on its data sets (rdeepsense data fetch)
  rdeepsense fit --help                a table of your own"""
LINES = {
    "kl_from_truth": "KL from the truth (nats)",
    "nll": "negative log-likelihood",
    "deviation_area": "deviation area",
    "deviation_area_signed": "signed (+ too wide)",
    "rmse_log_std": "RMSE of log std",
    "rmse_mean": "RMSE of the mean",
    **{f"coverage_{c}": f"coverage at {c} %" for c in COVERAGES},
    "passes": "forward passes per row",
    "seconds": "seconds to predict",
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files; made if absent.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and training.")] = 0,
    web: Annotated[
        bool,
        typer.Option("--web", help="Instead: a page that tells activities live, in the browser."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, help="--web: where it is served.")] = 8000,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="--web: serve the page until Ctrl-C.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Take the short tour: a simulated sensor beside its truth, then one task by all methods.

    Writes demo.png, demo.svg, results.json and model.safetensors of the sensor, and the report on
    the task, simulated taxi trips, to a folder of its own. Takes two minutes or so on two cores.
    With --web it trains on simulated activities instead, and serves the model's page.
    """
    terminal = Terminal(quiet)
    if web:
        web_tour(out, seed, terminal, port, serve)
        return
    with stoppable(partial(finished_cells, out / TASK)):
        known_truth_tour(out, seed, terminal)
        task_tour(out / TASK, seed, terminal, quiet=quiet)
    terminal.line(GO_ON)


def web_tour(out: Path, seed: int, terminal: Terminal, port: int, serve: bool) -> None:
    """Train on simulated activities, write the page and serve it to this machine."""
    from rdeepsense.cli.terminal import server_of
    from rdeepsense.deploy.web.export import wasm_compiler
    from rdeepsense.paper.demo import make_page

    make_folder(out)
    wasm_compiler()  # said before the training, not after it
    server = server_of(out / "web", port) if serve else None
    terminal.line("Six activities of simulated users: accelerometer and gyroscope")
    page = make_page(out / "web", seed)
    terminal.line(f"accuracy       {page.accuracy:.1%} on {page.users} users not trained on")
    terminal.line(f"wrote {page.report.path}: {page.report.bytes:,} bytes, works offline")
    if server is None:
        return
    with server:
        terminal.line(f"open http://127.0.0.1:{server.server_port}/#replay   (Ctrl-C ends)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            terminal.line("ended")


def task_tour(
    out: Path,
    seed: int,
    terminal: Terminal,
    preset: Preset | None = None,
    engine: Engine | None = None,
    quiet: bool = False,
) -> StudyResults:
    """Run all methods on one simulated task and write the report; return its results."""
    make_folder(out)
    from rdeepsense.paper.report import write
    from rdeepsense.paper.run import default_methods, run
    from rdeepsense.paper.study import PRESETS

    size = preset or PRESETS["quick"]
    terminal.line(
        f"{TASK}, a task of the paper, simulated: {len(default_methods())} methods, each trained "
        f"from {size.seeds} seeds"
    )
    outcome = run((TASK,), size, out, seed=seed, engine=engine, quiet=quiet)
    files = write(outcome.results, out)
    terminal.table(_methods(outcome.results.tasks[TASK]))
    report = next(file for file in files if file.name == "report.html")
    terminal.line(f"wrote {report}: all methods, every table and figure, what holds of the claims")
    check_complete(outcome)
    return outcome.results


def _methods(task: TaskResults) -> Table:
    """Return a row for one method of each family."""
    from rdeepsense.pages.html import count, number
    from rdeepsense.pages.pictures import representatives
    from rdeepsense.paper.tables import ours

    note = (
        f"Mean ± standard error over test {task.grouped_by}s and trainings. Area: deviation "
        f"area, {task.floor:.4f} for a perfect model. KL: from the truth, in nats."
    )
    columns = ["", "passes", f"MAE ({task.unit})", "NLL", "area", "KL"]
    table = new_table(f"Simulated data, {task.rows.test:,} test rows", columns, note)
    for name in representatives(task.methods):
        method = task.methods[name]
        mae, nll = (number(*ours(method.figures, key)) for key in ("mae", "nll"))
        alone = (number(method.figures[key]) for key in ("deviation_area", "kl"))
        table.add_row(name, count(method.passes), mae, nll, *alone)
    return table


def known_truth_tour(
    out: Path, seed: int, terminal: Terminal, rows: int = 4_000, test_rows: int = 20_000
) -> None:
    """Fit the sensor, draw and score it beside the truth; write figure, results and model."""
    require("matplotlib", "report")
    make_folder(out)
    from rdeepsense.pages.pictures import save
    from rdeepsense.paper.demo import fit_sensor
    from rdeepsense.plot.figures import known_truth

    terminal.line(
        f"Simulated sensor with known truth: {rows:,} rows to fit, {test_rows:,} rows to test"
    )
    sensor = fit_sensor(seed, rows, test_rows)
    sensor.model.save(out / "model.safetensors")
    figure = known_truth(sensor.along, sensor.test.truth, sensor.predicted, sensor.test.y)
    pictures = save(figure, out / "demo")
    write_json(out / "results.json", sensor.results.to_json())

    terminal.table(_table(sensor.results))
    for path in (*pictures, out / "results.json", out / "model.safetensors"):
        terminal.line(f"wrote {path}")


def _table(results: SensorResults) -> Table:
    """Return a row for each figure, a column for each predictor, the truth's own figures first."""
    from rdeepsense.paper.demo import PASSES

    note = (
        f"A perfect model's deviation area is {results.deviation_floor:.4f} on average. "
        f"MC{PASSES} keeps the scale that was fitted for the single pass."
    )
    title = f"Simulated data, {results.rows['test']:,} test rows"
    predictors = results.predictors
    table = new_table(title, ["", *predictors], note)
    for key, name in LINES.items():
        values = [predictor[key] for predictor in predictors.values()]
        if key in ("passes", "seconds"):
            cells = [f"{value:.3g}" if value else "" for value in values]
        else:
            cells = [
                f"{value:+.4f}" if key.endswith("signed") else f"{value:.4f}" for value in values
            ]
        table.add_row(name, *cells)
    return table
