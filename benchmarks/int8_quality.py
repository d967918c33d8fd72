"""What int8 costs in quality, and what fine-tuning gives back.

    python benchmarks/int8_quality.py [--rows 6000] [--hidden 64 64] [--drop-prob P] [--seed 0]

A model is fitted on each of the four simulated tasks of the paper and on two laws with hardly any
noise, where a byte is coarse beside the predicted std. Rows of another seed: on half of them ranges
are calibrated and weights fine-tuned, the other half is judged. Changes of the NLL are against the
float model; coverages are of the 90 % interval. `export` fine-tunes only what is beyond its bound.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense._progress import progress_for
from rdeepsense.deploy.fine_tune import fine_tuned
from rdeepsense.deploy.fold import fold_fitted
from rdeepsense.deploy.quality import quality
from rdeepsense.deploy.quantise import NetworkRunner, quantise
from rdeepsense.estimators.base import fitted_model
from rdeepsense.paper.tasks.catalogue import SIMULATORS

JUDGED = 2_000


def straight(rows: int, seed: int) -> tuple[Any, Any]:
    """y = 3 (1, 0.6, 0.2, -0.2, -0.6, -1) x, noise 0.01."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, 3 * X @ np.linspace(1, -1, 6) + 0.01 * rng.normal(size=rows)


def steep(rows: int, seed: int) -> tuple[Any, Any]:
    """y = 10 tanh(3 x_0) + x_1^3, noise 0.01, four more inputs that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, 10 * np.tanh(3 * X[:, 0]) + X[:, 1] ** 3 + 0.01 * rng.normal(size=rows)


def fitted(name: str, rows: int, settings: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A model, and rows and truth of another seed, half to tune on and half to judge by."""
    if name in LAWS:
        model = RDeepSenseRegressor(**settings, likelihood="gaussian", effort="quick")
        return model.fit(*LAWS[name](rows, 1)), *LAWS[name](2 * JUDGED, 2)
    task, fresh = (SIMULATORS[name](n, seed) for n, seed in ((rows, 1), (2 * JUDGED, 2)))
    kind = RDeepSenseClassifier if task.classes else RDeepSenseRegressor
    if not task.classes:
        settings = {**settings, "likelihood": "student"}
    return kind(**settings).fit(task.X, task.y, groups=task.groups), fresh.X, fresh.y


LAWS = {"straight": straight, "steep": steep}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--drop-prob", type=float, help="default: that of the estimator")
    parser.add_argument("--seed", type=int, default=0, help="of the models")
    arguments = parser.parse_args()
    settings: dict[str, Any] = {"hidden": tuple(arguments.hidden)}
    settings |= {"random_state": arguments.seed, "verbose": False}
    if arguments.drop_prob is not None:
        settings["drop_prob"] = arguments.drop_prob
    print(f"simulated data, {arguments.rows} rows to fit, {arguments.hidden} hidden units")
    print(f"{'task':10s} {'rows':>5s} {'NLL':>8s} {'int8':>8s} {'tuned':>8s}  coverage of 90 %")
    for name in (*SIMULATORS, *LAWS):
        model, X, y = fitted(name, arguments.rows, settings)
        fit = fitted_model(model)
        folded = fold_fitted(fit)
        plain = quantise(folded, X[::2])
        tuned = fine_tuned(fit, folded, X[::2], y[::2], progress_for(True))
        found = [
            quality(NetworkRunner(folded, network), fit, X[1::2], y[1::2])
            for network in (plain, tuned)
        ]
        figures = [found[0].before, *(one.after for one in found)]
        covered = [f"{one['coverage_90']:.4f}" for one in figures if "coverage_90" in one]
        print(
            f"{name:10s} {found[0].rows:5d} {figures[0]['nll']:8.4f} "
            f"{found[0].nll_change:+8.4f} {found[1].nll_change:+8.4f}  {' '.join(covered)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
