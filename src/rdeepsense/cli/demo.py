"""`rdeepsense demo`: the short tour, on simulated data whose true uncertainty is known.

First a small sensor, fitted and drawn beside the truth; then one task of the paper by all methods,
with the report that `rdeepsense reproduce` writes.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense import __version__
from rdeepsense.cli.reproduce import check_complete
from rdeepsense.cli.scores import COVERAGES
from rdeepsense.cli.terminal import Terminal, make_folder, new_table, write_json
from rdeepsense.errors import require
from rdeepsense.experiments.machine import Machine
from rdeepsense.experiments.records import Record

if TYPE_CHECKING:
    from rich.table import Table

    from rdeepsense.distributions import Gaussian
    from rdeepsense.estimators import RDeepSenseRegressor
    from rdeepsense.experiments.paper.presets import Preset
    from rdeepsense.experiments.paper.results import StudyResults
    from rdeepsense.experiments.paper.task_results import TaskResults
    from rdeepsense.experiments.tasks.known_truth import KnownTruth
    from rdeepsense.plot.figures import Slice

TASK = "NYCommute"  # its tail is what tells the methods apart
GO_ON = """
Go on with
  rdeepsense reproduce all             the paper's four tasks, simulated: minutes on two cores
  rdeepsense reproduce all --data DIR  the same on its data sets (rdeepsense data fetch)
  rdeepsense fit --help                a table of your own"""
PASSES = 10
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


@dataclass(frozen=True)
class DemoMachine(Machine):
    """The machine, and how many threads of it were used."""

    threads_used: int = 1


@dataclass(frozen=True)
class DemoResults(Record):
    """Everything that results.json holds of the simulated sensor."""

    data: str
    simulated: bool
    seed: int
    rows: Mapping[str, int]  # by part
    deviation_floor: float
    predictors: Mapping[str, Mapping[str, float]]  # figures by predictor
    fit_seconds: float
    machine: DemoMachine
    versions: Mapping[str, str]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files; made if absent.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and training.")] = 0,
) -> None:
    """Take the short tour: a simulated sensor beside its truth, then one task by all methods.

    Writes demo.png, demo.svg, results.json and model.safetensors of the sensor, and the report on
    the task, simulated taxi trips, to a folder of its own. Takes two minutes or so on two cores.
    """
    terminal = Terminal()
    known_truth_tour(out, seed, terminal)
    task_tour(out / TASK, seed, terminal)
    terminal.line(GO_ON)


def task_tour(
    out: Path,
    seed: int,
    terminal: Terminal,
    preset: Preset | None = None,
    jobs: int | None = None,
    quiet: bool = False,
) -> StudyResults:
    """Run all methods on one simulated task and write the report; return its results."""
    make_folder(out)
    from rdeepsense.experiments.paper.presets import PRESETS
    from rdeepsense.experiments.paper.run import default_methods, run
    from rdeepsense.experiments.report.reproduction import write

    size = preset or PRESETS["quick"]
    terminal.line(
        f"{TASK}, a task of the paper, simulated: {len(default_methods())} methods, each trained "
        f"from {size.seeds} seeds"
    )
    outcome = run((TASK,), size, out, seed=seed, jobs=jobs, quiet=quiet)
    files = write(outcome.results, out)
    terminal.table(_methods(outcome.results.tasks[TASK]))
    report = next(file for file in files if file.name == "report.html")
    terminal.line(f"wrote {report}: all methods, every table and figure, what holds of the claims")
    check_complete(outcome)
    return outcome.results


def _methods(task: TaskResults) -> Table:
    """Return a row for one method of each family."""
    from rdeepsense.experiments.report.cell_text import count, number
    from rdeepsense.experiments.report.method_styles import representatives
    from rdeepsense.experiments.report.task_tables import ours

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
) -> DemoResults:
    """Fit the sensor, draw and score it beside the truth; return what results.json holds."""
    require("matplotlib", "report")
    make_folder(out)
    from rdeepsense.estimators import RDeepSenseRegressor
    from rdeepsense.experiments.report.saving import save
    from rdeepsense.experiments.tasks.known_truth import simulate
    from rdeepsense.plot.figures import known_truth

    train, test = simulate(rows, 2 * seed), simulate(test_rows, 2 * seed + 1)
    terminal.line(
        f"Simulated sensor with known truth: {rows:,} rows to fit, {test_rows:,} rows to test"
    )
    begin = time.perf_counter()
    model = RDeepSenseRegressor(random_state=seed).fit(train.X, train.y)
    fit_seconds = time.perf_counter() - begin
    once, once_seconds = _timed(model, test, None)
    often, often_seconds = _timed(model, test, PASSES)
    predictors = {
        "truth": _compare(test.truth, test, passes=0, seconds=0.0),
        "RDeepSense": _compare(once, test, passes=1, seconds=once_seconds),
        f"RDeepSense-MC{PASSES}": _compare(often, test, passes=PASSES, seconds=often_seconds),
    }
    results = _results(seed, model, test, predictors, fit_seconds)
    model.save(out / "model.safetensors")
    figure = known_truth(_slice(model, seed), test.truth, once, test.y)
    pictures = save(figure, out / "demo")
    write_json(out / "results.json", results.to_json())

    terminal.table(_table(results))
    for path in (*pictures, out / "results.json", out / "model.safetensors"):
        terminal.line(f"wrote {path}")
    return results


def _timed(
    model: RDeepSenseRegressor, test: KnownTruth, samples: int | None
) -> tuple[Gaussian, float]:
    begin = time.perf_counter()
    dist: Gaussian = model.predict_dist(test.X, samples)
    return dist, time.perf_counter() - begin


def _compare(dist: Gaussian, test: KnownTruth, passes: int, seconds: float) -> dict[str, float]:
    """Return the figures of one predictor; mean and std are compared with those of y given x."""
    import numpy as np

    from rdeepsense import metrics
    from rdeepsense.experiments.tasks.known_truth import kl_from_truth

    figures = metrics.evaluate(dist, test.y) | {
        "kl_from_truth": kl_from_truth(test.truth, dist),
        "rmse_log_std": float(np.sqrt(np.mean(np.log(dist.std / test.truth.std) ** 2))),
        "rmse_mean": float(np.sqrt(np.mean((dist.mean - test.truth.mean) ** 2))),
        "passes": passes,
        "seconds": seconds,
    }
    return {key: figures[key] for key in LINES}


def _results(
    seed: int,
    model: RDeepSenseRegressor,
    test: KnownTruth,
    predictors: dict[str, dict[str, float]],
    fit_seconds: float,
) -> DemoResults:
    import numpy as np
    import torch

    from rdeepsense import metrics

    return DemoResults(
        data="simulated: the known-truth task",
        simulated=True,
        seed=seed,
        rows={
            "train": model.training_["rows"],
            "validation": model.training_["validation_rows"],
            "test": len(test.y),
        },
        deviation_floor=metrics.deviation_floor(len(test.y)),
        predictors=predictors,
        fit_seconds=fit_seconds,
        machine=DemoMachine.this(),
        versions={
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    )


def _slice(model: RDeepSenseRegressor, seed: int) -> Slice:
    """Predict along x0 at x1 = x2 = 1, x3 = 0."""
    import numpy as np

    from rdeepsense.experiments.tasks.known_truth import truth_at
    from rdeepsense.plot.figures import Slice

    x0 = np.linspace(-2, 2, 300)
    X = np.column_stack([x0, np.ones_like(x0), np.ones_like(x0), np.zeros_like(x0)])
    truth = truth_at(X)
    return Slice(
        x=x0,
        truth=truth,
        predicted=model.predict_dist(X),
        drawn=truth.sample(1, np.random.default_rng(seed))[0],
        label="input x0, at x1 = x2 = 1 and x3 = 0",
    )


def _table(results: DemoResults) -> Table:
    """Return a row for each figure, a column for each predictor, the truth's own figures first."""
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
