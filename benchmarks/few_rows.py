"""Coverage of fresh rows by the number of rows of a fit: how many rows are needed.

Each cell of the grid (rows, inputs, noise, effort) is a mean over independent tables. Tables take
turns among five laws: linear, smooth, interaction, noise that depends on an input, and no signal.
Every model is judged on 2,000 fresh rows. The standard error of a cell is that of the mean over
tables; the rows of one table share one model and are not independent.

    python benchmarks/few_rows.py --draws 25
    python benchmarks/few_rows.py --draws 25 --image docs/images/few_rows.png
    python benchmarks/few_rows.py --draws 25 --check
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense import metrics

Floats = NDArray[np.float64]
LAWS = ("linear", "smooth", "interaction", "heteroscedastic", "none")
NOISES = ("gaussian", "t3", "lognormal")
FRESH = 2_000
LEVELS = (0.5, 0.9, 0.95)
BOUNDS = (0.86, 0.94)  # of the mean coverage of a cell's 90 % intervals


def law(name: str, X: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the scale of the noise of each row; the mean has a std of about 1."""
    a, b = X[:, 0], X[:, min(1, X.shape[1] - 1)]
    half = np.full(len(X), 0.5)
    if name == "linear":
        return 0.8 * a + 0.6 * X[:, -1], half
    if name == "smooth":
        return 1.4 * np.sin(1.5 * a) + 0.3 * b, half
    if name == "interaction":
        return a * b, half
    if name == "heteroscedastic":
        return 1.2 * np.tanh(a) + 0.3 * b, 0.1 + 1.2 / (1 + np.exp(-2 * a))
    return np.zeros(len(X)), np.ones(len(X))


def noise(name: str, rng: np.random.Generator, rows: int) -> Floats:
    """Draw noise of mean 0 and standard deviation 1."""
    if name == "gaussian":
        return rng.normal(size=rows)
    if name == "t3":
        drawn: Floats = rng.standard_t(3, rows) / np.sqrt(3)
        return drawn
    s2 = 0.8**2
    skewed: Floats = np.exp(0.8 * rng.normal(size=rows)) - np.exp(s2 / 2)
    return skewed / np.sqrt((np.exp(s2) - 1) * np.exp(s2))


def table(
    rng: np.random.Generator, rows: int, inputs: int, name: str, of_noise: str
) -> tuple[Floats, Floats]:
    """Draw rows of a law."""
    X = rng.normal(size=(rows, inputs))
    mean, scale = law(name, X)
    return X, mean + scale * noise(of_noise, rng, rows)


def classes(rng: np.random.Generator, rows: int, inputs: int, name: str) -> tuple[Floats, Any]:
    """Draw rows of two classes, or of three for the smooth law."""
    X = rng.normal(size=(rows, inputs))
    mean, scale = law(name, X)
    score = mean + scale * rng.logistic(size=rows)
    return X, np.digitize(score, [-0.7, 0.7]) if name == "smooth" else (score > 0).astype(int)


def regression(rows: int, inputs: int, of_noise: str, effort: str, draw: int) -> dict[str, Any]:
    """Fit one table and judge it on fresh rows."""
    name = LAWS[draw % len(LAWS)]
    rng = np.random.default_rng([rows, inputs, draw, NOISES.index(of_noise)])
    X, y = table(rng, rows, inputs, name, of_noise)
    fresh, actual = table(rng, FRESH, inputs, name, of_noise)
    began = time.perf_counter()
    model = rds.RDeepSenseRegressor(effort=effort, random_state=draw).fit(X, y)
    seconds = time.perf_counter() - began
    dist = model.predict_dist(fresh)
    result = {f"coverage{level}": metrics.coverage(dist, actual, level) for level in LEVELS}
    low, high = dist.interval(0.9)
    return {
        **result,
        "width": float(np.mean(high - low)),
        "nll": metrics.nll(dist, actual),
        "crps": metrics.crps(dist, actual),
        "law": name,
        "seconds": seconds,
    }


def classification(rows: int, inputs: int, _: str, effort: str, draw: int) -> dict[str, Any]:
    """Fit one table of classes and judge it on fresh rows."""
    name = LAWS[draw % len(LAWS)]
    rng = np.random.default_rng([rows, inputs, draw])
    X, y = classes(rng, rows, inputs, name)
    while min(np.bincount(y)[np.unique(y)]) < 2 or len(np.unique(y)) < 2:
        X, y = classes(rng, rows, inputs, name)
    fresh, actual = classes(rng, 2 * FRESH, inputs, name)
    known = np.isin(actual, np.unique(y))
    fresh, actual = fresh[known][:FRESH], actual[known][:FRESH]
    began = time.perf_counter()
    model = rds.RDeepSenseClassifier(effort=effort, random_state=draw).fit(X, y)
    seconds = time.perf_counter() - began
    probs = model.predict_proba(fresh)
    place = np.searchsorted(model.classes_, actual)
    return {
        "accuracy": float((probs.argmax(1) == place).mean()),
        "stated": float(probs.max(1).mean()),
        "nll": float(-np.log(np.maximum(probs[np.arange(len(place)), place], 1e-12)).mean()),
        "law": name,
        "seconds": seconds,
    }


def one(job: tuple[str, int, int, str, str, int]) -> dict[str, Any]:
    """Run one job, without the warnings about few rows."""
    task, rows, inputs, of_noise, effort, draw = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = regression if task == "regression" else classification
        result = run(rows, inputs, of_noise, effort, draw)
    said = {"task": task, "rows": rows, "inputs": inputs, "noise": of_noise, "effort": effort}
    return {**said, "draw": draw, **result}


def cell(results: Sequence[dict[str, Any]], name: str) -> tuple[float, float]:
    """Return the mean of a figure over tables, and its standard error."""
    values = np.array([one[name] for one in results])
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def grouped(results: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return the results of each cell, in the order of the grid."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in results:
        key = tuple(one[k] for k in ("task", "effort", "noise", "inputs", "rows"))
        cells.setdefault(key, []).append(one)
    return cells


def show(results: Sequence[dict[str, Any]]) -> None:
    """Print an aligned table, one line for each cell."""
    for task in ("regression", "classes"):
        own = {k: v for k, v in grouped(results).items() if k[0] == task}
        if not own:
            continue
        if task == "regression":
            print(
                f"{'effort':6} {'noise':10} {'inputs':>6} {'rows':>5} {'tables':>6} "
                f"{'50 %':>6} {'90 %':>6} {'(SE)':>7} {'95 %':>6} {'width':>6} "
                f"{'NLL':>7} {'CRPS':>6} {'s':>5}"
            )
        else:
            print(
                f"{'effort':6} {'':10} {'inputs':>6} {'rows':>5} {'tables':>6} "
                f"{'right':>6} {'stated':>6} {'gap':>6} {'(SE)':>7} {'NLL':>7} {'s':>5}"
            )
        for (_, effort, of_noise, inputs, rows), found in own.items():
            head = f"{effort:6} {of_noise:10} {inputs:6d} {rows:5d} {len(found):6d} "
            seconds = f"{cell(found, 'seconds')[0]:5.2f}"
            nll = f"{cell(found, 'nll')[0]:7.3f}"
            if task == "regression":
                low, (mid, error), high = (cell(found, f"coverage{level}") for level in LEVELS)
                tail = f"{cell(found, 'width')[0]:6.2f} {nll} {cell(found, 'crps')[0]:6.3f}"
                print(
                    f"{head}{low[0]:6.3f} {mid:6.3f} ({error:.3f}) {high[0]:6.3f} {tail} {seconds}"
                )
            else:
                for one in found:
                    one["gap"] = one["stated"] - one["accuracy"]
                gap, error = cell(found, "gap")
                right, stated = cell(found, "accuracy")[0], cell(found, "stated")[0]
                print(f"{head}{right:6.3f} {stated:6.3f} {gap:+6.3f} ({error:.3f}) {nll} {seconds}")


def outside(results: Sequence[dict[str, Any]], errors: float = 2.0) -> list[str]:
    """Return a line for each cell whose mean coverage is outside `BOUNDS` by more than `errors`."""
    lines = []
    for (task, effort, of_noise, inputs, rows), found in grouped(results).items():
        if task == "regression" and len(found) > 1:
            mean, error = cell(found, "coverage0.9")
            beyond = max(BOUNDS[0] - mean, mean - BOUNDS[1])
            if beyond > errors * error:
                lines.append(
                    f"{effort}, {of_noise}, inputs {inputs}, rows {rows}: coverage {mean:.3f} "
                    f"± {error:.3f} is outside {BOUNDS[0]} to {BOUNDS[1]}"
                )
    return lines


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the coverage of 90 % intervals by rows and inputs, all noises together."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    efforts = [e for e in ("quick", "full") if any(one["effort"] == e for one in results)]
    figure, axes = pyplot.subplots(
        1, len(efforts), figsize=(4.2 * len(efforts), 3.4), sharey=True, squeeze=False
    )
    for axis, effort in zip(axes[0], efforts, strict=True):
        own = [o for o in results if o["task"] == "regression" and o["effort"] == effort]
        rows = sorted({one["rows"] for one in own})
        each = [[o["coverage0.9"] for o in own if o["rows"] == n] for n in rows]
        low, high = (np.array([np.quantile(values, q) for values in each]) for q in (0.05, 0.95))
        axis.fill_between(rows, low, high, color="0.9", label="90 % of the tables")
        axis.axhspan(*BOUNDS, color="tab:green", alpha=0.15, lw=0)
        axis.axhline(0.9, color="tab:green", lw=1)
        for k, inputs in enumerate(sorted({one["inputs"] for one in own})):
            cells = {
                n: cell(found, "coverage0.9")
                for n in rows
                if len(found := [o for o in own if (o["rows"], o["inputs"]) == (n, inputs)]) > 1
            }
            if not cells:
                continue
            shifted = [n * 1.03 ** (k - 1.5) for n in cells]
            mean, error = np.array(list(cells.values())).T
            label = f"{inputs} input{'s' * (inputs > 1)}"
            axis.errorbar(shifted, mean, error, fmt="o-", ms=3, lw=1, label=label)
        axis.set_xscale("log")
        axis.set_xticks(rows, [str(n) for n in rows])
        axis.minorticks_off()
        axis.set(title=f'effort="{effort}"', xlabel="rows of the fit", ylim=(0.5, 1.0))
    axes[0, 0].set_ylabel("fresh values in 90 % intervals")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=25, help="tables of each cell")
    parser.add_argument("--rows", type=int, nargs="+", default=[12, 30, 60, 100])
    parser.add_argument("--inputs", type=int, nargs="+", default=[1, 5, 20, 100])
    parser.add_argument("--noises", nargs="+", default=NOISES, choices=NOISES)
    parser.add_argument("--efforts", nargs="+", default=("quick", "full"))
    parser.add_argument("--tasks", nargs="+", default=("regression", "classes"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", type=Path, help="JSON lines; what is there is not run again")
    parser.add_argument("--image", type=Path, help="write the figure of the documentation")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if the mean coverage of a cell is outside "
        f"{BOUNDS[0]} to {BOUNDS[1]} by more than two standard errors",
    )
    args = parser.parse_args()
    jobs = [
        (task, rows, inputs, of_noise, effort, draw)
        for task, effort in itertools.product(args.tasks, args.efforts)
        for of_noise in (args.noises if task == "regression" else ("-",))
        for inputs, rows, draw in itertools.product(args.inputs, args.rows, range(args.draws))
    ]
    jobs.sort(key=lambda job: job[-1])  # stopped early, all cells have about as many tables
    results = []
    if args.results is not None and args.results.exists():
        wanted = set(jobs)
        keys = ("task", "rows", "inputs", "noise", "effort", "draw")
        kept = [json.loads(line) for line in args.results.read_text().splitlines()]
        results = [one for one in kept if tuple(one[k] for k in keys) in wanted]
        ready = {tuple(one[k] for k in keys) for one in results}
        jobs = [job for job in jobs if job not in ready]
    with ProcessPoolExecutor(args.processes) as pool:
        for result in pool.map(one, jobs):
            results.append(result)
            if args.results is not None:
                with args.results.open("a") as out:
                    out.write(json.dumps(result) + "\n")
    show(results)
    if args.image is not None:
        draw(results, args.image)
    if args.check:
        lines = outside(results)
        if not results or lines:
            raise SystemExit("\n".join(lines) or "no results to check")
        print(f"all {len(grouped(results))} cells are within the bounds")


if __name__ == "__main__":
    main()
