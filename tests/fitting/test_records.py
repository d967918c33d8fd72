"""Records to JSON and back."""

from __future__ import annotations

import json

from rdeepsense.fitting.candidates import Candidate, Trial
from rdeepsense.fitting.records import Selection, TrainingReport, TriedLength


def test_a_report_is_one_flat_dictionary_and_comes_back() -> None:
    report = TrainingReport(3, 80, 20, "validation rows", {"steps": 5}, teacher="GPRegressor")
    value = report.to_json()
    assert value == {
        "rows": 80,
        "validation_rows": 20,
        "validated": "validation rows",
        "seed": 3,
        "steps": 5,
        "teacher": "GPRegressor",
    }
    assert TrainingReport.from_json(json.loads(json.dumps(value))) == report
    plain = TrainingReport(3, 80, 20, "validation rows")
    assert "teacher" not in plain.to_json()
    assert TrainingReport.from_json(plain.to_json()) == plain


def test_a_selection_comes_back_with_its_trials_and_lengths() -> None:
    trials = (
        Trial(Candidate("student", 0.5, (0.1, 0.2)), 1.5, 0.02, 1.1, 40),
        Trial(Candidate("categorical", 0.0, 0.05), 1.25, None, None, 60),
    )
    lengths = (TriedLength(100, 1.25), TriedLength(300, 1.0))
    chosen = Selection("nll", "validation rows", 1, trials, lengths)
    value = chosen.to_json()
    assert value["trials"][0] == {
        "likelihood": "student",
        "alpha": 0.5,
        "drop_prob": (0.1, 0.2),
        "nll": 1.5,
        "deviation_area": 0.02,
        "calibration": 1.1,
        "best_step": 40,
    }
    assert value["lengths"] == [{"steps": 100, "nll": 1.25}, {"steps": 300, "nll": 1.0}]
    assert Selection.from_json(json.loads(json.dumps(value))) == chosen
    without = Selection("nll", "validation rows", 0, trials[:1])
    assert "lengths" not in without.to_json()
    assert Selection.from_json(without.to_json()) == without
