"""Results of a reproduction made by hand: every method, both kinds of tasks, plausible figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rdeepsense.pages.pictures import representatives
from rdeepsense.paper.report import write
from rdeepsense.paper.run import StudyResults

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.95, 0.99, 0.995, 0.999]
# Passes, how wide the intervals are (1 is right), and how good the mean is (1 is the best).
METHODS: dict[str, tuple[int | None, float, float]] = {
    "RDeepSense-paper": (1, 1.2, 1.04),
    "RDeepSense-paper-MC3": (3, 1.28, 1.08),
    "RDeepSense-paper-MC5": (5, 1.29, 1.07),
    "RDeepSense-paper-MC10": (10, 1.3, 1.05),
    "RDeepSense-paper-MC20": (20, 1.31, 1.05),
    "MCDrop-3-paper": (3, 0.2, 1.09),
    "MCDrop-5-paper": (5, 0.24, 1.07),
    "MCDrop-10-paper": (10, 0.27, 1.05),
    "MCDrop-20-paper": (20, 0.28, 1.04),
    "MCDrop-20": (20, 1.05, 1.04),
    "SSP-1-paper": (1, 0.75, 1.2),
    "SSP-3-paper": (3, 0.9, 1.1),
    "SSP-5-paper": (5, 0.95, 1.07),
    "SSP-10-paper": (10, 0.98, 1.05),
    "GP": (None, 1.1, 1.4),
    "RDeepSense": (1, 1.01, 1.0),
}

FEW = ("RDeepSense-paper", "RDeepSense-paper-MC20", "RDeepSense-paper-MC3", "MCDrop-3-paper",
       "MCDrop-20", "SSP-10-paper", "GP", "RDeepSense")  # fmt: skip


def covered(level: float, width: float) -> float:
    """Share inside the central interval of a Gaussian whose std is `width` times the true one."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < level else (low, middle)
    return math.erf(width * low / math.sqrt(2))


def cell(name: str, kind: str, scale: float, number: int) -> dict[str, Any]:
    """What one method would give."""
    passes, width, mean = METHODS[name]
    observed = [covered(level, width) for level in LEVELS]
    gap = sum(share - level for share, level in zip(observed, LEVELS, strict=True)) / len(LEVELS)
    made: dict[str, Any] = {
        "passes": passes,
        "about": f"what {name} is",
        "fit_seconds": 12.3 + number,
        "chosen": {"head": "student", "alpha": 0.5, "drop_prob": 0.02}
        if name == "RDeepSense"
        else {"alpha": 0.2}
        if name == "RDeepSense-paper"
        else None,
        "warnings": [f"the kernel of {name} hit its bound"] if name == "GP" else [],
        "calibration": None,
        "risk_coverage": {
            "kept": [1 - 0.05 * step for step in range(20)],
            "risk": [mean * scale * (1 - 0.03 * step / mean**3) for step in range(20)],
            "risk_name": "MAE (mmHg)" if kind == "regression" else "error rate",
        },
        "group_coverage": [
            min(1.0, covered(0.9, width) + 0.06 * math.sin(7.0 * group + number))
            for group in range(30)
        ],
        "cost": {
            "microseconds": 43.7 * (passes or 60) * (1 + 0.01 * number),
            "multiply_adds": 633_000 * (passes or 90),
            "bytes": 2_530_000,
            "millijoules": 1.93 * (passes or 60),
            "energy": "estimated",
        },
    }
    if name in representatives(METHODS):
        made["faults"] = faults(kind, width, number, name in ("RDeepSense", "RDeepSense-paper"))
    if kind == "regression":
        nll = math.log(2.2 * scale * width) + 0.5 * (mean / width) ** 2 + 0.9189
        made["calibration"] = {"levels": LEVELS, "observed": observed}
        made["figures"] = {
            "nll": nll, "nll_se": 0.021, "mae": scale * mean, "mae_se": 0.012 * scale,
            "rmse": 1.4 * scale * mean, "crps": 0.7 * scale * mean, "deviation_area": abs(gap),
            "deviation_area_signed": gap, "deviation_area_se": 0.0012,
            "coverage_90": covered(0.9, width),
            "sharpness": 1.3 * scale * width, "kl": 0.05 * mean * (1 + abs(width - 1)),
            "kl_se": 0.003,
        }  # fmt: skip
    else:
        made["figures"] = {
            "nll": 0.3 * mean, "nll_se": 0.02, "accuracy": 0.92 / mean, "accuracy_se": 0.011,
            "f1": 0.91 / mean, "mefp": 0.7 + 0.03 * number, "ece": 0.1 * abs(width - 1) + 0.01,
            "brier": 0.14 * mean, "kl": 0.07 * mean, "kl_se": 0.004,
        }  # fmt: skip
    return made


def faults(kind: str, width: float, number: int, epistemic: bool) -> dict[str, Any]:
    """What a method would say of healthy rows and of two faults; waves have one channel."""
    found: dict[str, Any] = {}
    for place, name in enumerate(("healthy", "stuck", "dropped")):
        own = {"error": 0.1 + 0.2 * place, "flagged": 0.05 + 0.01 * number + 0.3 * place}
        if kind == "regression":
            own |= {"error": 11.0 + 9 * place, "coverage_90": covered(0.9, width) / (1 + place)}
        if epistemic:
            own["flagged_epistemic"] = (0.06, 0.62, 1.0)[place]
            own["flagged_novelty"] = (0.05, 0.9, 1.0)[place]
        if place:
            own |= {f"auroc{key[7:]}": 0.5 + own[key] / 2 for key in own if "flagged" in key}
        found[name] = own
    return found


def task(title: str, kind: str, unit: str, scale: float, **more: Any) -> dict[str, Any]:
    """A task with every method, an alpha study and examples."""
    regression = kind == "regression"
    x = [0.008 * step for step in range(250)]
    pressure = [90 + 25 * math.sin(8 * at) + 8 * math.sin(16 * at) for at in x]
    return {
        "title": title,
        "kind": kind,
        "simulated": True,
        "source": "the simulator, seed 0",
        "unit": unit,
        "classes": [] if regression else ["bike", "sit", "stand", "walk", "up", "down"],
        "split": "records never trained on",
        "grouped_by": "record",
        "rows": {"train": 8_000, "validation": 1_000, "test": 1_234},
        "inputs": 250,
        "outputs": 250 if regression else 6,
        "target": {"mean": 90.5, "std": 25.25, "min": 48.0, "max": 181.0} if regression else None,
        "floor": 0.0031 if regression else None,
        "methods": {name: cell(name, kind, scale, n) for n, name in enumerate(METHODS)},
        "alpha_study": [
            {
                "alpha": alpha / 10,
                "nll": 3.9 + 0.4 * (alpha / 10 - 0.3) ** 2,
                "nll_se": 0.02,
                "deviation_area": 0.02 + 0.1 * abs(alpha / 10 - 0.2) if regression else None,
                "mefp": None if regression else 1.0 + 0.02 * alpha,
            }
            for alpha in range(10)
        ],
        "examples": {
            "x": x,
            "x_label": "time (s)",
            "y_label": "arterial pressure (mmHg)",
            "cases": [
                {
                    "title": f"record {number}",
                    "truth": [
                        p + 4 * math.sin(number + 9 * at)
                        for p, at in zip(pressure, x, strict=True)
                    ],
                    "mean": pressure,
                    "low": [p - 9 for p in pressure],
                    "high": [p + 9 for p in pressure],
                }
                for number in (7, 19)
            ],
        }
        if regression
        else None,
        **more,
    }  # fmt: skip


def made_results() -> dict[str, Any]:
    """Both kinds of tasks, all methods, as `rdeepsense reproduce` keeps them."""
    return {
        "preset": "quick",
        "command": "rdeepsense reproduce all --preset quick",
        "date": "2026-11-15",
        "machine": {"system": "Linux", "processor": "x86_64", "cores": 2},
        "versions": {"rdeepsense": "0.2", "python": "3.12"},
        "seconds": 512.3,
        "device": {
            "profile": "Intel Edison",
            "energy": "estimated",
            "how": "Multiply-adds and bytes moved, times the profile's energy for each.",
        },
        "tasks": {
            "BPEst": task("blood pressure from PPG", "regression", "mmHg", 11.8),
            "HHAR": task(
                "activity of users never seen", "classification", "", 0.09,
                grouped_by="user", simulated=False, source="the original CSV files",
            ),
        },
        "claims": [
            {"section": "4.4", "claim": "MCDrop-k underestimates the uncertainty", "task": "BPEst",
             "verdict": "yes", "measured": "signed deviation area −0.36 for MCDrop-20-paper",
             "why": "without observation noise it says only what dropout moves"},
            {"section": "4.4", "claim": "SSP-k overestimates the uncertainty", "task": "BPEst",
             "verdict": "no", "measured": "signed deviation area −0.01 for SSP-10-paper",
             "why": "an ensemble trained by NLL is close to calibrated where data is plentiful"},
            {"section": "4.4", "claim": "NLL of 0.161 at 84 % accuracy", "task": "HHAR",
             "verdict": "not decidable", "measured": "0.31 at 92 %",
             "why": "the figure is no mean negative log-probability of any model of that accuracy"},
        ],
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    """Made results as JSON has them, to be changed at will."""
    return made_results()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole report, with some of the methods and the results.json it is of."""
    out = tmp_path_factory.mktemp("report")
    made = made_results()
    for one in made["tasks"].values():
        one["methods"] = {name: one["methods"][name] for name in FEW}
    (out / "results.json").write_text(json.dumps(made))
    write(StudyResults.from_json(json.loads((out / "results.json").read_text())), out)
    return out
