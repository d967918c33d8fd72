"""What int8 costs in quality on the four simulated tasks of the paper.

    python benchmarks/int8_quality.py [--rows 6000] [--hidden 64 64]

A default model is fitted, exported as C99 in int8, and judged on rows of another seed: NLL and 90 %
coverage before and after. Ranges are calibrated on half of those rows and judged on the other half.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.device.c99.export import Options, export_c99
from rdeepsense.tasks.simulate import SIMULATORS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    arguments = parser.parse_args()
    print(f"simulated data, {arguments.rows} rows to fit, {arguments.hidden} hidden units")
    print(f"{'task':10s} {'rows':>5s} {'NLL':>8s} {'int8':>8s} {'change':>8s}  coverage of 90 %")
    for name, simulate in SIMULATORS.items():
        task, fresh = simulate(arguments.rows, 1), simulate(2_000, 2)
        settings = {"hidden": tuple(arguments.hidden), "random_state": 0, "verbose": False}
        if task.classes:
            model = RDeepSenseClassifier(**settings)
        else:
            model = RDeepSenseRegressor(**settings, likelihood="student")
        model.fit(task.X, task.y, groups=task.groups)
        with tempfile.TemporaryDirectory() as folder:
            options = Options(dtype="int8", max_nll_change=10.0)
            report = export_c99(model, Path(folder) / "c", options, (fresh.X, fresh.y))
        found = report["quality"]
        before, after = found["before"], found["after"]
        covered = "" if task.classes else f"{before['coverage_90']:.4f} {after['coverage_90']:.4f}"
        print(
            f"{name:10s} {found['rows']:5d} {before['nll']:8.4f} {after['nll']:8.4f} "
            f"{found['nll_change']:+8.4f}  {covered}",
            flush=True,
        )


if __name__ == "__main__":
    main()
