"""Records to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace

from rdeepsense.fitting.records import (
    Candidate,
    DeviceCost,
    Selection,
    TrainingReport,
    Trial,
    TriedArchitecture,
    TriedLength,
)


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


def test_a_front_follows_from_what_was_tried() -> None:
    trials = (Trial(Candidate("student", 0.5, 0.1), 1.5, 0.02, 1.1, 40),)
    tried = (
        TriedArchitecture("Dense", {"hidden": [8, 8]}, 99, 1.0, need=DeviceCost(4_000, 800, 100)),
        TriedArchitecture("Dense", {"hidden": [9, 9]}, 120, 1.1, need=DeviceCost(4_100, 800, 120)),
        TriedArchitecture("Periodic", {}, 80, 1.2, need=DeviceCost(3_000, 800, 150)),
        TriedArchitecture("Dense", {}, 500, 0.5, chosen=True, need=DeviceCost(9_000, 900, 400)),
    )
    chosen = Selection("nll", "validation rows", 0, trials, None, tried)
    value = json.loads(json.dumps(chosen.to_json()))
    assert value["front"] == [value["architectures"][k] for k in (2, 0, 3)]
    assert value["front"][0]["need"] == {"flash": 3_000, "ram": 800, "multiply_adds": 150}
    assert Selection.from_json(value) == chosen
    value["architectures"][3]["nll"] = None
    assert len(Selection.from_json(value).to_json()["front"]) == 2
    plain = Selection("nll", "validation rows", 0, trials, None, (replace(tried[0], need=None),))
    assert "front" not in plain.to_json()
    assert "need" not in plain.to_json()["architectures"][0]
