"""The paper's numbers, spot-checked against its tables."""

from __future__ import annotations

import pytest

from rdeepsense.paper.study import METHODS, TASKS
from rdeepsense.paper.tables import DATA, figure


@pytest.mark.parametrize(
    ("task", "method", "name", "value"),
    [
        ("BPEst", "RDeepSense-paper", "mae", 14.18),
        ("BPEst", "GP", "nll", 3.59),
        ("BPEst", "MCDrop-3-paper", "nll", 38.1),
        ("NYCommute", "SSP-3-paper", "nll", 4.67),
        ("NYCommute", "MCDrop-20-paper", "nll", 640.35),
        ("GasSen", "RDeepSense-paper-MC20", "mae", 15.61),
        ("GasSen", "SSP-10-paper", "mae", 20.68),
        ("HHAR", "RDeepSense-paper-MC5", "accuracy", 0.8307),
        ("HHAR", "GP", "f1", 0.659),
        ("HHAR", "MCDrop-10-paper", "mefp", 0.574),
        ("HHAR", "RDeepSense", "nll", None),  # the automatic model is none of the paper's
        ("BPEst", "GP", "accuracy", None),
    ],
)
def test_figures(task: str, method: str, name: str, value: float | None) -> None:
    assert figure(task, method, name) == value


def test_tables_are_complete() -> None:
    paper = [method for method in METHODS if method not in ("RDeepSense", "MCDrop-20")]
    for task in TASKS:
        for name in ("accuracy", "f1", "nll", "mefp") if task == "HHAR" else ("mae", "nll"):
            assert all(figure(task, method, name) is not None for method in paper)
    sizes, minutes = DATA["NYCommute"]
    assert (sizes.train, sizes.test) == (10_287_766, 214_328)
    assert minutes is not None
    assert minutes.max == 1439.5
    assert DATA["HHAR"][1] is None  # classes have no range
